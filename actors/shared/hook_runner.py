"""Calls the handlers of a hook one after the other (semantics 6.4).

Each handler sees what the one before it changed. What an answer means is decided by `core.hooks`; how long a handler
may take once a stop was asked for, by the stop clock it runs under.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from ...core.hook_registry import HookDecision, HookRegistry, Tap, interpret_result, payload_for
from ...messages.errors import AgentError, PluginError
from ...messages.hook_payloads import HookEvent
from .lifetime import Lifetime
from .outcome import StopClock
from .user_code import UserCodeError, call_user

logger: logging.Logger = logging.getLogger("youyou.hooks")
E = TypeVar("E", bound=HookEvent)


@attrs.frozen
class HookOutcome(Generic[E]):
    """The event as the last handler left it, and why not to go on, if so. ``error``: a handler misbehaved."""

    event: E
    abort: str | None = None
    error: AgentError | None = None


@attrs.frozen(eq=False)
class HookRunner:
    """Dispatches events to the handlers that plugins tapped."""

    registry: HookRegistry
    lifetime: Lifetime

    async def before(self, event: E, clock: StopClock, stopped: Callable[[], bool] | None = None) -> HookOutcome[E]:
        """Run the handlers of a hook that may refuse. A handler that raises or is cut refuses: it fails closed.

        None starts after a stop, or once ``stopped`` says so: what it would decide about does not happen.
        """
        for tap in self.registry.taps(type(event)):
            if clock.stopping if stopped is None else stopped():
                break
            with clock.hook():
                try:
                    verdict = await self._call(tap, event)
                except UserCodeError as error:
                    return _refused(event, tap.plugin_id, f"raised {error}")
                except PluginError as error:
                    return _refused(event, tap.plugin_id, error.message)
                if verdict.abort is not None:
                    return HookOutcome(event, abort=verdict.abort)
                event = verdict.event
                continue
            # Reached only when the scope was cut: both other ways leave the block by `return` or `continue`.
            return _refused(event, tap.plugin_id, "did not finish in time after the stop")
        return HookOutcome(event)

    async def after(self, event: HookEvent, clock: StopClock) -> list[AgentError]:
        """Run the handlers of a hook that only observes. What goes wrong is logged and returned; the others run."""
        errors: list[AgentError] = []
        for tap in self.registry.taps(type(event)):
            problem = "did not finish in time after the stop"
            with clock.hook():
                try:
                    if (await self._call(tap, event)).abort is not None:
                        return errors
                    continue
                except UserCodeError as error:
                    problem = f"raised {error}"
                except PluginError as error:
                    problem = error.message
            errors.append(_plugin_error(event, tap.plugin_id, problem))
        return errors

    async def _call(self, tap: Tap, event: E) -> HookDecision[E]:
        given = payload_for(event, tap)
        return interpret_result(given, await call_user(self.lifetime, tap.handler, given))


def _plugin_error(event: HookEvent, plugin_id: str, problem: str) -> AgentError:
    error = PluginError(f"plugin {plugin_id!r} in {type(event).__name__}: {problem}")
    logger.warning("%s", error)
    return error


def _refused(event: E, plugin_id: str, problem: str) -> HookOutcome[E]:
    error = _plugin_error(event, plugin_id, problem)
    return HookOutcome(event, abort=error.message, error=error)

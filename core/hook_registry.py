"""Which handlers listen to a hook, in which order, and what an answer means (semantics 6.4).

    registry = HookRegistry()
    plugin.apply(registry.context(plugin.id, config))       # the plugin taps
    for tap in registry.taps(BeforeToolUse):                # lower stages first, then as registered
        verdict = interpret_result(event, await tap.handler(payload_for(event, tap)))

Calls no handler itself, and says what an answer means, not what to do about it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, get_args

import attrs

from ..messages.errors import ErrorSource, InvalidConfig, PluginError
from ..messages.hook_payloads import Abort, BeforeToolUse, Continue, ContinueWith, HookEvent, HookResult, TurnStart
from ..messages.jsonvalue import freeze
from ..messages.plain import NotPlain, plain_object, plain_text
from .ports.protocols import HookEventT, HookHandler

E = TypeVar("E", bound=HookEvent)

HOOKS: tuple[type[HookEvent], ...] = get_args(HookEvent)

# The one field of an event that a handler may change, by kind of event; the others may change nothing.
CHANGEABLE: dict[type[Any], str] = {TurnStart: "dynamic_sections", BeforeToolUse: "arguments"}


@attrs.frozen(eq=False)
class Tap:
    """One handler of one hook, and whose it is."""

    plugin_id: str
    plugin_config: Any
    handler: HookHandler
    stage: int = 0


@attrs.frozen
class HookDecision(Generic[E]):
    """What a handler's answer means: go on with ``event``, or, if ``abort`` is not None, do not, for that reason."""

    event: E
    abort: str | None = None


@attrs.frozen(eq=False)
class _Context:
    """What a plugin gets in ``apply``."""

    plugin_id: str
    plugin_config: Any
    _registry: HookRegistry = attrs.field(repr=False)

    def tap(
        self,
        event_class: type[HookEventT],
        handler: Callable[[HookEventT], Awaitable[HookResult]],
        *,
        stage: int = 0,
    ) -> None:
        """Have ``handler`` called at each such event: lower stages first, then in order of registration.

        Raises:
            InvalidConfig: the class is not a hook, the handler is not async, or the stage is not an integer.
        """
        _check_tap(self.plugin_id, event_class, handler, stage)
        self._registry.add(event_class, Tap(self.plugin_id, self.plugin_config, handler, stage))


@attrs.define(eq=False)
class HookRegistry:
    """All taps of an agent. Owned by the agent; plugins reach it through their contexts only."""

    _taps: dict[type[HookEvent], tuple[Tap, ...]] = attrs.field(factory=dict)

    def context(self, plugin_id: str, plugin_config: Any = None) -> _Context:
        """The context for a plugin's ``apply``. Its configuration is read-only for the hooks."""
        return _Context(plugin_id, freeze(plugin_config), self)

    def add(self, event_class: type[Any], tap: Tap) -> None:
        """Put ``tap`` in its place: by stage, after those of the same stage."""
        # `sorted` is stable: taps of one stage stay in order of registration. A new tuple each time, since a hook that
        # runs may be iterating over the old one.
        self._taps[event_class] = tuple(sorted((*self.taps(event_class), tap), key=lambda each: each.stage))

    def taps(self, event_class: type[Any]) -> tuple[Tap, ...]:
        """The taps of one hook in the order in which they are called."""
        return self._taps.get(event_class, ())


def _check_tap(plugin_id: str, event_class: Any, handler: Any, stage: Any) -> None:
    if event_class not in HOOKS:
        names = ", ".join(hook.__name__ for hook in HOOKS)
        raise _refusal(plugin_id, f"tapped {event_class!r}, which is not a hook; tap one of {names}")
    if not (inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)):
        raise _refusal(plugin_id, f"tapped {event_class.__name__} with {handler!r}; pass an async def function")
    if not takes(handler, 1):
        raise _refusal(plugin_id, f"tapped {event_class.__name__} with {handler!r}; give it one parameter, the event")
    if not isinstance(stage, int):
        raise _refusal(plugin_id, f"tapped {event_class.__name__} with stage={stage!r}; pass an integer")


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether ``function`` can be called with so many positional arguments; True where nobody can tell."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # something built in, without a signature
        return True
    return True


def _refusal(plugin_id: str, text: str) -> InvalidConfig:
    return InvalidConfig(f"plugin {plugin_id!r} {text}", source=ErrorSource.PLUGIN)


def payload_for(event: E, tap: Tap) -> E:
    """``event`` as this tap sees it: with its own plugin's configuration."""
    return attrs.evolve(event, plugin_config=tap.plugin_config)


def interpret_result(event: E, answer: object) -> HookDecision[E]:
    """What ``answer`` of a handler that was given ``event`` means (semantics 6.4). Pure.

    Raises:
        PluginError: the answer is none of the allowed ones, or changes what this hook may not change.
    """
    match answer:
        case None | Continue():
            return HookDecision(event)
        # Before the general case of Abort, whose reason may be anything.
        case Abort(reason=str(reason)):
            return HookDecision(event, plain_text(reason))
        case ContinueWith(event=changed):
            return HookDecision(_accept(event, changed))
        case Abort(reason=reason):
            raise PluginError(f"{_name(event)}: Abort got {reason!r}; write Abort('why')")
        case _:
            raise PluginError(
                f"{_name(event)}: a handler returned {_shown(answer)}; "
                "return None, Continue(), ContinueWith(event) or Abort(reason)"
            )


def _accept(event: E, changed: object) -> E:
    """``event`` with the one field that may differ taken from ``changed``."""
    # The exact class: a subclass could carry anything past the comparison of fields.
    if type(changed) is not type(event):
        raise PluginError(
            f"{_name(event)}: ContinueWith got {_shown(changed)}; pass attrs.evolve(event, ...) of the event received"
        )
    allowed = CHANGEABLE.get(type(event))
    # Compared rather than ignored: a plugin that changes a field without effect should learn it.
    others = [name for name in attrs.fields_dict(type(event)) if name != allowed]
    wrong = [name for name in others if _differ(getattr(event, name), getattr(changed, name))]
    if wrong:
        may = f"only {allowed!r} may change" if allowed else "this hook may change nothing"
        raise PluginError(f"{_name(event)}: ContinueWith changed {', '.join(wrong)}; {may}")
    return attrs.evolve(event, **{allowed: _cleaned(event, getattr(changed, allowed))}) if allowed else event


def _differ(mine: Any, theirs: Any) -> bool:
    # The same object first: what a host configures, an array for one, may not compare to a single truth value.
    try:
        return mine is not theirs and bool(mine != theirs)
    except Exception:
        return True


def _cleaned(event: HookEvent, value: Any) -> Any:
    if not isinstance(event, TurnStart):
        assert isinstance(event, BeforeToolUse)
        try:
            return value if value is event.arguments else plain_object(value)
        except NotPlain as problem:
            raise PluginError(f"{_name(event)}: 'arguments' {problem}") from None
    if not isinstance(value, tuple | list) or not all(isinstance(section, str) for section in value):
        raise PluginError(f"TurnStart: dynamic_sections got {_shown(value)}; pass a tuple of strings")
    return tuple(map(plain_text, value))


def _name(event: HookEvent) -> str:
    return type(event).__name__


def _shown(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__} (write {value.__name__}(...))"
    return f"a {type(value).__name__}"

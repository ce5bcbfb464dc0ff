"""What lives as long as the agent, each in a task of its own: plugins, and providers and storages that can be entered.

From the start to the end of its life an lifespan stays in one task, because scopes and nurseries that it opens belong
to that task (semantics 2, signatures of ports).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.ports.whole_plugin import WholePlugin
from ..shared.lifetime import Lifetime
from ..shared.user_code import UserCodeError, call_user


@attrs.define(eq=False)
class Lifespan:
    """A part's time from entry to exit, in a task of its own.

    ``ready`` and ``gone`` are set in any case; ``error`` says what went wrong on the way in or out.
    """

    name: str
    lifetime: Lifetime
    enter: Callable[[], Awaitable[Any]]
    leave: Callable[[], Awaitable[Any]]
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    ready: trio.Event = attrs.Factory(trio.Event)
    leaving: trio.Event = attrs.Factory(trio.Event)
    gone: trio.Event = attrs.Factory(trio.Event)
    entered: bool = False
    error: UserCodeError | None = None

    @enable_ki_protection
    async def run(self) -> None:
        """The task."""
        try:
            # Enter and leave in one task, so that a part may hold a nursery or a cancel scope open between the two:
            # Trio demands that both ends of a scope are in one task.
            with self.scope:
                await call_user(self.lifetime, self.enter)
                self.entered = True
                self.ready.set()
                await self.leaving.wait()
                await call_user(self.lifetime, self.leave)
        except UserCodeError as error:
            self.error = error
        finally:
            self.ready.set()
            self.gone.set()


def plugin_lifespan(plugin: WholePlugin, config: Any, lifetime: Lifetime) -> Lifespan:
    """A plugin: initialize ... shutdown."""
    return Lifespan(f"plugin {plugin.id}", lifetime, lambda: plugin.initialize(config), plugin.shutdown)


def resource_lifespans(parts: list[Any], lifetime: Lifetime) -> list[Lifespan]:
    """The registered providers and storages that are async context managers, each once."""
    # By identity: one object may be both storages, and must be entered once. Its own `__eq__` says nothing about that.
    unique = {id(part): part for part in parts if part is not None}.values()
    return [
        Lifespan(type(part).__name__, lifetime, part.__aenter__, partial(part.__aexit__, None, None, None))
        for part in unique
        if hasattr(part, "__aenter__") and hasattr(part, "__aexit__")
    ]

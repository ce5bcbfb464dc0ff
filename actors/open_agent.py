"""Enters and leaves an agent (semantics 2, 3, 6.2): the tree of its tasks, and what its host gets to see.

host nursery
└─ top                     the host's body runs here, never shielded
   ├─ watcher              parked outside the shield: notices that the host is cancelled
   └─ supervisor               inside the one shield
      ├─ recorder, lifespans, tools
      └─ actors: guard (with session and turn), tool pool, memory extractor
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import final

import trio
from trio.lowlevel import enable_ki_protection

from ..core.host_exceptions import host_exception
from ..core.registry.registry import Registry
from ..messages.errors import AgentClosed
from ..messages.misuse import misused
from .guard.statistics import statistics
from .guard.supervisor import make_supervisor
from .handles.agent_handle import Agent
from .shared.deadlock import check_trio
from .shared.lifetime import Lifetime
from .shared.user_code import split_cancelled


@asynccontextmanager
@enable_ki_protection
async def open_agent(registry: Registry, *, resources_entered: bool = False) -> AsyncIterator[Agent]:
    """A running agent for the length of a block.

    ``resources_entered``: the providers and storages are entered and left by the host that shares them among agents.

    Cancellation: entering and leaving are checkpoints. When the surrounding scope is cancelled, `trio.Cancelled`
    propagates after at most ``shutdown_grace_ms`` + ``closing_ms`` (semantics 6.2).

    Raises:
        PluginInitFailed: a plugin's ``initialize`` or ``apply`` raised.
        AgentCrashed: a bug in the runtime; what else happened is in its cause.
        WrongTrioRun: no Trio run is here.
    """
    check_trio("an agent")
    # Entering must be a checkpoint also where nothing waits: a loop that enters agents must stay cancellable.
    await trio.lowlevel.checkpoint()
    supervisor = make_supervisor(registry, resources_entered=resources_entered)
    lifetime = supervisor.lifetime
    body: BaseException | None = None
    group: BaseException | None = None
    try:
        async with trio.open_nursery() as top:
            # Cancel scopes have no callbacks: a task parked outside the shield is the only public way to learn of a
            # cancellation.
            top.start_soon(supervisor.watch, name="agent watcher")
            # Not nursery.start(): a cancelled start() would wait for this shielded task forever.
            top.start_soon(supervisor.run, name="agent")
            lifetime.on_forced.append(partial(_interrupt_body, lifetime, top.cancel_scope))
            try:
                await supervisor.ready.wait()
                if supervisor.entry_error is None and not supervisor.closed.is_set() and supervisor.task is not None:
                    numbers = partial(statistics, supervisor.runtime, supervisor.guard)
                    yield Agent(supervisor.runtime, supervisor.guard.box, numbers, supervisor.closed, supervisor.task)
            except BaseException as exc:  # noqa: ASYNC103  what holds no cancellation is raised below
                # The body's own error is kept out of the nursery, whose cancellation the watcher would read as the
                # host's.
                body = exc
                if split_cancelled(exc)[0] is not None:
                    raise  # Trio has to route it
                if not isinstance(exc, Exception):
                    lifetime.force_shutdown("host_cancelled")
                # An ordinary exception is kept out of the nursery, which would cancel the watcher and so turn an
                # graceful shutdown into a forced one.
            finally:
                lifetime.shut_down()
    except BaseException as exc:  # noqa: ASYNC103  raised below, outside of the handler
        group = exc
    failure = host_exception(
        interrupt=lifetime.interrupt,
        crash=supervisor.crash,
        body=body,
        group=group,
        entry_error=supervisor.entry_error,
        cancellation=trio.Cancelled,
    )
    if failure is not None:
        # Outside `except`: no foreign context is put on the host's own exception.
        raise failure


def _interrupt_body(lifetime: Lifetime, body: trio.CancelScope) -> None:
    """Ctrl-C in code that the runtime called belongs to the host: end its body too, so that it gets there."""
    if lifetime.interrupt is not None:
        body.cancel("Ctrl-C or SystemExit came out of code that the agent called")


@final
@misused(
    with_="an agent is entered with 'async with': write 'async with builder.build() as agent:'",
    any_attribute="this is what build() gives, not yet an agent; write 'async with builder.build() as agent:' and ask "
    "agent.{name}",
)
class AgentBlock(AbstractAsyncContextManager[Agent]):
    """What `AgentBuilder.build` gives: a block with an agent in it, for one use."""

    def __init__(self, registry: Registry) -> None:
        self._block = open_agent(registry)
        self._entered = False

    @enable_ki_protection
    async def __aenter__(self) -> Agent:
        if self._entered:
            raise AgentClosed(
                "what build() gave is entered once, and has been entered; call builder.build() again for another agent"
            )
        self._entered = True
        return await self._block.__aenter__()

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._block.__aexit__(kind, exc, traceback)  # noqa: ASYNC102  it bounds itself

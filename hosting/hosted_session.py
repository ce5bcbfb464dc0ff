"""One session of a host: an agent of its own in a task of its own, from the first use to the last (semantics 16)."""

from __future__ import annotations

import logging
from collections.abc import Callable

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ..actors.handles.agent_handle import Agent
from ..actors.handles.session_handle import Session
from ..actors.open_agent import open_agent
from ..actors.shared.deadlock import refuse_waiting
from ..core.config import SessionConfig
from ..core.registry.registry import Registry
from ..messages.errors import AgentClosed, AgentError

logger: logging.Logger = logging.getLogger("youyou.hosting")


@attrs.define(eq=False)
class HostedSession:
    """Opens the session, keeps it while it is needed, and closes it.

    ``on_idle`` is called when nobody needs the session any more; ``on_gone`` when its agent is left.
    """

    session_id: str | None
    config: SessionConfig | None
    memory_namespace: str | None
    steal: bool
    make_registry: Callable[[], Registry]
    idle_seconds: float
    on_opened: Callable[[HostedSession], None]
    on_idle: Callable[[], None]
    on_gone: Callable[[HostedSession], None]
    users: int = 0
    idle_since: float | None = None
    """When it became idle, by Trio's clock. None: it is needed."""
    leaving: bool = False
    agent: Agent | None = None
    session: Session | None = None
    error: Exception | None = None
    ready: trio.Event = attrs.Factory(trio.Event)
    """Set when ``session`` or ``error`` is."""
    gone: trio.Event = attrs.Factory(trio.Event)
    _opening: trio.CancelScope = attrs.Factory(trio.CancelScope)
    _looking: trio.CancelScope = attrs.Factory(trio.CancelScope)

    @property
    def usable(self) -> bool:
        """Whether a caller that asks for this session now can have it."""
        return not self.leaving and (self.session is None or self.session.is_open)

    def acquire(self) -> None:
        """One more user. Sync."""
        self.users += 1
        self._look()

    def release(self) -> None:
        """One user less. Sync. An opening that nobody waits for any more is given up."""
        self.users -= 1
        if self.users == 0 and not self.ready.is_set():
            self.leaving = True
            self._opening.cancel("the task that wanted the session was cancelled")
        self._look()

    def leave(self) -> None:
        """Close the session now, even while it is used. Sync, idempotent."""
        self.leaving = True
        self._look()

    def refuse_waiting(self, what: str) -> None:
        """Raise `WouldDeadlock` where waiting for this session's end would be waiting for oneself. Sync."""
        if self.agent is not None:
            refuse_waiting(self.agent._runtime.lifetime, what)

    def _look(self) -> None:
        self.idle_since = None
        self._looking.cancel("something changed")

    @enable_ki_protection
    async def run(self) -> None:
        """The task."""
        try:
            with self._opening:
                async with (
                    open_agent(self.make_registry(), resources_entered=True) as self.agent,
                    await self._open(self.agent) as self.session,
                ):
                    self.on_opened(self)
                    self.ready.set()
                    await self._until_unneeded(self.session, self.agent)
        except Exception as error:  # for anyone who opens the session: one session never ends the others
            if self.ready.is_set():
                logger.error("session %s ended with an error", self.session_id, exc_info=error)
            self.error = error
        finally:
            if self.session is None and self.error is None:
                self.error = AgentClosed("the host gave the session up before it was open")
            self.on_gone(self)
            self.ready.set()
            self.gone.set()

    async def _open(self, agent: Agent) -> Session:
        if self.session_id is None:
            return await agent.new_session(self.config)
        return await agent.resume_session(self.session_id, steal=self.steal)

    async def _until_unneeded(self, session: Session, agent: Agent) -> None:
        """Until it was asked to leave, or nobody used it for ``idle_seconds``. Never while a turn runs."""
        while not self.leaving:
            with trio.CancelScope() as self._looking:
                if self.users:
                    await trio.sleep_forever()
                await session.wait_idle()
                if not session.is_open:
                    return
                if not agent.statistics().unsaved_events:
                    self.idle_since = trio.current_time()
                    self.on_idle()
                await trio.sleep(self.idle_seconds)
                if self.idle_since is not None:
                    self.leaving = True
                    return
                # What the storage refuses exists here alone: it is tried again, and the session stays.
                try:
                    await agent.flush()
                except AgentError as error:
                    logger.warning("session %s is idle and not stored yet: %s", session.id, error)

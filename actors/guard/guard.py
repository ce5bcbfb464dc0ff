"""Admits one session at a time (semantics 6.3). Owns the slot; nobody else reads or writes it.

Opening happens in the session's own task, so that the guard stays free to say "busy".
"""

from __future__ import annotations

import math
from functools import partial
from typing import assert_never

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...messages.errors import AgentClosed, AgentError, SessionBusy
from ..session.requests import CloseSession, GaveUp, GuardCommand, OpenedSession, OpenSession, SessionEnded, Shutdown
from ..session.runtime import Runtime
from ..session.session_actor import SessionActor
from ..session.session_opening import open_session
from ..shared.mailbox import Reply, close_all, post
from ..shared.outcome import StopClock


@attrs.define(eq=False)
class _Slot:
    """The session that is open, opening or closing."""

    question: OpenSession
    clock: StopClock
    opening: trio.CancelScope = attrs.Factory(trio.CancelScope)
    actor: SessionActor | None = None


@attrs.define(eq=False)
class Guard:
    """The actor behind `Agent.new_session` and `Agent.resume_session`."""

    runtime: Runtime
    box: trio.MemorySendChannel[GuardCommand] = attrs.field(init=False)
    _inbox: trio.MemoryReceiveChannel[GuardCommand] = attrs.field(init=False)
    _slot: _Slot | None = None
    _shutting_down: bool = False

    def __attrs_post_init__(self) -> None:
        # Unbounded, because each message has a sender that waits for its answer, or is the end of a session.
        self.box, self._inbox = trio.open_memory_channel[GuardCommand](math.inf)
        self.runtime.lifetime.on_shutdown.append(self._leave)
        self.runtime.lifetime.on_forced.append(self._force_shutdown)

    @property
    def session(self) -> SessionActor | None:
        """The session that is open, for statistics."""
        return self._slot.actor if self._slot is not None else None

    @enable_ki_protection
    async def run(self) -> None:
        """Run the actor until the agent is left and its session has ended."""
        try:
            async with trio.open_nursery() as sessions:
                async for command in self._inbox:
                    self._handle(command, sessions)
                    if self._shutting_down and self._slot is None:
                        break
        finally:
            close_all(self._inbox)

    def _handle(self, command: GuardCommand, sessions: trio.Nursery) -> None:
        match command:
            case OpenSession():
                self._admit_or_refuse(command, sessions)
            case GaveUp():
                self._give_up(command)
            case SessionEnded():
                assert self._slot is not None and self._slot.question is command.question
                self._slot = None
            case Shutdown():
                self._shutting_down = True
                self._close_slot()
            case _:
                assert_never(command)

    def _admit_or_refuse(self, command: OpenSession, sessions: trio.Nursery) -> None:
        if self._slot is None and not self._shutting_down:
            clock = StopClock(self.runtime.registry.config.hook_timeout_ms / 1000)
            self._slot = _Slot(command, clock)
            # In the caller's context, not in that of the guard's birth: spans and context variables of the host must
            # reach its hooks. `start_soon` copies the current context, hence `run`.
            command.context.run(partial(sessions.start_soon, self._session, self._slot, name="session"))
            return
        with command.reply as reply:
            if self._shutting_down:
                reply.send(AgentClosed("the agent is closing: build and enter a new one"))
            else:
                reply.send(
                    SessionBusy(
                        f"session {self._name()} is still open: close it (await session.close()) or leave its "
                        "'async with' block first"
                    )
                )

    def _name(self) -> str:
        actor = self._slot.actor if self._slot is not None else None
        return actor.state.session_id[:8] if actor is not None else "(opening)"

    def _give_up(self, command: GaveUp) -> None:
        # Only while it is opening. Once it is open, the asker has it, or the answer found nobody and closed it.
        if self._slot is not None and self._slot.question is command.question and self._slot.actor is None:
            self._slot.opening.cancel("the task that asked for the session was cancelled")

    def _close_slot(self) -> None:
        slot, lifetime = self._slot, self.runtime.lifetime
        if slot is None:
            return
        # The clock is asked even before there is an actor: SessionStart hooks of a session that is just opening are
        # bounded too.
        slot.clock.ask(lifetime.shutdown_grace)
        if slot.actor is not None:
            graceful = lifetime.forced is None
            reason = lifetime.forced or "agent_shutdown"
            grace = math.inf if lifetime.shutdown_grace is None and not graceful else lifetime.shutdown_grace
            post(slot.actor.box, CloseSession(graceful, reason, grace, None))

    def _leave(self) -> None:
        post(self.box, Shutdown())

    def _force_shutdown(self) -> None:
        if self._slot is not None and self._slot.actor is not None:
            # Directly, not by a message: a message would be handled a scheduling pass later, and the forced shutdown
            # counts from now.
            # No grace of the turn's: tools have that of the shutdown, whatever a cancel would give them.
            self._slot.actor.stop(self.runtime.lifetime.forced or "host_cancelled", math.inf)

    @enable_ki_protection
    async def _session(self, slot: _Slot) -> None:
        """The session's own task: open, answer, run, end."""
        outcome: SessionActor | AgentError = AgentClosed("the agent is closing: build and enter a new one")
        try:
            # `opening` is what an asker who gives up cancels; `user_code` is what a forced shutdown cuts. Both only
            # while opening.
            with slot.opening, self.runtime.lifetime.user_code():
                outcome = await open_session(self.runtime, slot.question, slot.clock)
            if isinstance(outcome, SessionActor):
                await self._run(slot, outcome)
        except AgentError as error:
            outcome = error
        finally:
            await self._end(slot, outcome)  # noqa: ASYNC102  inside the agent's one shield, bounded by its second point

    async def _end(self, slot: _Slot, outcome: SessionActor | AgentError) -> None:
        """Release the claim, free the slot, and then answer those who wait, in this order."""
        try:
            with self.runtime.lifetime.flushing():
                await self.runtime.claims.release()
        finally:
            # Sync, also when the shield has expired. The slot is free before anybody learns that it is.
            post(self.box, SessionEnded(slot.question))
            if isinstance(outcome, SessionActor):
                slot.actor = None
                outcome.end()
            else:
                with slot.question.reply as reply:
                    reply.send(outcome)

    async def _run(self, slot: _Slot, actor: SessionActor) -> None:
        slot.actor = actor
        reply: Reply[OpenedSession | AgentError] = slot.question.reply
        with reply:
            wanted = not self._shutting_down and self.runtime.lifetime.forced is None and reply.send(actor.opened())
        if not wanted:
            post(actor.box, CloseSession(False, "dropped", None, None))
        await actor.run()

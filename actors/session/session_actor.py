"""One session: history, counters, one turn at a time (semantics 6, 6.3).

Never awaits long work in its loop: turns and the closing run in tasks of their own, so that "busy" and "closed" are
said at once. Whatever ends it, its last sync steps free the slot first and then answer those who wait.
"""

from __future__ import annotations

import contextvars
import logging
from collections import deque
from functools import partial
from typing import assert_never

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.randomness import new_id
from ...messages.content import UserInput
from ...messages.errors import AgentError, InvalidInput, TurnBusy
from ...messages.events import ErrorEvent
from ...messages.hook_payloads import SessionEnd
from ..memory.extractor import Extracted, MemoryFeed
from ..shared.event_stream import EventStream
from ..shared.mailbox import Reply, close_all, post
from ..shared.outcome import StopClock, TurnControl
from ..turn.accepted_turn import AcceptedTurn
from ..turn.pipeline import PipelineRun
from ..turn.session_state import SessionState
from ..turn.turn_actor import Turn
from ..turn.turn_context import TurnContext
from .requests import CloseSession, Finished, OpenedSession, SessionCommand, SetTitle, StartTurn, TurnEnded
from .runtime import Runtime

logger: logging.Logger = logging.getLogger("youyou")


@attrs.define(eq=False)
class SessionActor:
    """Owns the state of a session. ``clock`` bounds its SessionEnd hooks once closing was asked for."""

    runtime: Runtime
    state: SessionState
    feed: MemoryFeed
    clock: StopClock
    box: trio.MemorySendChannel[SessionCommand]
    _inbox: trio.MemoryReceiveChannel[SessionCommand]
    turn: Turn | None = None
    closing: bool = False
    ended: trio.Event = attrs.Factory(trio.Event)
    _queue: deque[tuple[Turn, contextvars.Context]] = attrs.Factory(deque)
    _closers: list[Reply[AgentError | None]] = attrs.Factory(list)
    _graceful: bool = True
    _finishing: bool = False
    _tasks: trio.Nursery | None = None
    _close_error: AgentError | None = None
    _idle: trio.Event = attrs.Factory(trio.Event)

    def __attrs_post_init__(self) -> None:
        self._idle.set()
        self.state.journal.on_lost(self.lose)

    def opened(self) -> OpenedSession:
        """What a handle gets."""
        return OpenedSession(self.state, self.box, self.ended, lambda: self._idle, self._accepted)

    def _accepted(self) -> AcceptedTurn | None:
        return None if self.turn is None else self.turn.accepted()

    @property
    def name(self) -> str:
        """For task names."""
        return f"session {self.state.session_id[:8]}"

    @enable_ki_protection
    async def run(self) -> None:
        """Run the actor until it is closed and its last turn has ended."""
        async with trio.open_nursery() as self._tasks:
            async for command in self._inbox:
                if self._handle(command):
                    break
                # In a task of its own: the end may take long, and the mailbox must go on answering "closed".
                if self.closing and self.turn is None and not self._finishing:
                    self._finishing = True
                    self._tasks.start_soon(self._finish, name=f"closing of {self.name}")

    def _handle(self, command: SessionCommand) -> bool:
        """Deal with one message. Sync. True: the session is over."""
        match command:
            case StartTurn():
                self._start_turn(command)
            case TurnEnded():
                self.turn = None
                self._start_next()
                if self.turn is None:
                    self._idle.set()
            case SetTitle():
                with command.reply as reply:
                    reply.send(self.state.set_title(command.title))
            case CloseSession():
                self._close(command)
            case Extracted():
                self._note_extraction(command)
            case Finished():
                self._close_error = command.error
                return True
            case _:
                assert_never(command)
        return False

    def _start_turn(self, command: StartTurn) -> None:
        with command.reply as reply:
            if self.closing:
                return  # no answer: the handle says whether it is the session or the agent that is closed
            if self.turn is not None and not self.turn.ended.is_set() and not command.queue:
                reply.send(
                    TurnBusy(
                        f"turn {self.turn.context.turn_id[:8]} is still running: wait for turn.result(), cancel it, "
                        "or send with queue=True"
                    )
                )
            else:
                try:
                    turn = self._make_turn(command)
                except AgentError as error:
                    reply.send(error)
                    return
                # The effect follows the answer: an asker that gave up must not find its turn running.
                if reply.send(turn.accepted()):
                    self._queue.append((turn, command.context))
                    self._start_next()

    def _make_turn(self, command: StartTurn) -> Turn:
        runtime, state = self.runtime, self.state
        user_input, steps = command.user_input, PipelineRun()
        if user_input is None:
            user_input, steps = self._unfinished()
        turn_id = new_id()
        stream = EventStream(state.session_id, turn_id, state.numbering, state.setup.config.event_buffer)
        config = state.setup.config
        default_grace = None if config.cancel_grace_ms is None else config.cancel_grace_ms / 1000
        control = TurnControl(StopClock(config.hook_timeout_ms / 1000), stream.open_gate, default_grace=default_grace)
        desk = TurnContext(
            turn_id,
            runtime.lifetime,
            state.setup,
            state.journal,
            control,
            stream,
            runtime.hooks,
            runtime.pool,
            state.call_ids,
            command.output or state.setup.output,
        )
        return Turn(desk, state, user_input, checkpoint=self.feed.checkpoint, steps=steps)

    def _unfinished(self) -> tuple[UserInput, PipelineRun]:
        unfinished = self.state.unfinished
        if unfinished is None:
            raise InvalidInput("no pipeline of this session is unfinished: send a message instead")
        return unfinished.user_input, PipelineRun(dict(unfinished.outputs), unfinished.turn_id)

    def _start_next(self) -> None:
        while self.turn is None and self._queue:
            turn, context = self._queue.popleft()
            # It was stopped while it waited, and has ended itself.
            if turn.ended.is_set():
                continue
            self.turn = turn
            if self._idle.is_set():
                self._idle = trio.Event()
            self.state.turns += 1
            turn.begin(self.state.turns)
            assert self._tasks is not None
            name = f"turn {turn.number} ({self.name})"
            # The sender's context, which the message carried: this task's own would be that of the session's birth.
            context.run(partial(self._tasks.start_soon, self._run_turn, turn, name=name))

    @enable_ki_protection
    async def _run_turn(self, turn: Turn) -> None:
        try:
            await turn.run()
        finally:
            post(self.box, TurnEnded(turn))

    def _close(self, command: CloseSession) -> None:
        if command.reply is not None:
            self._closers.append(command.reply)
        # One forced stop makes the end a forced one, whatever else is asked for before or after.
        self._graceful = self._graceful and command.graceful
        self.closing = True
        self.stop(command.reason, command.grace)

    def stop(self, reason: str, grace: float | None = None) -> None:
        """Stop what runs and what is queued. Sync; also called by a forced shutdown."""
        self.clock.ask(grace)
        if self.turn is not None:
            self.turn.cancel(reason, grace)
        for turn, _ in self._queue:
            turn.cancel(reason, grace)

    def lose(self, error: AgentError) -> None:
        """The session has another owner, or is gone: end it, and leave nothing running. Sync; the recorder calls it."""
        self.clock.ask(0)
        self.feed.abandon()
        if self.turn is not None and not self.turn.ended.is_set():
            self.turn.context.control.lose(error)
        post(self.box, CloseSession(False, "session_taken", 0, None))

    def _note_extraction(self, extracted: Extracted) -> None:
        if extracted.seq is not None:
            self.state.journal.append_metadata("memory_mark", {"seq": extracted.seq})
        if extracted.error is not None and self.turn is not None:
            self.turn.context.events.put(ErrorEvent(extracted.error))

    @enable_ki_protection
    async def _finish(self) -> None:
        """SessionEnd hooks, memory extraction, the last flush."""
        error: AgentError | None = None
        lifetime, state = self.runtime.lifetime, self.state
        try:
            # Not after a host's cancellation: there is no time for hooks and a model request, and what was said is
            # extracted after a resume.
            if self._graceful and lifetime.forced is None:
                with lifetime.user_code():
                    event = SessionEnd(len(state.journal.transcript.history), session_id=state.session_id)
                    await self.runtime.hooks.after(event, self.clock)
                    await self._extract()
            with lifetime.flushing():
                await state.journal.flush_within(self.clock, state.setup.config.closing_ms / 1000)
        except AgentError as failure:
            error = failure
        finally:
            post(self.box, Finished(error))

    async def _extract(self) -> None:
        with self.clock.cut():
            extracted = await self.feed.extract_all()
            if extracted is not None:
                self._note_extraction(extracted)

    def end(self) -> None:
        """Answer everybody who waits. Sync: called when the slot is free."""
        self.ended.set()
        self._idle.set()
        # Before the closers are answered: one that sends another message at once must be refused, not lost.
        close_all(self._inbox)
        for reply in self._closers:
            with reply:
                reply.send(self._close_error)

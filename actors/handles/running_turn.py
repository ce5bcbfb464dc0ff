"""The handle of a turn (semantics 1.1, 6): events, cancel, result."""

from __future__ import annotations

import math
from contextlib import suppress
from types import TracebackType
from typing import Generic, cast, final

import trio
from trio.lowlevel import enable_ki_protection

from ...core.inputs import check_grace
from ...core.stopping import FINAL_STATUSES
from ...messages.content import Content, UserInput
from ...messages.errors import InvalidInput
from ...messages.events import AgentEvent, OutputT, TurnResult, TurnStatus
from ...messages.misuse import misused
from ..shared.deadlock import check_run, refuse_waiting
from ..turn.accepted_turn import AcceptedTurn

_ENDED = "a turn that runs has none yet; write 'result = await turn.result()' and ask result.{}"


@final
@misused(
    made_by=(
        lambda first: isinstance(first, AcceptedTurn),
        "a turn is not made by calling RunningTurn; write 'turn = await session.send_message(...)'",
    ),
    with_="a turn is entered with 'async with': write 'async with await session.send_message(...) as turn:'",
    iterated="events come while the turn runs: write 'async for event in turn:'",
    attributes={name: _ENDED.format(name) for name in ("text", "usage", "error", "tool_results", "output")},
)
class RunningTurn(Generic[OutputT]):
    """A turn that was accepted.

    Synopsis::

        turn = await session.send_message("Weather in Oslo?")
        async for event in turn:            # every event, the terminal one last
            ...
        result = await turn.result()        # never raises for a failed or cancelled turn

    ``break`` pauses the turn at its buffer; `detach` lets it run on unread; ``async with turn:`` cancels it when left
    early. Dropping the handle leaves the turn running. Semantics 6, 6.1.
    """

    def __init__(
        self, turn: AcceptedTurn, keeps_alive: object, token: trio.lowlevel.TrioToken, grace: float | None = None
    ) -> None:
        self._turn = turn
        self._grace = grace
        # A program that holds a turn need not hold its session: it is not dropped as long as one of the two is there.
        self._keeps_alive = keeps_alive
        self._token = token
        self._reader: trio.lowlevel.Task | None = None
        self._read = 0
        self._unread = False

    @property
    def turn_id(self) -> str:
        """Unique among all turns."""
        return self._turn.turn_id

    @property
    def status(self) -> TurnStatus:
        """Where the turn stands. The final ones are set when the terminal event is queued."""
        return self._turn.control.status

    @enable_ki_protection
    def cancel(self, *, grace: float | None = None, after_batch: bool = False) -> bool:
        """Stop the turn: the stream at once, what has not started is skipped, what runs finishes (semantics 6.1).

        Synopsis::

            turn.cancel()               # running tools and hooks finish, within their own time-outs
            turn.cancel(grace=2.5)      # ... or are cut after 2.5 seconds; their outcome is unknown then
            turn.cancel(after_batch=True)       # calls that wait in line run, too; no further request is sent

        Sync, idempotent, callable from any task of the run. A later grace only ever tightens.

        Args:
            grace: seconds until running tools and hooks are cut. 0 cuts at once. None: ``cancel_grace_ms``, else never.
            after_batch: let all calls of the running batch come to their end. A later cancel without it skips them.

        Returns:
            Whether the outcome is *cancelled*. False: it was decided before; the turn may still be on its way out.

        Raises:
            InvalidInput: ``grace`` is not a number; nothing was cancelled.
            WrongTrioRun: called outside the run that the turn belongs to.
        """
        check_run(self._token, "a turn")
        return self._turn.cancel("cancelled", check_grace(grace), after_batch=after_batch)

    @enable_ki_protection
    def steer(self, input: UserInput | Content) -> bool:
        """Put a message into the running turn; it is delivered before the next request (semantics 13).

        Sync. True: it is delivered in this turn, or handed back in the terminal event's ``undelivered``. False: the
        outcome is decided, and nothing was taken.

        Raises:
            InvalidInput, ContentNotSupported: as for `Session.send_message`.
        """
        check_run(self._token, "a turn")
        return self._turn.steer(input)

    @enable_ki_protection
    def detach(self) -> None:
        """Stop reading: the turn runs on, its events are not kept. Sync, idempotent."""
        check_run(self._token, "a turn")
        self._turn.events.reader_gone()

    @enable_ki_protection
    async def wait_status(self, *wanted: TurnStatus) -> TurnStatus:
        """Wait until the turn has one of these statuses, or is over.

        Synopsis::

            await turn.wait_status(TurnStatus.RUNNING)          # it has left the queue
            await turn.wait_status(TurnStatus.CANCELLING)       # somebody stopped it, or it is over
            await turn.wait_status()                            # it is over

        Reads no event: a turn whose buffer is full still waits for its reader. A status that the turn had only for an
        instant is noticed, too; one that it had before the call is not.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the turn goes on.

        Returns:
            The status that ended the wait: one of ``wanted``, or a final one.

        Raises:
            WouldDeadlock: called from a hook, tool or port that the turn waits for.
            WrongTrioRun: called outside the run that the turn belongs to.
        """
        check_run(self._token, "a turn")
        if not self._turn.ended.is_set() and self.status not in wanted:
            refuse_waiting(self._turn.lifetime, "turn.wait_status()")
        return await self._turn.control.wait_status({*wanted, *FINAL_STATUSES}.__contains__)

    @enable_ki_protection
    async def result(self) -> TurnResult[OutputT]:
        """Wait for the end of the turn, letting go of events that nobody has read.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the turn goes on.

        Returns:
            What is left of the turn. Failed and cancelled turns raise nothing: see ``status`` and ``error``.

        Raises:
            WouldDeadlock: called from a hook, tool or port that the turn waits for.
        """
        check_run(self._token, "a turn")
        turn = self._turn
        if not turn.ended.is_set():
            refuse_waiting(turn.lifetime, "turn.result()")
        if self._reader in (None, trio.lowlevel.current_task()):
            self._unread = self._reader is None and not turn.events.detached
            turn.events.reader_gone()
        else:
            # Another task reads: nothing of its is thrown away, and nothing waits for it.
            turn.events.open_gate()
        await turn.ended.wait()
        return cast("TurnResult[OutputT]", turn.result())

    def __aiter__(self) -> RunningTurn[OutputT]:
        # An empty loop would hide the mistake.
        if self._unread and (lost := self._turn.events.dropped):
            raise InvalidInput(
                f"result() has let go of {lost} events that nobody had read; read them first: "
                "'async for event in turn:', and 'await turn.result()' after it"
            )
        return self

    @enable_ki_protection
    async def __anext__(self) -> AgentEvent:
        try:
            task = trio.lowlevel.current_task()
        except RuntimeError:
            task = None
        if task is not self._reader or task is None:
            check_run(self._token, "a turn")  # once for each task: a task never changes its run
            self._reader = task
        events = self._turn.events
        self._read += 1
        if self._read < events.size and (event := events.take()) is not None:
            return event  # noqa: ASYNC910  a checkpoint once per buffer, and whenever there is nothing to read
        # A reader in a tight loop over a full buffer must switch tasks now and then, and need not for each event.
        self._read = 0
        await trio.lowlevel.checkpoint()
        while (event := events.take()) is None:
            if not events.closed:
                refuse_waiting(self._turn.lifetime, "reading the turn's events")
            if not await events.wait_readable():
                raise StopAsyncIteration
        return event

    async def __aenter__(self) -> RunningTurn[OutputT]:
        # No checkpoint: cancelled here, the turn that was just started would run on.
        return self  # noqa: ASYNC910  see above

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._turn.ended.is_set():
            if trio.current_effective_deadline() > -math.inf:
                self._turn.cancel("cancelled")
            refuse_waiting(self._turn.lifetime, "leaving the turn's block")
        try:
            await self._turn.ended.wait()  # noqa: ASYNC102  a cancellation is meant to come out of it
        except trio.Cancelled:
            await self._end()  # noqa: ASYNC102  shielded, with a deadline
            raise

    async def _end(self) -> None:
        """Cut what the turn still runs, and wait for its terminal event: nothing of it comes after the block.

        The grace counts from now, as that of the agent does when the host was cancelled: the two never add up.
        """
        config = self._turn.setup.config
        grace = config.shutdown_grace_ms / 1000 if self._grace is None else self._grace
        self._turn.cancel("cancelled", grace)
        bound = grace + (config.tool_patience_ms + config.closing_ms) / 1000
        with trio.CancelScope(deadline=trio.current_time() + bound, shield=True):
            await self._turn.ended.wait()

    def __del__(self) -> None:
        if hasattr(self, "_turn") and not self._turn.ended.is_set():
            with suppress(trio.RunFinishedError):
                # From `__del__`, which may run in any thread.
                self._token.run_sync_soon(self._turn.events.reader_gone)

    def __repr__(self) -> str:
        return f"<RunningTurn {self.turn_id[:8]} {self.status}>"

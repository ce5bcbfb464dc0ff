"""Carries out the calls of one response (semantics 8).

All read-only: concurrently. Any mutating: one after the other, in order. A failing call never stops its siblings; a
stop skips what has not started. No tool starts before its call and its start are stored. One task, the turn's own,
starts calls and announces their ends; what a tool came to is recorded in the step in which it ends.
"""

from __future__ import annotations

import contextvars
from bisect import insort
from functools import partial

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.tools.call_decisions import Judgement, Refusal, aborted, forbidden, judge, unfit_arguments
from ...core.tools.declaration import batch_is_serial, timeout_of
from ...messages.chat import StopReason
from ...messages.errors import AgentError
from ...messages.events import ToolCallStart, ToolOutput
from ...messages.history import ToolOutcome
from ...messages.hook_payloads import AfterToolUse, BeforeToolUse
from ...messages.text import clean_text
from ..tool_pool.pool import ToolJob, ToolRunResult
from .ledger import Entry, Ledger
from .turn_context import TurnContext


@attrs.frozen(eq=False)
class _Ended:
    """A call whose result is recorded."""

    entry: Entry
    judgement: Judgement
    duration_ms: int


@attrs.define(eq=False)
class ToolBatch:
    """One response's calls on their way to results. ``allowed``: how many may still run in this turn."""

    context: TurnContext
    ledger: Ledger
    tools: frozenset[str]
    stop_reason: StopReason
    allowed: int
    _ready: list[int] = attrs.Factory(list)
    """Calls that may start, in the model's order."""
    _asking: int = 0
    _running: int = 0
    _ended: list[_Ended] = attrs.Factory(list)
    """Calls whose results are recorded, and whose ends are not announced yet."""
    _hooks: trio.Nursery | None = None
    _news: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)

    @enable_ki_protection
    async def run(self) -> None:
        """Carry out every call. Where one could not be stored, no further tool starts and the turn has failed.

        Cancellation: by a forced shutdown only; a turn's cancel skips what has not started and waits for what runs.
        """
        calls = range(len(self.ledger.entries))
        taps = self.context.hooks.registry.taps
        try:
            # The whole batch in order as soon as one call has side effects: what a read-only call reads may depend on
            # it.
            if batch_is_serial([entry.call for entry in self.ledger.entries], self.context.registry.tools):
                for index in calls:
                    await self._prepare(index)
                    await self._carry_out()
            elif taps(BeforeToolUse) or taps(AfterToolUse):
                async with trio.open_nursery() as self._hooks:
                    self._asking = len(calls)
                    self._ask_next(0)
                    await self._carry_out()
            else:
                # Without a hook there is nothing to wait for before a call: no task for each, and one flush for all.
                for index in calls:
                    await self._prepare(index)
                await self._carry_out()
        finally:
            self.ledger.finalize()

    def _ask_next(self, index: int) -> None:
        # Each starts the one behind it: the first steps of tasks that were started together come in any order.
        if index < len(self.ledger.entries):
            assert self._hooks is not None
            name = f"call {self.ledger.entries[index].call.tool_name}"
            self._hooks.start_soon(self._prepare_beside_others, index, name=name)

    @enable_ki_protection
    async def _prepare_beside_others(self, index: int) -> None:
        self._ask_next(index + 1)
        try:
            await self._prepare(index)
            # What the hook has set, such as a span, is for this call alone, and for its tool.
            self.ledger.entries[index].variables = contextvars.copy_context()
        finally:
            self._asking -= 1
            self._news.unpark_all()

    async def _prepare(self, index: int) -> None:
        """All that comes before a call is stored as started: it is refused, or ready."""
        entry = self.ledger.entries[index]
        if self.context.control.batch_stopped:
            return
        refused = forbidden(
            entry.call,
            index=index,
            allowed=self.allowed,
            stop_reason=self.stop_reason,
            offered=self.tools,
        )
        if refused is None:
            refused = await self._ask_hooks(entry)
        if self.context.control.batch_stopped:
            return
        if refused is not None:
            await self._refuse(entry, refused)
        else:
            # Only now, after its hook: a call whose hook still asks (a person, perhaps) must hold up nobody.
            insort(self._ready, index)

    async def _carry_out(self) -> None:
        """Start what is ready, and announce what has ended, until nothing is left to wait for."""
        pool = self.context.pool
        while True:
            startable = bool(self._ready) and pool.open and not self.context.control.batch_stopped
            if startable and pool.free:
                await self._start(pool.free)
            elif self._ended:
                await self._announce_ends()
            elif self._running or self._asking:
                await self._news.park()
            elif startable:
                with self.context.control.interruptible(of_batch=True), self.context.control.clock.cut():
                    await pool.wait_free()
            else:
                return

    async def _start(self, free: int) -> None:
        """Write-ahead, with one flush, for the calls that start at once; those that have to wait are not *started*."""
        context = self.context
        group = [self.ledger.entries[index] for index in self._ready[:free]]
        del self._ready[:free]
        for entry in group:
            started = {"call_id": entry.call.call_id, "arguments": entry.call.arguments}
            context.journal.append_metadata("tool_started", started)
        try:
            await context.flush()
        except AgentError as error:
            await self._storage_failed(error)
        if context.control.batch_stopped or not context.pool.open:
            return
        for entry in group:
            if entry.variables is None:
                self._start_one(entry)
            else:
                entry.variables.run(self._start_one, entry)

    def _start_one(self, entry: Entry) -> None:
        context, call = self.context, entry.call
        handler = context.registry.tools[call.tool_name]
        timeout_ms = timeout_of(handler, context.config.tool_timeout_ms)
        job = ToolJob(
            call=call,
            handler=handler,
            timeout=timeout_ms / 1000,
            control=context.control,
            events=context.events,
            on_end=partial(self._record, entry, timeout_ms),
        )
        context.pool.start(job)
        # The commit: from here on the call is never skipped.
        entry.accept()
        self._running += 1
        context.events.put(ToolCallStart(call.call_id, call.tool_name, call.arguments))

    def _record(self, entry: Entry, timeout_ms: int, ran: ToolRunResult) -> None:
        """A tool has ended: record the outcome at once, before anything is awaited. Sync, in the tool's task."""
        if entry.result is not None:
            return  # the turn was cut, and has settled it
        judgement = judge(entry.call, ran.outcome, timeout_ms=timeout_ms, notices=self.context.config.notices)
        self.ledger.record_result(entry, judgement.output.content, judgement.outcome)
        self._running -= 1
        self._ended.append(_Ended(entry, judgement, ran.duration_ms))
        self._news.unpark_all()

    async def _announce_ends(self) -> None:
        context = self.context
        ended, self._ended = self._ended, []
        try:
            await context.flush()
        except AgentError as failure:
            await self._storage_failed(failure)
        for each in ended:
            await context.emit(self.ledger.end_event(each.entry, each.judgement, each.duration_ms))
            each.entry.ended = True
            if not context.hooks.registry.taps(AfterToolUse):
                continue
            if self._hooks is None:
                await self._after(each)
            else:
                run = each.entry.variables.run if each.entry.variables is not None else contextvars.copy_context().run
                run(partial(self._hooks.start_soon, self._after, each, name=f"after {each.entry.call.tool_name}"))

    @enable_ki_protection
    async def _after(self, ended: _Ended) -> None:
        context, call, judgement = self.context, ended.entry.call, ended.judgement
        event = AfterToolUse(
            call.call_id,
            call.tool_name,
            judgement.output,
            ended.duration_ms,
            judgement.error is None,
            session_id=context.journal.session_id,
            turn_id=context.turn_id,
        )
        for problem in await context.hooks.after(event, context.control.clock):
            await context.emit_error(problem)

    async def _ask_hooks(self, entry: Entry) -> Refusal | None:
        """The hooks and the schema. Afterwards ``entry.call`` has the arguments that will run."""
        context, call = self.context, entry.call
        if context.hooks.registry.taps(BeforeToolUse):
            event = BeforeToolUse(
                call.call_id,
                call.tool_name,
                call.arguments,
                session_id=context.journal.session_id,
                turn_id=context.turn_id,
            )
            # While the batch may go on after a stop, so must what guards its calls.
            outcome = await context.hooks.before(event, context.control.clock, lambda: context.control.batch_stopped)
            if outcome.abort is not None:
                return aborted(outcome.abort, outcome.error, context.config.notices)
            entry.call = attrs.evolve(call, arguments=outcome.event.arguments)
        return unfit_arguments(call, entry.call.arguments, context.registry.checkers[call.tool_name])

    async def _refuse(self, entry: Entry, refused: Refusal) -> None:
        content = clean_text(refused.content)
        self.ledger.record_result(entry, content, ToolOutcome.FAILED)
        call = entry.call
        await self.context.emit(ToolCallStart(call.call_id, call.tool_name, call.arguments))
        judgement = Judgement(ToolOutput(content, True), ToolOutcome.FAILED, refused.error)
        await self.context.emit(self.ledger.end_event(entry, judgement, 0))
        entry.ended = True

    async def _storage_failed(self, error: AgentError) -> None:
        # Not raised: siblings that run go on. The turn reports an error that decided its outcome at its end.
        self.context.control.batch_goes_on = False
        if not self.context.control.fail(error):
            await self.context.emit_error(error)

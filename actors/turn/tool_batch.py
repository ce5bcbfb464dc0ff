"""Carries out the calls of one response (semantics 8).

All read-only: concurrently. Any mutating: one after the other, in order. A failing call never stops its siblings; a
stop skips what no worker has taken. No tool starts before its call and its start are stored.
"""

from __future__ import annotations

import contextvars

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.ports.protocols import ToolHandler
from ...core.stopping import CutReason
from ...core.tools.call_decisions import Refusal, aborted, forbidden, judge, unfit_arguments
from ...core.tools.declaration import batch_is_serial, timeout_of
from ...messages.chat import StopReason
from ...messages.errors import AgentError
from ...messages.events import ToolCallStart, ToolOutput
from ...messages.history import ToolOutcome
from ...messages.hook_payloads import AfterToolUse, BeforeToolUse
from ...messages.text import clean_text
from ..shared.mailbox import Reply
from ..tool_pool.pool import ToolJob, ToolRunResult
from .call_order import CallOrder
from .ledger import Entry, Ledger
from .turn_context import TurnContext


@attrs.define(eq=False)
class ToolBatch:
    """One response's calls on their way to results. ``allowed``: how many may still run in this turn."""

    context: TurnContext
    ledger: Ledger
    tools: frozenset[str]
    stop_reason: StopReason
    allowed: int
    _order: CallOrder = attrs.Factory(CallOrder)

    @enable_ki_protection
    async def run(self) -> None:
        """Carry out every call. Where one could not be stored, no further tool starts and the turn has failed.

        Cancellation: by a forced shutdown only; a turn's cancel skips what has not started and waits for what runs.
        """
        try:
            # The whole batch in order as soon as one call has side effects: what a read-only call reads may depend on
            # it.
            if batch_is_serial([entry.call for entry in self.ledger.entries], self.context.registry.tools):
                for index, entry in enumerate(self.ledger.entries):
                    await self._one(entry, index)
            else:
                async with trio.open_nursery() as nursery:
                    for index, entry in enumerate(self.ledger.entries):
                        # Not start_soon: the first steps of tasks that were started together come in any order.
                        await nursery.start(self._one, entry, index, name=f"call {entry.call.tool_name}")
        finally:
            self.ledger.finalize()

    @enable_ki_protection
    async def _one(
        self, entry: Entry, index: int, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        # At once: `start` is used for the order of beginnings alone, and nothing here shields, so it cannot hang (trio
        # #2895).
        task_status.started()
        if self.context.control.stopping:
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
        if self.context.control.stopping:
            return
        if refused is not None:
            await self._refuse(entry, refused)
            return
        # Only now, after its hook: a call whose hook still asks (a person, perhaps) must hold up nobody.
        self._order.enter(index)
        try:
            if await self._stored(entry):
                await self._execute(entry, index)
        finally:
            self._order.leave(index)

    async def _ask_hooks(self, entry: Entry) -> Refusal | None:
        """The hooks and the schema. Afterwards ``entry.call`` has the arguments that will run."""
        context, call = self.context, entry.call
        event = BeforeToolUse(
            call.call_id,
            call.tool_name,
            call.arguments,
            session_id=context.journal.session_id,
            turn_id=context.turn_id,
        )
        outcome = await context.hooks.before(event, context.control.clock)
        if outcome.abort is not None:
            return aborted(outcome.abort, outcome.error, context.config.notices)
        entry.call = attrs.evolve(call, arguments=outcome.event.arguments)
        return unfit_arguments(call, outcome.event.arguments, context.registry.checkers[call.tool_name])

    async def _refuse(self, entry: Entry, refused: Refusal) -> None:
        self.ledger.record_result(entry, clean_text(refused.content), ToolOutcome.FAILED)
        call = entry.call
        await self.context.emit(ToolCallStart(call.call_id, call.tool_name, call.arguments))
        await self.context.emit(
            self.ledger.end_event(entry, ToolOutput(clean_text(refused.content), True), 0, refused.error)
        )

    async def _stored(self, entry: Entry) -> bool:
        """Write-ahead: whether the call and its start are stored and it may still start."""
        journal = self.context.journal
        started = {"call_id": entry.call.call_id, "arguments": entry.call.arguments}
        try:
            await journal.flush(journal.append_metadata("tool_started", started))
        except AgentError as error:
            await self._storage_failed(error)
        return not self.context.control.stopping

    async def _storage_failed(self, error: AgentError) -> None:
        # Not raised: siblings that run go on. The turn reports an error that decided its outcome at its end.
        if not self.context.control.fail(error):
            await self.context.emit_error(error)

    async def _execute(self, entry: Entry, index: int) -> None:
        handler = self.context.registry.tools[entry.call.tool_name]
        timeout_ms = timeout_of(handler, self.context.config.tool_timeout_ms)
        ran = await self._submit(entry, index, handler, timeout_ms / 1000)
        if ran is not None:
            await self._finish(entry, ran, timeout_ms)

    async def _submit(self, entry: Entry, index: int, handler: ToolHandler, limit: float) -> ToolRunResult | None:
        """Hand the call to a worker and wait for its outcome. None: no worker took it."""
        context = self.context
        answering, waiting = trio.open_memory_channel[ToolRunResult](1)
        with waiting:
            job = ToolJob(
                entry.call,
                handler,
                limit,
                context.control,
                context.events,
                contextvars.copy_context(),
                Reply(answering),
            )
            try:
                with context.control.interruptible():
                    await self._order.wait_first(index)
                    await context.jobs.send(job)
                    # The commit: when the send returns a worker has the job, whatever is cancelled from here on.
                    entry.accept()
                    context.events.put(ToolCallStart(entry.call.call_id, entry.call.tool_name, entry.call.arguments))
                    self._order.leave(index)
            except trio.BrokenResourceError:
                pass  # the pool has ended: the agent is on its way out
            # Not `cancel_called`: a cancel may come after the worker took the job. What was set right after the send
            # decides.
            if entry.accepted_at is None:
                job.reply.close()
                return None
            try:
                return await waiting.receive()
            # The pool died with the job in hand: its effect is unknown.
            except trio.EndOfChannel:
                return ToolRunResult(CutReason.INTERRUPTED, 0)

    async def _finish(self, entry: Entry, ran: ToolRunResult, timeout_ms: int) -> None:
        context = self.context
        judgement = judge(entry.call, ran.outcome, timeout_ms=timeout_ms, notices=context.config.notices)
        output, error = judgement.output, judgement.error
        self.ledger.record_result(entry, output.content, judgement.outcome)
        try:
            await context.journal.flush()
        except AgentError as failure:
            await self._storage_failed(failure)
        await context.emit(self.ledger.end_event(entry, output, ran.duration_ms, error))
        event = AfterToolUse(
            entry.call.call_id,
            entry.call.tool_name,
            output,
            ran.duration_ms,
            error is None,
            session_id=context.journal.session_id,
            turn_id=context.turn_id,
        )
        for problem in await context.hooks.after(event, context.control.clock):
            await context.emit_error(problem)

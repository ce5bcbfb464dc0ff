"""Each announced call gets exactly one result (semantics 5): the account of one response's calls.

A call is announced before it is submitted; whatever happens after that, closing the ledger gives it its outcome:
never started is skipped, started and not known to be over is outcome unknown.
"""

from __future__ import annotations

import contextvars
from collections.abc import Sequence

import attrs
import trio

from ...core.stopping import outcome_of_open_call
from ...core.tools.call_decisions import Judgement, unreported
from ...messages.events import ToolCallEnd, ToolOutput
from ...messages.history import ToolCall, ToolOutcome, ToolResult
from .turn_context import TurnContext


@attrs.define(eq=False)
class Entry:
    """One call. ``accepted_at``: when a worker took it."""

    call: ToolCall
    accepted_at: float | None = None
    result: ToolResult | None = None
    ended: bool = False
    """Its end was announced."""
    variables: contextvars.Context | None = None
    """The context variables that its hooks left. None: those of the turn."""

    def accept(self) -> None:
        """A worker has it: from now on it is never skipped."""
        self.accepted_at = trio.current_time()


@attrs.define(eq=False)
class Ledger:
    """The calls of one response, in the model's order."""

    context: TurnContext
    entries: tuple[Entry, ...]

    @classmethod
    def announce(cls, context: TurnContext, calls: Sequence[ToolCall]) -> Ledger:
        """Open the account."""
        return cls(context, tuple(Entry(call) for call in calls))

    def record_result(self, entry: Entry, content: str, outcome: ToolOutcome) -> None:
        """Give a call its result, and post it to the log at once. Sync."""
        assert entry.result is None
        entry.result = ToolResult(entry.call.call_id, content, outcome)
        # Into the log at once, in order of completion: a crash must not lose a result that is there. History gets it in
        # the model's order, at the end.
        self.context.journal.append_log_only(entry.result)
        if outcome is ToolOutcome.SKIPPED:
            self.context.skipped.append(entry.call.call_id)
        if outcome is ToolOutcome.UNKNOWN:
            self.context.interrupted.append(entry.call.call_id)

    def end_event(self, entry: Entry, judgement: Judgement, duration_ms: int) -> ToolCallEnd:
        """The event that a call is over."""
        error = judgement.error
        return ToolCallEnd(
            entry.call.call_id, entry.call.tool_name, judgement.output, duration_ms, error is None, error
        )

    def finalize(self) -> None:
        """Settle what is open and let the results enter history. Sync, so that a ``finally`` can call it."""
        notices = self.context.config.notices
        for entry in self.entries:
            if entry.result is None:
                outcome = outcome_of_open_call(accepted=entry.accepted_at is not None)
                skipped = outcome is ToolOutcome.SKIPPED
                self.record_result(entry, notices.skipped_tool if skipped else notices.unknown_outcome, outcome)
            # A start was announced to the host, so an end must be.
            if entry.accepted_at is not None and not entry.ended:
                self._end_now(entry, entry.accepted_at)
            assert entry.result is not None
            self.context.journal.transcript.append(entry.result)
            self.context.results.append(entry.result)

    def _end_now(self, entry: Entry, accepted_at: float) -> None:
        assert entry.result is not None
        duration = round((trio.current_time() - accepted_at) * 1000)
        result = entry.result
        judgement = Judgement(ToolOutput(result.content, result.is_error), result.outcome, unreported(result.is_error))
        self.context.events.put(self.end_event(entry, judgement, duration))
        entry.ended = True

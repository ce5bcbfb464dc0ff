"""What ``youyou demo`` promises, checked against what was seen."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...messages.events import AgentEvent, ToolCallEnd, ToolCallStart, TurnResult, TurnStatus
from ...messages.history import Message, ToolOutcome
from .plan import CUT_BATCH, CUT_STREAM, IN_TURN, SIDE_BY_SIDE, PlannedTurn


@attrs.frozen
class Check:
    """One promise and whether it was kept."""

    ok: bool
    what: str

    def __str__(self) -> str:
        return f"{'ok ' if self.ok else 'NOT'}  {self.what}"


@attrs.define(eq=False)
class Seen:
    """What happened."""

    results: list[tuple[PlannedTurn, TurnResult]] = attrs.Factory(list)
    cancels: list[tuple[PlannedTurn, float]] = attrs.Factory(list)
    peak_tools: int = 0
    together: dict[PlannedTurn, int] = attrs.Factory(dict)
    """The most tools of a turn that ran at once."""
    _running: set[str] = attrs.Factory(set)

    def take(self, planned: PlannedTurn, event: AgentEvent, now: float) -> None:
        """The next event."""
        match event.payload:
            case ToolCallStart(call_id=call_id):
                self._running.add(call_id)
            case ToolCallEnd(call_id=call_id):
                self._running.discard(call_id)
        self.together[planned] = max(self.together.get(planned, 0), len(self._running))

    def result(self, wanted: PlannedTurn) -> TurnResult:
        """How this turn ended."""
        return next(result for planned, result in self.results if planned is wanted)


def checks(seen: Seen, before: Sequence[Message], resumed: Sequence[Message], problem: str | None) -> list[Check]:
    """Every promise of the demonstration."""
    written = [result.outcome for result in seen.result(IN_TURN).tool_results]
    batch, stream = seen.result(CUT_BATCH), seen.result(CUT_STREAM)
    statuses = [result.status for planned, result in seen.results if planned.cancel_at is None]
    stopped = next((spent for planned, spent in seen.cancels if planned is CUT_STREAM), None)
    outcomes = [result.outcome for result in batch.tool_results]
    finished = outcomes.count(ToolOutcome.OK)
    return [
        Check(all(s is TurnStatus.COMPLETED for s in statuses), f"{len(statuses)} turns completed"),
        Check(seen.together[SIDE_BY_SIDE] > 1, f"{seen.together[SIDE_BY_SIDE]} read-only tools ran at once"),
        Check(
            len(written) > 1 and seen.together[IN_TURN] == 1,
            f"{len(written)} calls of a batch that changes something ran one after the other",
        ),
        Check(
            batch.status is TurnStatus.CANCELLED and finished == 1 and len(batch.skipped) > 0,
            f"of the cancelled batch {finished} tool finished and {len(batch.skipped)} were skipped",
        ),
        Check(
            stream.status is TurnStatus.CANCELLED and bool(stream.text) and stopped is not None,
            f"the cancelled answer ended {(stopped or 0) * 1000:.0f} ms after the cancel and is kept as far as it came",
        ),
        Check(bool(before) and before == resumed, f"the resumed session holds the same {len(resumed)} messages"),
        Check(problem is None, f"its history can be sent to any model{f': {problem}' if problem else ''}"),
    ]

"""How a turn may end, and what a stop cuts (semantics 6.1). Pure: times are seconds of the caller's clock.

    state = next_state(TurnState.RUNNING, TurnInput.CANCEL)     # TurnState.CANCELLING
    stop = Stop().asked_for(now, grace=2.5)
    deadline(Work.TOOL, stop, started=now, hook_timeout=5.0)    # now + 2.5
    outcome_of_open_call(accepted=False)                        # ToolOutcome.SKIPPED

`math.inf` stands for "never": not asked for, not cut.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

import attrs

from ..messages.events import TurnStatus
from ..messages.history import ToolOutcome


class TurnState(Enum):
    """Where a turn stands. ``...ING``: its outcome is decided, its terminal event is not queued yet."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETING = "completing"
    FAILING = "failing"
    CANCELLING = "cancelling"
    LOSING = "losing"
    """Its log has another owner, or is gone (semantics 7): it is cut, and will have failed."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TurnInput(Enum):
    """What can happen to a turn."""

    START = "start"
    """It leaves the queue."""
    COMMIT = "commit"
    """The last answer is whole."""
    FAIL = "fail"
    """An error that ends it."""
    CANCEL = "cancel"
    """Somebody asks to stop."""
    LOSE = "lose"
    """Its log has another owner: nothing of it will be stored, whatever was decided."""
    END = "end"
    """Its terminal event is queued."""


TRANSITIONS: Final[Mapping[tuple[TurnState, TurnInput], TurnState]] = {
    (TurnState.QUEUED, TurnInput.START): TurnState.RUNNING,
    (TurnState.QUEUED, TurnInput.FAIL): TurnState.FAILING,
    (TurnState.QUEUED, TurnInput.CANCEL): TurnState.CANCELLING,
    (TurnState.RUNNING, TurnInput.COMMIT): TurnState.COMPLETING,
    (TurnState.RUNNING, TurnInput.FAIL): TurnState.FAILING,
    (TurnState.RUNNING, TurnInput.CANCEL): TurnState.CANCELLING,
    (TurnState.QUEUED, TurnInput.LOSE): TurnState.LOSING,
    (TurnState.RUNNING, TurnInput.LOSE): TurnState.LOSING,
    (TurnState.COMPLETING, TurnInput.LOSE): TurnState.LOSING,
    (TurnState.FAILING, TurnInput.LOSE): TurnState.LOSING,
    (TurnState.CANCELLING, TurnInput.LOSE): TurnState.LOSING,
    (TurnState.COMPLETING, TurnInput.END): TurnState.COMPLETED,
    (TurnState.FAILING, TurnInput.END): TurnState.FAILED,
    (TurnState.CANCELLING, TurnInput.END): TurnState.CANCELLED,
    (TurnState.LOSING, TurnInput.END): TurnState.FAILED,
}
"""All transitions. What is not in here changes nothing: the first of completed, failed and cancelled wins.

A lost log outranks all three.
"""

OUTCOMES: Final[Mapping[TurnState, TurnStatus]] = {
    TurnState.COMPLETING: TurnStatus.COMPLETED,
    TurnState.FAILING: TurnStatus.FAILED,
    TurnState.CANCELLING: TurnStatus.CANCELLED,
    TurnState.LOSING: TurnStatus.FAILED,
    TurnState.COMPLETED: TurnStatus.COMPLETED,
    TurnState.FAILED: TurnStatus.FAILED,
    TurnState.CANCELLED: TurnStatus.CANCELLED,
}
"""The outcome that is decided in a state; where a state is missing, none is."""


FINAL_STATUSES: Final = frozenset({TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED})
"""The statuses of a turn that is over."""


def next_state(state: TurnState, happened: TurnInput) -> TurnState:
    """Where a turn stands after this."""
    return TRANSITIONS.get((state, happened), state)


def status_of(state: TurnState) -> TurnStatus:
    """What a host sees of a state. A decided outcome other than a cancel shows when the terminal event is queued."""
    if state in (TurnState.COMPLETING, TurnState.FAILING):
        return TurnStatus.RUNNING
    if state is TurnState.LOSING:
        return TurnStatus.CANCELLING
    return TurnStatus(state.value)


class Work(Enum):
    """What can be under way when a stop is asked for."""

    INTERRUPTIBLE = auto()
    """A stream, the wait before a retry, a memory search, a compaction request, the handing over of a call."""
    HOOK = auto()
    TOOL = auto()
    """A tool, or an extraction: it has a bound of its own."""


@attrs.frozen
class Stop:
    """``asked``: when a stop was first asked for. ``cut_at``: when a grace cuts what still runs."""

    asked: float = math.inf
    cut_at: float = math.inf

    def asked_for(self, now: float, grace: float | None) -> Stop:
        """After one more request to stop. Nothing is ever put off: the earliest request and the earliest cut stay."""
        cut_at = math.inf if grace is None else now + max(0.0, grace)
        return Stop(min(self.asked, now), min(self.cut_at, cut_at))


def deadline(work: Work, stop: Stop, *, started: float, hook_timeout: float) -> float:
    """Until when work that began at ``started`` may go on.

    Without a stop nothing bounds it here. A hook has its time-out from the stop, or from its own start if that is
    later: hooks that are due after a stop run, too, and one by one (decision 0004).
    """
    match work:
        case Work.INTERRUPTIBLE:
            return stop.asked
        case Work.HOOK:
            return min(max(stop.asked, started) + hook_timeout, stop.cut_at)
        case Work.TOOL:
            return stop.cut_at


class CutReason(Enum):
    """Why a tool was stopped before it was done."""

    TIMED_OUT = auto()
    INTERRUPTED = auto()


def cut_reason(*, timed_out_at: float, cut_at: float, now: float) -> CutReason:
    """Whether a tool's own time-out has ended it, or a stop. Its time-out counts if it came first."""
    return CutReason.TIMED_OUT if timed_out_at <= cut_at and now >= timed_out_at else CutReason.INTERRUPTED


def outcome_of_open_call(*, accepted: bool) -> ToolOutcome:
    """What an announced call without a result comes to: one that no worker took has had no effect."""
    return ToolOutcome.UNKNOWN if accepted else ToolOutcome.SKIPPED

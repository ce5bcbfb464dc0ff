"""How a turn may end and what a stop cuts, as tables (semantics 6.1)."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest
from youyou.core.stopping import (
    FINAL_STATUSES,
    OUTCOMES,
    TRANSITIONS,
    CutReason,
    Stop,
    TurnInput,
    TurnState,
    Work,
    cut_reason,
    deadline,
    next_state,
    outcome_of_open_call,
    status_of,
)
from youyou.messages.events import TurnStatus
from youyou.messages.history import ToolOutcome

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
DECISIONS = [TurnInput.COMMIT, TurnInput.FAIL, TurnInput.CANCEL]
NEVER = math.inf


@pytest.mark.parametrize("order", [*itertools.permutations(DECISIONS)], ids=str)
def test_the_first_of_completed_failed_and_cancelled_wins(order):
    """Whatever comes after the first decision changes nothing any more."""
    state = next_state(TurnState.RUNNING, order[0])
    decided = OUTCOMES[state]
    for happened in (*order[1:], TurnInput.START, TurnInput.END, *order):
        state = next_state(state, happened)
    assert (decided, decided) == (OUTCOMES[state], status_of(state))


@pytest.mark.parametrize("state", [state for state in TurnState if state.value not in set(FINAL_STATUSES)])
def test_a_lost_log_outranks_what_was_decided(state):
    """What is not stored and never will be has failed; only a turn that is over stays what it was."""
    lost = next_state(state, TurnInput.LOSE)
    assert (TurnState.LOSING, TurnState.FAILED) == (lost, next_state(lost, TurnInput.END))


@pytest.mark.parametrize(
    ("state", "outcome", "status"),
    [
        (TurnState.QUEUED, None, TurnStatus.QUEUED),
        (TurnState.RUNNING, None, TurnStatus.RUNNING),
        (TurnState.COMPLETING, TurnStatus.COMPLETED, TurnStatus.RUNNING),
        (TurnState.FAILING, TurnStatus.FAILED, TurnStatus.RUNNING),
        (TurnState.CANCELLING, TurnStatus.CANCELLED, TurnStatus.CANCELLING),
        (TurnState.LOSING, TurnStatus.FAILED, TurnStatus.CANCELLING),
        (TurnState.COMPLETED, TurnStatus.COMPLETED, TurnStatus.COMPLETED),
        (TurnState.FAILED, TurnStatus.FAILED, TurnStatus.FAILED),
        (TurnState.CANCELLED, TurnStatus.CANCELLED, TurnStatus.CANCELLED),
    ],
)
def test_what_a_state_decides_and_shows(state, outcome, status):
    """A cancel shows at once; completed and failed show when the terminal event is queued."""
    assert (outcome, status) == (OUTCOMES.get(state), status_of(state))


def test_a_turn_that_waits_in_the_queue_cannot_be_completed():
    """It was never asked; it can be stopped, and it can fail with its session."""
    after = {happened: next_state(TurnState.QUEUED, happened) for happened in TurnInput}
    assert after == {
        TurnInput.START: TurnState.RUNNING,
        TurnInput.COMMIT: TurnState.QUEUED,
        TurnInput.FAIL: TurnState.FAILING,
        TurnInput.CANCEL: TurnState.CANCELLING,
        TurnInput.LOSE: TurnState.LOSING,
        TurnInput.END: TurnState.QUEUED,
    }


def test_every_state_is_reached_and_only_the_final_ones_are_left_by_nothing():
    """The table has no dead end but the three ends."""
    left = {state for state, _ in TRANSITIONS}
    assert set(TurnState) == {*TRANSITIONS.values(), TurnState.QUEUED}
    assert {status.value for status in FINAL_STATUSES} == {state.value for state in set(TurnState) - left}


def test_the_documented_table_is_the_one_that_runs():
    """docs/architecture.md shows the states and transitions as they are."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \|$", ARCHITECTURE.read_text(), re.MULTILINE)
    table = [(state.value, happened.value, after.value) for (state, happened), after in TRANSITIONS.items()]
    assert table == rows


@pytest.mark.parametrize(
    ("requests", "asked", "cut_at"),
    [
        ([], NEVER, NEVER),
        ([(10, None)], 10, NEVER),
        ([(10, 0)], 10, 10),
        ([(10, -3)], 10, 10),
        ([(10, 5)], 10, 15),
        ([(10, 5), (12, None)], 10, 15),
        ([(10, None), (12, 5)], 10, 17),
        ([(10, 5), (11, 9)], 10, 15),
        ([(10, 5), (11, 1)], 10, 12),
    ],
)
def test_a_stop_that_is_asked_for_again_only_tightens(requests, asked, cut_at):
    """The first request counts for hooks, the earliest cut for all that runs."""
    stop = Stop()
    for now, grace in requests:
        stop = stop.asked_for(now, grace)
    assert Stop(asked, cut_at) == stop


@pytest.mark.parametrize(
    ("work", "stop", "started", "until"),
    [
        (Work.INTERRUPTIBLE, Stop(), 3, NEVER),
        (Work.INTERRUPTIBLE, Stop(10), 3, 10),
        (Work.INTERRUPTIBLE, Stop(10, 15), 3, 10),
        (Work.TOOL, Stop(), 3, NEVER),
        (Work.TOOL, Stop(10), 3, NEVER),
        (Work.TOOL, Stop(10, 15), 3, 15),
        (Work.HOOK, Stop(), 3, NEVER),
        (Work.HOOK, Stop(10), 3, 12),  # it runs when the stop comes: its time-out from the stop
        (Work.HOOK, Stop(10), 14, 16),  # it is due after the stop: its time-out from its own start
        (Work.HOOK, Stop(10, 11), 3, 11),
        (Work.HOOK, Stop(10, 15), 14, 15),
    ],
)
def test_until_when_work_may_go_on(work, stop, started, until):
    """A stop ends waits at once, bounds hooks by their time-out, and cuts tools by a grace alone."""
    assert until == deadline(work, stop, started=started, hook_timeout=2)


@pytest.mark.parametrize(
    ("timed_out_at", "cut_at", "now", "reason"),
    [
        (5, NEVER, 5, CutReason.TIMED_OUT),
        (5, 5, 5, CutReason.TIMED_OUT),
        (5, 4, 6, CutReason.INTERRUPTED),
        (5, 9, 6, CutReason.TIMED_OUT),
        (5, 9, 4, CutReason.INTERRUPTED),
        (5, 4, 4, CutReason.INTERRUPTED),
    ],
)
def test_whether_a_tool_timed_out_or_was_interrupted(timed_out_at, cut_at, now, reason):
    """What came first counts; at the same instant it is its own time-out."""
    assert reason is cut_reason(timed_out_at=timed_out_at, cut_at=cut_at, now=now)


@pytest.mark.parametrize(("accepted", "outcome"), [(False, ToolOutcome.SKIPPED), (True, ToolOutcome.UNKNOWN)])
def test_what_a_call_without_a_result_comes_to(accepted, outcome):
    """One that no worker took had no effect; of one that was taken nobody knows."""
    assert outcome is outcome_of_open_call(accepted=accepted)

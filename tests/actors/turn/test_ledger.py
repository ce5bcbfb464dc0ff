"""Each announced call gets exactly one result, without an agent (semantics 5)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import trio
from youyou import Notices, ToolCall, ToolCallEnd, ToolOutcome, ToolResult
from youyou.actors.shared.event_stream import EventStream, Numbering
from youyou.actors.turn.ledger import Ledger

NOTICES = Notices.english()


class Journal:
    """Keeps what would be stored, and what enters history."""

    def __init__(self):
        self.logged, self.history = [], []
        self.transcript = SimpleNamespace(append=self.history.append)
        self.append_log_only = self.logged.append


@pytest.fixture
def context():
    """As much of a turn as a ledger needs."""
    events = EventStream("s", "t", Numbering(), 99)
    config = SimpleNamespace(notices=NOTICES)
    return SimpleNamespace(
        journal=Journal(), events=events, config=config, results=[], skipped=[], interrupted=[]
    )  # fmt: skip


@pytest.fixture
def ledger(context):
    """Three calls, in the model's order."""
    return Ledger.announce(context, [ToolCall(name, name, {}) for name in ("a", "b", "c")])


def announced(context):
    """The ends of calls that a reader sees."""
    events = []
    while (event := context.events.take()) is not None:
        assert isinstance(event.payload, ToolCallEnd)
        events.append((event.payload.call_id, event.payload.success, event.payload.duration_ms))
    return events


async def test_what_no_worker_took_is_skipped_and_what_one_took_is_unknown(ledger, context, autojump_clock):
    """Whatever happened in between: closing the ledger settles what is open."""
    ledger.entries[1].accept()
    ledger.finalize()
    expected = [
        ToolResult("a", NOTICES.skipped_tool, ToolOutcome.SKIPPED),
        ToolResult("b", NOTICES.unknown_outcome, ToolOutcome.UNKNOWN),
        ToolResult("c", NOTICES.skipped_tool, ToolOutcome.SKIPPED),
    ]
    assert (expected, expected, expected) == (context.journal.logged, context.journal.history, context.results)
    assert (["a", "c"], ["b"]) == (context.skipped, context.interrupted)


async def test_results_are_stored_as_they_come_and_enter_history_in_the_order_of_the_calls(
    ledger, context, autojump_clock
):
    """A crash must not lose a result that is there."""
    first, second, third = ledger.entries
    for entry in (third, first, second):
        entry.accept()
        ledger.record_result(entry, f"{entry.call.call_id} ran", ToolOutcome.OK)
        entry.ended = True
    assert (["c", "a", "b"], []) == ([each.call_id for each in context.journal.logged], context.journal.history)
    ledger.finalize()
    assert ["a", "b", "c"] == [each.call_id for each in context.journal.history]
    assert ([], []) == (context.skipped, context.interrupted)
    assert [] == announced(context)


@pytest.mark.parametrize(("outcome", "success"), [(ToolOutcome.OK, True), (ToolOutcome.FAILED, False)])
async def test_a_start_that_was_announced_has_an_end(outcome, success, ledger, context, autojump_clock):
    """A call whose end nobody could report before says how its run ended, and how long it took."""
    entry = ledger.entries[0]
    entry.accept()
    await trio.sleep(1.5)
    ledger.record_result(entry, "a ran", outcome)
    ledger.finalize()
    assert [("a", success, 1500)] == announced(context)


async def test_an_end_is_announced_once_and_only_after_a_start(ledger, context, autojump_clock):
    """What was skipped has neither; what was announced is not announced again."""
    entry = ledger.entries[0]
    entry.accept()
    entry.ended = True
    ledger.record_result(entry, "a ran", ToolOutcome.OK)
    ledger.finalize()
    assert [] == announced(context)
    assert all(each.ended is (each is entry) for each in ledger.entries)


def test_a_call_has_one_result(ledger):
    """A second one is a bug of the runtime."""
    ledger.record_result(ledger.entries[0], "a ran", ToolOutcome.OK)
    with pytest.raises(AssertionError):
        ledger.record_result(ledger.entries[0], "again", ToolOutcome.OK)

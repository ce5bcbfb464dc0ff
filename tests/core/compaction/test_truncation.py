"""Compaction without a summary keeps the most recent rounds (semantics 9)."""

from __future__ import annotations

import pytest
from youyou.core.compaction.compaction_texts import EARLIER_REMOVED
from youyou.core.compaction.summaries import compacted
from youyou.core.compaction.truncation import truncate_history
from youyou.core.history.sendability import sendability_problem
from youyou.messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage


def size(message: Message) -> int:
    return 1000 if message in (HUGE, HUGE_SUMMARY) else 1


def round_of(name: str, *ids: str) -> list[Message]:
    calls = [ToolCall(call_id, "look", {}, response_id=name) for call_id in ids]
    return [AssistantMessage(name, response_id=name), *calls, *[ToolResult(call_id, "seen") for call_id in ids]]


OLD, NEW, SKILL, NOTE = UserMessage("old"), UserMessage("new"), SystemMessage("<skill>"), SystemMessage(EARLIER_REMOVED)
HUGE = UserMessage("huge")
SUMMARY = compacted("They talked.", ())[0]
HUGE_SUMMARY = compacted("They talked at length.", ())[0]
R1, R2, R3 = round_of("1", "a"), round_of("2", "b", "c"), round_of("3", "d")


@pytest.mark.parametrize(
    ("history", "budget", "expected"),
    [
        ([], -5, []),
        ([OLD, *R1, NEW], 5, [OLD, *R1, NEW]),
        ([OLD, *R1, NEW, *R2], 9, [NOTE, NEW, *R2]),
        ([OLD, *R1, NEW, *R2], 4, [NOTE, NEW, *R2]),
        ([OLD, *R1, NEW], 4, [NOTE, NEW]),
        ([OLD, *R1, SKILL, NEW, *R2, *R3], 6, [NOTE, SKILL, NEW, *R3]),
        ([OLD, OLD, *R1, NEW, *R3], 8, [NOTE, *R1, NEW, *R3]),
        ([NEW, *R1, *R3], 6, [NOTE, NEW, *R3]),
        ([NEW, *R1, *R2, *R3], 9, [NOTE, NEW, *R3]),
        ([NEW, *R1, *R2, *R3], 11, [NOTE, NEW, *R2, *R3]),
        ([NEW, *R1], 2, [NEW, *R1]),
        ([OLD, HUGE, *R1], 10, [NOTE, HUGE, *R1]),
        ([NOTE, *R1, NEW, *R3], 7, [NOTE, NEW, *R3]),
        ([NOTE, NEW, *R3], 2, [NOTE, NEW, *R3]),
        ([SUMMARY, *R1, NEW, *R3], 7, [SUMMARY, NOTE, NEW, *R3]),
        ([SUMMARY, NOTE, *R1, NEW, *R3], 8, [SUMMARY, NOTE, NEW, *R3]),
        ([SUMMARY, *R1, NEW, *R3], 5, [NOTE, NEW, *R3]),
        ([SUMMARY, NEW, *R3], 2, [SUMMARY, NEW, *R3]),
        ([NOTE, NEW, *R1, *R3], 6, [NOTE, NEW, *R3]),
        ([HUGE_SUMMARY, *R1, NEW, *R3], 9, [HUGE_SUMMARY, *R1, NEW, *R3]),
        ([*R1, *R3], 4, [NOTE, *R3]),
    ],
)
def test_the_most_recent_rounds_are_kept(history: list[Message], budget: int, expected: list[Message]) -> None:
    """What fits from the end stays, with the newest input, the newest round, one note, and an earlier summary."""
    assert tuple(expected) == truncate_history(history, budget, size)


LONG = [OLD, *R1, SKILL, NEW, *R2, *R3, *round_of("4", "e", "f", "g")]


@pytest.mark.parametrize("budget", range(-1, len(LONG) + 1))
def test_truncated_at_every_possible_budget_history_is_sendable(budget: int) -> None:
    """Pairs intact, the newest input word for word, a note first, within the budget where that can be done."""
    out = truncate_history(LONG, budget, size)

    assert sendability_problem(out) is None
    assert NEW in out
    assert not isinstance(out[0], AssistantMessage | ToolCall | ToolResult)
    smallest = [NOTE, SKILL, NEW, *round_of("4", "e", "f", "g")]
    assert len(out) <= max(budget, len(smallest))


def test_truncating_again_to_the_same_budget_changes_nothing() -> None:
    """Notes do not pile up, and what was kept once is kept again."""
    once = truncate_history(LONG, 12, size)

    assert once == truncate_history(once, 12, size)
    assert once.count(NOTE) == 1

"""When history is compacted, where it is cut, what is remembered of it (semantics 9)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.compaction.compaction_texts import EARLIER_REMOVED
from youyou.core.compaction.decisions import (
    CompactionRecord,
    Split,
    compacted,
    fixed_text_problem,
    keep_budget,
    needs_compaction,
    split_history,
)
from youyou.core.compaction.summaries import is_marker
from youyou.core.history.segments import segments
from youyou.core.history.sendability import sendability_problem
from youyou.core.history.tokens import message_tokens
from youyou.messages.content import ImageBlock, TextBlock
from youyou.messages.history import (
    AssistantMessage,
    Message,
    MessageStatus,
    SystemMessage,
    ToolCall,
    ToolOutcome,
    ToolResult,
    UserMessage,
)
from youyou.messages.jsonvalue import freeze


def one(_: Message) -> int:
    return 1


def round_of(name: str, *ids: str) -> list[Message]:
    said = AssistantMessage(f"I look {name}", response_id=name)
    calls = [ToolCall(call_id, "look", {}, response_id=name) for call_id in ids]
    return [said, *calls, *[ToolResult(call_id, "seen") for call_id in ids]]


OLD, NEW, SKILL = UserMessage("old"), UserMessage("new"), SystemMessage("<skill>")
SUMMARY = compacted("They talked.", ())[0]
R1, R2, R3 = round_of("1", "a"), round_of("2", "b", "c"), round_of("3", "d")
CHAT = [OLD, *R1, SKILL, NEW, *R2, *R3]  # 0 | 1 2 3 | 4 5 | 6 7 8 9 10 | 11 12 13


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], []),
        (CHAT, [(0, 1), (1, 4), (4, 6), (6, 11), (11, 14)]),
        ([SUMMARY, NEW], [(0, 2)]),
        ([*R1[:2], NEW, *R1[2:], OLD], [(0, 4), (4, 5)]),
        ([R1[1], R2[1], R1[2]], [(0, 3)]),
        ([R1[1], NEW], [(0, 1), (1, 2)]),
        ([R1[1], R2[1], R2[3]], [(0, 1), (1, 3)]),  # calls of two responses, the first without a result
        ([R1[2], R1[1], R1[2], NEW], [(0, 1), (1, 3), (3, 4)]),
    ],
)
def test_segments_never_separate_what_belongs_together(history: list[Message], expected: list[tuple[int, int]]) -> None:
    """A round stays whole however late its results come; a skill prompt stays with its input."""
    assert expected == [(segment.start, segment.stop) for segment in segments(history)]


def test_segments_of_a_long_history_are_found_in_linear_time() -> None:
    """Ten thousand rounds are cut up at once, each call with its own id."""
    history = [message for number in range(10_000) for message in round_of(str(number), f"id{number}")]

    expected = 10_000
    assert expected == len(segments(history))


@pytest.mark.parametrize(
    ("estimate", "expected"), [(800, False), (801, True), (0, False), (5_000, True)], ids=["at", "over", "none", "far"]
)
def test_compaction_is_needed_over_the_threshold(estimate: int, expected: bool) -> None:
    """At the threshold all is well, one token more and history is compacted."""
    assert expected is needs_compaction(estimate, 1_000, 0.8)


def test_fixed_text_over_the_threshold_is_a_clear_problem() -> None:
    """When prompt and tools alone are over the threshold, the problem says so and what to do."""
    problem = fixed_text_problem(900, 1_000, 0.8) or ""

    assert "900 of 1000 tokens" in problem and "larger window" in problem
    assert fixed_text_problem(800, 1_000, 0.8) is None


def test_a_fifth_of_the_window_is_kept() -> None:
    """What a summary leaves in place is about 20 % of the window."""
    expected = 1_600
    assert expected == keep_budget(8_000)


@pytest.mark.parametrize(
    ("history", "keep", "expected"),
    [
        ([], 5, None),
        (CHAT, 100, None),
        ([OLD, *R1, NEW], 0, Split((OLD, *R1), (NEW,), 4)),
        ([SUMMARY, OLD, NEW], 0, Split((SUMMARY, OLD), (NEW,), 2)),
        ([SUMMARY, SystemMessage(EARLIER_REMOVED), NEW], 0, None),
        (CHAT, 10, Split((OLD, *R1), (SKILL, NEW, *R2, *R3), 4)),
        (CHAT, 7, Split((OLD, *R1, SKILL, NEW, *R2), (SKILL, NEW, *R3), 9)),
        ([NEW, *R1, *R3], 3, Split((NEW, *R1), (NEW, *R3), 3)),
        ([NEW, *R1], 0, None),
        ([SUMMARY, NEW, *R1], 0, None),
        ([SUMMARY, NEW, *R1, *R3], 0, Split((SUMMARY, NEW, *R1), (NEW, *R3), 1 + 3)),
    ],
)
def test_a_long_turn_is_split_inside(history: list[Message], keep: int, expected: Split | None) -> None:
    """Rounds of the running turn may be summarised too; its input is kept word for word and shown as context."""
    assert expected == split_history(history, keep, one)


TEXTS = st.sampled_from(["hi", "x" * 300, "中" * 50])


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    history: list[Message] = []
    for kind in draw(st.lists(st.sampled_from("urrsS"), max_size=12)):
        match kind:
            case "u":
                history.append(UserMessage(draw(TEXTS)))
            case "r":
                name = f"r{len(history)}"
                ids = [f"{name}.{number}" for number in range(draw(st.integers(0, 3)))]
                history.append(AssistantMessage(draw(TEXTS), response_id=name))
                history.extend(ToolCall(call_id, "t", {"x": draw(TEXTS)}, response_id=name) for call_id in ids)
                history.extend(ToolResult(call_id, draw(TEXTS)) for call_id in ids)
            case "s":
                history.append(SystemMessage(draw(TEXTS)))
            case _:
                history.append(compacted(draw(TEXTS), ())[0])
    return history


def newest(history: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(history) if isinstance(message, UserMessage)), None)


@given(histories(), st.integers(0, 600))
def test_every_split_is_sendable_and_holds_the_newest_input(history: list[Message], keep: int) -> None:
    """Wherever it is cut: pairs intact, the newest user message there, the old part not empty, nothing lost."""
    split = split_history(history, keep, message_tokens)
    kept = split.kept if split else history

    assert sendability_problem(compacted("summary", kept)) is None
    assert newest(history) == newest(kept)
    if split:
        assert split.replaced_tokens > 0
        assert tuple(history) == split.old + split.kept[-(len(history) - len(split.old)) :]


def test_compacted_again_and_again_history_stays_small_and_sendable() -> None:
    """Three compactions with a resume between: one summary each time, pairs intact, the newest input kept."""
    history: list[Message] = []
    for number in range(3):
        for inner in range(10):
            history += [UserMessage(f"{number}.{inner}"), *round_of(f"{number}.{inner}", f"id{number}.{inner}")]
        split = split_history(history, 12, one)
        assert split is not None
        record = CompactionRecord("summary", 1, 1, number, compacted(f"summary {number}", split.kept))
        history = list(CompactionRecord.from_value(record.to_value()).messages)

        assert sendability_problem(history) is None
        assert UserMessage(f"{number}.9") in history
        expected = 1
        assert expected == sum(map(is_marker, history))


RECORD = CompactionRecord(
    "summary",
    900,
    100,
    17,
    (
        SUMMARY,
        UserMessage([TextBlock("see"), ImageBlock("aGk=", "image/png")]),
        AssistantMessage("half", MessageStatus.INCOMPLETE, "cancelled", "r", {"signature": [1]}),
        ToolCall("a", "t", {"x": [None, 1.5, {"y": "中"}]}, response_id="r"),
        ToolResult("a", "cut", ToolOutcome.UNKNOWN),
    ),
)


def test_a_record_survives_its_way_through_storage() -> None:
    """A record becomes JSON and the same record again, read-only or not; fields of a later version are ignored."""
    value = RECORD.to_value()

    assert RECORD == CompactionRecord.from_value(value) == CompactionRecord.from_value(freeze({**value, "new": 1}))


@pytest.mark.parametrize("value", [None, {}, {"kind": "summary"}, "text", {**RECORD.to_value(), "messages": [{}]}])
def test_what_is_no_record_is_refused(value: object) -> None:
    """Anything else than a stored record is a ValueError."""
    with pytest.raises(ValueError, match="compaction record"):
        CompactionRecord.from_value(value)  # type: ignore[arg-type]  # the point of the test

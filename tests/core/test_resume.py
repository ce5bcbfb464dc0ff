"""A stored log becomes everything that a resumed session goes on with (semantics 7 "Resume")."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.compaction.decisions import CompactionRecord, compacted
from youyou.core.config import EnvironmentContext, Notices, SessionConfig
from youyou.core.history.sendability import sendability_problem
from youyou.core.resume import LastTurn, Resumed, StepOutcome, messages_after, resume
from youyou.messages.chat import TokenUsage, Usage
from youyou.messages.codec import converter, from_json, to_json
from youyou.messages.events import TurnStatus
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
from youyou.messages.records import Metadata, SessionEvent

NOTICES = Notices()
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
USER, NEXT = UserMessage("go"), UserMessage("and now?")


def log(*payloads: Message | Metadata, first: int = 1) -> list[SessionEvent]:
    return [SessionEvent(seq, BEGIN + timedelta(seconds=seq), payload) for seq, payload in enumerate(payloads, first)]


def call(call_id: str, response_id: str = "r") -> ToolCall:
    return ToolCall(call_id, "look", {}, response_id=response_id)


def unknown(call_id: str) -> ToolResult:
    return ToolResult(call_id, NOTICES.unknown_outcome, ToolOutcome.UNKNOWN)


def skipped(call_id: str) -> ToolResult:
    return ToolResult(call_id, NOTICES.skipped_tool, ToolOutcome.SKIPPED)


def started(call_id: str) -> Metadata:
    return Metadata("tool_started", {"call_id": call_id, "arguments": {}})


def turn(turn_id: str, number: int, sequence: int, **more: object) -> Metadata:
    return Metadata("turn_started", {"turn_id": turn_id, "sequence": sequence, "number": number, **more})


def ended(turn_id: str, sequence: int, status: str = "completed", tokens: int = 0) -> Metadata:
    usage = converter.unstructure(TokenUsage(tokens, tokens))
    return Metadata("turn_ended", {"turn_id": turn_id, "status": status, "usage": usage, "sequence": sequence})


def step(turn_id: str, index: int, output: str = "out", success: bool = True) -> Metadata:
    value = {"step": f"s{index}", "index": index, "success": success, "output": output}
    return Metadata("step_ended", {"turn_id": turn_id, "pipeline": "cards", **value})


def test_an_empty_log_is_a_session_that_has_not_begun() -> None:
    """No events: no configuration, nothing said, all numbers at their start."""
    expected = Resumed(None, None, (), (), frozenset(), 0, 1, 1, Usage(), 0, None)
    assert expected == resume([], NOTICES)


def test_messages_become_history_and_metadata_do_not() -> None:
    """Every kind of message is taken over as it was stored; unknown metadata are ignored."""
    interrupted = AssistantMessage("half", MessageStatus.INCOMPLETE, "cancelled")
    events = log(SystemMessage("<skill>"), USER, Metadata("of a later version", [1]), interrupted, NEXT)

    assert (SystemMessage("<skill>"), USER, interrupted, NEXT) == resume(events, NOTICES).history


def test_calls_without_result_are_answered_by_what_is_known_of_them() -> None:
    """A call that had started is "outcome unknown", another one "skipped"; both are to be stored."""
    resumed = resume(log(USER, call("a"), call("b"), call("c"), started("b"), ToolResult("c", "ok")), NOTICES)

    assert (skipped("a"), unknown("b")) == resumed.synthetic
    assert (USER, call("a"), call("b"), call("c"), skipped("a"), unknown("b"), ToolResult("c", "ok")) == resumed.history
    assert frozenset({"b"}) == resumed.started


def test_results_are_stored_under_the_ids_of_the_log() -> None:
    """Calls that history tells apart by new ids are answered in the log under the id that it has."""
    resumed = resume(log(call("x"), call("x"), call(""), started("x")), NOTICES)

    assert (unknown("x"), unknown("x"), skipped("")) == resumed.synthetic
    assert (unknown("x"), unknown("x_2"), skipped("call_2")) == resumed.history[-3:]


RECORD = CompactionRecord("summary", 900, 90, 4, compacted("They talked.", [NEXT]))


def test_history_begins_with_the_newest_compaction() -> None:
    """What the record replaces is gone, what was stored after it follows, also what came while it was made."""
    older = CompactionRecord("truncation", 900, 90, 2, [SystemMessage("older")])
    during, after = UserMessage("during"), UserMessage("after")
    events = log(USER, USER, Metadata("compaction", older.to_value()), NEXT, during)
    events += log(Metadata("compaction", RECORD.to_value()), after, first=6)

    assert (*RECORD.messages, during, after) == resume(events, NOTICES).history


def test_an_unreadable_record_is_passed_over() -> None:
    """Where the newest record cannot be read, the one before counts: no message is lost."""
    events = log(USER, USER, USER, NEXT, Metadata("compaction", RECORD.to_value()), Metadata("compaction", {"x": 1}))

    assert RECORD.messages == resume(events, NOTICES).history


def test_of_what_was_learnt_before_a_compaction_only_the_ratio_is_kept() -> None:
    """Sizes that were reported for a history that was replaced are wrong for what replaced it."""
    learnt = {"ratio": 1.5, "tokens": 900, "history": 600, "fixed": 10}
    events = log(USER, Metadata("turn_ended", {"turn_id": "t", "meter": learnt}))
    compaction = log(Metadata("compaction", RECORD.to_value()), first=3)

    assert learnt == resume(events, NOTICES).meter
    assert {"ratio": 1.5} == resume(events + compaction, NOTICES).meter


def test_messages_before_the_newest_compaction_are_not_looked_at() -> None:
    """Resuming a long log with a recent compaction does not repair what the record replaces."""
    replaced = [call(f"id{number}") for number in range(4)]
    events = log(*replaced, Metadata("compaction", RECORD.to_value()), NEXT)

    assert not resume(events, NOTICES).synthetic


def test_the_configuration_comes_back() -> None:
    """The stored session configuration is structured again, nested values and unknown fields included."""
    config = SessionConfig("m", "be brief", EnvironmentContext(os="linux"), metadata={"a": [1]})
    value = {**converter.unstructure(config), "of a later version": 1}

    assert config == resume(log(Metadata("session_config", value)), NOTICES).config


def test_the_newest_title_and_mark_count() -> None:
    """Titles replace each other; the memory mark never goes back."""
    metadata = [Metadata("title", "a"), Metadata("memory_mark", {"seq": 7}), Metadata("memory_mark", {"seq": 3})]
    resumed = resume(log(*metadata, Metadata("title", "b")), NOTICES)

    expected = ("b", 7)
    assert expected == (resumed.title, resumed.memory_mark)


def test_counters_and_usage_go_on() -> None:
    """Turns, sequence numbers, stored numbers and usage continue after what is stored."""
    events = log(turn("t1", 1, 0), USER, ended("t1", 9, tokens=10), turn("t2", 2, 9), NEXT, ended("t2", 15, tokens=5))
    resumed = resume(events, NOTICES)

    assert (2, 16, 7, Usage(15, 15)) == (
        resumed.turns,
        resumed.next_sequence,
        resumed.next_seq,
        resumed.usage,
    )
    assert LastTurn("t2", TurnStatus.COMPLETED, NEXT) == resumed.last_turn


def test_an_old_log_without_turn_marks_counts_its_inputs() -> None:
    """Each user message of a log that knows no turns was one turn."""
    expected = 2
    assert expected == resume(log(USER, AssistantMessage("hi"), NEXT), NOTICES).turns


def test_a_started_call_is_known_though_its_id_had_to_be_cleaned() -> None:
    """An id with a lone surrogate is cleaned in the call and in the mark that it started alike."""
    assert (unknown("\ufffd"),) == resume(log(call("\ud800"), started("\ud800")), NOTICES).synthetic


def test_a_message_sent_into_a_running_turn_is_not_its_input() -> None:
    """The input of a turn is the first user message after its start, whatever was steered into it later."""
    assert LastTurn("t1", None, USER) == resume(log(turn("t1", 1, 4), USER, NEXT), NOTICES).last_turn


def test_a_turn_without_end_was_cut_by_a_crash() -> None:
    """The turn that died is known, with its input; what it had stored stays as it is."""
    resumed = resume(log(turn("t1", 1, 4), USER, AssistantMessage("done so far")), NOTICES)

    assert LastTurn("t1", None, USER) == resumed.last_turn
    assert resumed.last_turn is not None and resumed.last_turn.unfinished
    assert (USER, AssistantMessage("done so far")) == resumed.history


def test_finished_steps_of_the_last_turn_are_known() -> None:
    """A pipeline goes on after its finished steps; the newest outcome of each step counts."""
    resumed = resume(
        log(turn("t1", 1, 0), USER, step("t1", 1, "no", False), step("t1", 0), step("t1", 1, "yes")), NOTICES
    )

    expected = (StepOutcome("s0", 0, True, "out"), StepOutcome("s1", 1, True, "yes"))
    assert LastTurn("t1", None, USER, "cards", expected) == resumed.last_turn


def test_a_new_turn_starts_its_pipeline_from_the_beginning() -> None:
    """Steps of an earlier turn do not count for the next, unless that one says that it continues it."""
    first = [turn("t1", 1, 0), USER, step("t1", 0), ended("t1", 5, "cancelled")]
    fresh = resume(log(*first, turn("t2", 2, 5), NEXT), NOTICES).last_turn
    continuing = resume(log(*first, turn("t2", 2, 5, continues="t1"), step("t2", 1)), NOTICES).last_turn

    assert LastTurn("t2", None, NEXT) == fresh
    steps = (StepOutcome("s0", 0, True, "out"), StepOutcome("s1", 1, True, "out"))
    assert LastTurn("t2", None, USER, "cards", steps) == continuing


def test_a_turn_may_continue_one_that_is_not_the_last() -> None:
    """Between a stopped pipeline and the turn that continues it another one may have failed to begin."""
    events = log(turn("t1", 1, 0), USER, step("t1", 0), ended("t1", 5, "failed"))
    events += log(turn("t2", 2, 5), ended("t2", 7, "failed"), turn("t3", 3, 7, continues="t1"), first=5)

    assert (
        LastTurn("t3", None, USER, "cards", (StepOutcome("s0", 0, True, "out"),)) == resume(events, NOTICES).last_turn
    )


def test_a_long_log_with_a_compaction_resumes_at_its_size_after_it() -> None:
    """Three windows' worth of messages, compacted in the middle, come back as summary and what came later."""
    old = [UserMessage("x" * 4_000) for _ in range(40)]
    record = CompactionRecord("summary", 40_000, 30, 40, compacted("They talked.", ()))
    events = log(*old, Metadata("compaction", record.to_value()), USER, NEXT)

    assert (*record.messages, USER, NEXT) == resume(events, NOTICES).history


@pytest.mark.parametrize(
    "key",
    [
        "session_config",
        "title",
        "compaction",
        "tool_started",
        "turn_started",
        "turn_ended",
        "memory_mark",
        "step_ended",
    ],
)
@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"turn_id": 7, "seq": "x"}, {"turn_id": "t", "usage": [1]}])
def test_unreadable_metadata_never_lock_a_session(key: str, value: object) -> None:
    """Whatever stands under a known key, the messages come back and nothing raises."""
    assert resume(log(USER, turn("t", 1, 0), Metadata(key, value), NEXT), NOTICES).history == (USER, NEXT)


def test_messages_after_a_mark_are_those_not_yet_extracted() -> None:
    """Memory extraction reads on in the raw log, also in what compaction replaced."""
    events = log(USER, Metadata("title", "x"), NEXT, Metadata("compaction", RECORD.to_value()))

    assert messages_after(events, 1) == (NEXT,)


IDS = st.sampled_from(["a", "b", "", "a_2"])
RESPONSES = st.sampled_from(["", "r", "s"])
PAYLOADS: st.SearchStrategy[Message | Metadata] = st.one_of(
    st.just(USER),
    st.builds(AssistantMessage, st.sampled_from(["", "hi"]), response_id=RESPONSES),
    st.builds(call, IDS, RESPONSES),
    st.builds(ToolResult, IDS, st.just("ok")),
    st.builds(started, IDS),
    st.just(turn("t1", 1, 3)),
    st.just(ended("t1", 8)),
    st.builds(
        lambda through: Metadata("compaction", attrs.evolve(RECORD, through_seq=through).to_value()), st.integers(0, 14)
    ),
)


@given(st.lists(PAYLOADS, max_size=14))
def test_any_log_resumes_and_a_second_resume_changes_nothing(payloads: list[Message | Metadata]) -> None:
    """History is sendable; once the missing results are stored, the log gives the same history and none is missing."""
    events = log(*payloads)
    resumed = resume(events, NOTICES)
    again = resume([*events, *log(*resumed.synthetic, first=resumed.next_seq)], NOTICES)

    assert sendability_problem(resumed.history) is None
    assert not again.synthetic
    assert resumed.history == again.history


@given(st.lists(PAYLOADS, max_size=14))
def test_a_log_resumes_the_same_after_its_way_through_json(payloads: list[Message | Metadata]) -> None:
    """What a store keeps as JSON text resumes like what is in memory."""
    events = log(*payloads)
    stored = [from_json(SessionEvent, to_json(event)) for event in events]

    assert resume(events, NOTICES) == resume(stored, NOTICES)

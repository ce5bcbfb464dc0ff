"""Any log becomes sendable, and what is sendable stays as it is (semantics 5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.config import Notices
from youyou.core.history.repair import normalise
from youyou.core.history.sendability import sendability_problem
from youyou.messages.content import ReasoningBlock, TextBlock
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

USER = UserMessage("go")
NEXT = UserMessage("and now?")


def call(call_id: str, response_id: str = "", **arguments: object) -> ToolCall:
    return ToolCall(call_id, "weather", arguments, response_id=response_id)


def ok(call_id: str, text: str = "sunny") -> ToolResult:
    return ToolResult(call_id, text)


def unknown(call_id: str) -> ToolResult:
    return ToolResult(call_id, Notices().unknown_outcome, ToolOutcome.UNKNOWN)


def said(text: str, response_id: str = "") -> AssistantMessage:
    return AssistantMessage(text, response_id=response_id)


REPAIRS: dict[str, tuple[list[Message], list[Message]]] = {
    "ends after a call": ([USER, call("a")], [USER, call("a"), unknown("a")]),
    "one result of two": (
        [said("hm", "r"), call("a", "r"), call("b", "r"), ok("b")],
        [said("hm", "r"), call("a", "r"), call("b", "r"), unknown("a"), ok("b")],
    ),
    "result without call": ([USER, ok("zz"), said("hi")], [USER, said("hi")]),
    "result before its call": ([ok("a"), call("a")], [call("a"), unknown("a")]),
    "second result": ([call("a"), ok("a", "1"), ok("a", "2")], [call("a"), ok("a", "1")]),
    "unanswered far in the past": (
        [call("a"), USER, said("hi"), NEXT],
        [call("a"), unknown("a"), USER, said("hi"), NEXT],
    ),
    "late result": ([call("a"), USER, said("hi"), ok("a")], [call("a"), ok("a"), USER, said("hi")]),
    "order of completion": (
        [call("a"), call("b"), call("c"), ok("c"), ok("a"), ok("b")],
        [call("a"), call("b"), call("c"), ok("a"), ok("b"), ok("c")],
    ),
    "id used twice in one response": (
        [call("x", city="A"), call("x", city="B"), ok("x", "A"), ok("x", "B")],
        [call("x", city="A"), call("x_2", city="B"), ok("x", "A"), ok("x_2", "B")],
    ),
    "id used again in a later round": (
        [call("x"), ok("x", "1"), USER, call("x"), ok("x", "2")],
        [call("x"), ok("x", "1"), USER, call("x_2"), ok("x_2", "2")],
    ),
    "an old unanswered id used again: the result is the newer call's": (
        [call("x"), USER, call("x"), ok("x")],
        [call("x"), unknown("x"), USER, call("x_2"), ok("x_2")],
    ),
    "a made-up id that the log uses later": (
        [call("x"), call("x"), call("x_2"), ok("x_2", "third")],
        [call("x"), call("x_2"), call("x_2_2"), unknown("x"), unknown("x_2"), ok("x_2_2", "third")],
    ),
    "two empty ids": (
        [call("", city="A"), call("", city="B"), ok("", "A"), ok("", "B")],
        [call("call_2", city="A"), call("call_3", city="B"), ok("call_2", "A"), ok("call_3", "B")],
    ),
    "blank assistant message": ([USER, said(" \n"), call("a"), ok("a")], [USER, call("a"), ok("a")]),
    "result between the calls of one response": (
        [said("hm", "r"), call("a", "r"), ok("a"), call("b", "r"), ok("b")],
        [said("hm", "r"), call("a", "r"), call("b", "r"), ok("a"), ok("b")],
    ),
    "assistant message after its call": (
        [call("a", "r"), said("hm", "r"), ok("a")],
        [said("hm", "r"), call("a", "r"), ok("a")],
    ),
    "calls of two responses concurrently": (
        [call("a", "r"), call("b", "s"), ok("b")],
        [call("a", "r"), unknown("a"), call("b", "s"), ok("b")],
    ),
    "note between call and result": (
        [call("a"), SystemMessage("note"), ok("a")],
        [call("a"), ok("a"), SystemMessage("note")],
    ),
    "lone surrogates": (
        [UserMessage("\ud800x"), call("a", city="\udc00"), ok("a", "\ud83d\ude00")],
        [UserMessage("\ufffdx"), call("a", city="\ufffd"), ok("a", "\U0001f600")],
    ),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_every_kind_of_broken_log_is_repaired(name: str) -> None:
    """A log with this fault becomes exactly this sendable history."""
    log, expected = REPAIRS[name]

    assert tuple(expected) == normalise(log)
    assert sendability_problem(expected) is None
    assert tuple(expected) == normalise(expected)


def test_a_call_that_never_started_is_skipped() -> None:
    """Of two calls without result, the one that started is "outcome unknown", the other one "skipped"."""
    texts = Notices.english()

    expected = (
        call("a"),
        call("b"),
        ToolResult("a", texts.skipped_tool, ToolOutcome.SKIPPED),
        ToolResult("b", texts.unknown_outcome, ToolOutcome.UNKNOWN),
    )
    assert expected == normalise([call("a"), call("b")], texts, started={"b"})


def test_a_renamed_call_is_looked_up_by_its_id_in_the_log() -> None:
    """Which calls started is known by the ids of the log, also for a call that gets a unique id."""
    *_, last = normalise([call("x"), ok("x"), USER, call("x")], started={"x"})

    assert unknown("x_2") == last


def test_reasoning_and_provider_data_are_not_blank() -> None:
    """An assistant message without text is kept when it carries reasoning or provider data."""
    messages = (AssistantMessage(ReasoningBlock("because")), AssistantMessage("", provider_data={"signature": "s"}))

    assert messages == normalise(messages)


def test_clean_history_keeps_its_objects() -> None:
    """What needs no repair comes out as the very same objects."""
    history = [USER, said("hm", "r"), call("a", "r", days=[1, 2]), ok("a"), said("done", "s")]

    assert all(a is b for a, b in zip(history, normalise(history), strict=True))


def test_ten_thousand_calls_of_one_id_are_told_apart_in_linear_time() -> None:
    """Making ids unique does not slow down with the number of repetitions."""
    log = [message for _ in range(10_000) for message in (call("x"), ok("x"), USER)]

    assert sendability_problem(normalise(log)) is None


IDS = st.sampled_from(["a", "b", "call_0", "", "a_2", "call_2", "\ud800"])
RESPONSES = st.sampled_from(["", "r", "s"])
TEXTS = st.sampled_from(["", " ", "hi", "\ud83d", "\ude00 x"])
CAUSES = st.sampled_from([(MessageStatus.COMPLETE, None), (MessageStatus.INCOMPLETE, "cancelled")])
LOGS: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(
        st.builds(UserMessage, TEXTS),
        st.builds(SystemMessage, TEXTS),
        st.builds(lambda text, cause, r: AssistantMessage([TextBlock(text)], *cause, r), TEXTS, CAUSES, RESPONSES),
        st.builds(lambda i, r, n: ToolCall(i, "t", {"n": n}, response_id=r), IDS, RESPONSES, TEXTS),
        st.builds(ToolResult, IDS, TEXTS, st.sampled_from(ToolOutcome)),
    ),
    max_size=14,
)


@given(LOGS, st.none() | st.sets(IDS))
def test_every_prefix_of_every_log_becomes_sendable(log: list[Message], started: set[str] | None) -> None:
    """Whatever a log holds and wherever it ends, it becomes sendable."""
    for end in range(len(log) + 1):
        assert sendability_problem(normalise(log[:end], started=started)) is None


@given(LOGS, st.none() | st.sets(IDS))
def test_normalising_twice_changes_nothing(log: list[Message], started: set[str] | None) -> None:
    """What came out once comes out again unchanged, whatever is known about started calls."""
    once = normalise(log, started=started)

    assert once == normalise(once) == normalise(once, Notices.english(), started=())


@given(LOGS)
def test_nothing_but_blanks_and_stray_results_is_lost(log: list[Message]) -> None:
    """User and system messages keep their number and order; every call is there; no assistant text is lost."""

    def count(messages: list[Message] | tuple[Message, ...], kind: type) -> int:
        return sum(isinstance(m, kind) and not (isinstance(m, AssistantMessage) and m.blank) for m in messages)

    out = normalise(log)

    assert [count(log, kind) for kind in (UserMessage, SystemMessage, AssistantMessage, ToolCall)] == [
        count(out, kind) for kind in (UserMessage, SystemMessage, AssistantMessage, ToolCall)
    ]

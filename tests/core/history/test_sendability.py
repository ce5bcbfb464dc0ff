"""The check knows every way in which a request can break the invariant (semantics 5)."""

from __future__ import annotations

import pytest
from youyou.core.history.sendability import sendability_problem
from youyou.messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage


def call(call_id: str, response_id: str = "r") -> ToolCall:
    return ToolCall(call_id, "weather", {}, response_id=response_id)


A, B = call("a"), call("b")
RA, RB = ToolResult("a", "1"), ToolResult("b", "2")
HM = AssistantMessage("hm", response_id="r")

FAULTS: dict[str, tuple[list[Message], str]] = {
    "no result at the end": ([A], "call 'a' (weather) has no result"),
    "user before the result": ([A, UserMessage("x"), RA], "message 1: call 'a' (weather) has no result"),
    "note before the result": ([A, SystemMessage("x"), RA], "message 1: call 'a' (weather) has no result"),
    "assistant before the result": ([A, HM, RA], "message 1: call 'a' (weather) has no result"),
    "another response's call before the result": ([A, call("b", "s"), RA, RB], "message 1: call 'a' (weather) has no"),
    "second result": ([A, RA, RA], "message 2: result 'a' answers no call"),
    "result without call": ([RA], "message 0: result 'a' answers no call"),
    "id used twice": ([A, RA, A, RA], "message 2: call id 'a' is used twice"),
    "empty id": ([call(" "), ToolResult(" ", "")], "message 0: a call of weather has no id"),
    "blank assistant": ([AssistantMessage(" \n")], "message 0: the assistant message is blank"),
    "assistant after its calls": ([A, RA, HM], "message 2: the assistant message of response 'r' comes after"),
    "surrogate in text": ([UserMessage("\ud800")], "message 0: UserMessage holds a lone surrogate"),
    "surrogate deep in arguments": (
        [ToolCall("a", "t", {"x": [{"\udc00": 1}]}), RA],
        "message 0: ToolCall holds a lone surrogate",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named(name: str) -> None:
    """A request with this fault is refused, and the problem says where and what."""
    messages, problem = FAULTS[name]

    assert (sendability_problem(messages) or "").startswith(problem)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [UserMessage("go"), HM, A, B, RA, RB, SystemMessage("note"), AssistantMessage("done", response_id="s")],
        [HM, A, B, RB, RA],
        [HM, A, RA, B, RB],
        [call("a", ""), RA, call("b", ""), RB],
    ],
)
def test_sendable_history_has_no_problem(messages: list[Message]) -> None:
    """Pairs in any order within a response, with or without response ids, are fine."""
    assert sendability_problem(messages) is None

"""Events and results in one short line for people."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from youyou import (
    AgentEvent,
    ContextCompacted,
    ErrorEvent,
    OutputRejected,
    ProviderError,
    ReasoningDelta,
    RetryScheduled,
    StepEnd,
    StepStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolOutput,
    ToolProgress,
    TurnCancelled,
    TurnComplete,
    TurnResult,
    TurnStatus,
    Usage,
)

LONG = "long text\n" * 100_000
BUSY = ProviderError("busy")


def line(payload):
    """What ``print(event)`` shows."""
    return str(AgentEvent("s", "t", datetime.now(UTC), 3, payload))


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (TextDelta("It is\nsunny."), "#3 TextDelta 'It is sunny.'"),
        (ReasoningDelta("hm"), "#3 ReasoningDelta 'hm'"),
        (ToolCallDelta("c", "weather", "{"), "#3 ToolCallDelta weather +1 character"),
        (ToolCallStart("c", "weather", {"city": "Oslo", "days": 2}), "#3 ToolCallStart weather(city='Oslo', days=2)"),
        (ToolProgress("c", {"done": 1}), "#3 ToolProgress c"),
        (ToolCallEnd("c", "weather", ToolOutput("sunny"), 5, True), "#3 ToolCallEnd weather ok: 'sunny'"),
        (ToolCallEnd("c", "weather", ToolOutput("no"), 5, False, BUSY),
         "#3 ToolCallEnd weather failed: [PROVIDER_ERROR] busy"),
        (ContextCompacted("summary", 12_000, 900), "#3 ContextCompacted summary: 12,000 -> 900 tokens"),
        (RetryScheduled(1, 500, BUSY), "#3 RetryScheduled attempt 1 failed, again in 500 ms: [PROVIDER_ERROR] busy"),
        (OutputRejected(1, "- age: no"), "#3 OutputRejected repair 1: - age: no"),
        (StepStart("read", 0), "#3 StepStart read"),
        (StepEnd("read", 0, True, "text"), "#3 StepEnd read"),
        (ErrorEvent(BUSY), "#3 ErrorEvent [PROVIDER_ERROR] busy"),
        (TurnComplete(TurnStatus.COMPLETED, "Hi.", Usage()), "#3 TurnComplete completed 'Hi.'"),
        (TurnComplete(TurnStatus.FAILED, "", Usage(), BUSY), "#3 TurnComplete failed [PROVIDER_ERROR] busy"),
        (TurnCancelled("cancelled", "Hi", Usage()), "#3 TurnCancelled cancelled 'Hi'"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)  # fmt: skip
def test_a_printed_event_says_what_happened(payload, shown):
    """Its number, its kind and the part that a person asks for."""
    assert shown == line(payload)


@pytest.mark.parametrize(
    "payload",
    [
        TextDelta(LONG),
        ToolCallStart("c", LONG, {LONG: LONG, **{str(n): list(range(1000)) for n in range(1000)}}),
        ToolCallEnd("c", "weather", ToolOutput(LONG), 5, True),
        ToolCallEnd("c", LONG, ToolOutput(""), 5, False, ProviderError(LONG)),
        OutputRejected(1, LONG),
        TurnComplete(TurnStatus.COMPLETED, LONG, Usage()),
        ToolProgress(LONG, LONG),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_a_printed_event_is_one_short_line(payload):
    """Whatever is in it."""
    shown = line(payload)

    assert "\n" not in shown and len(shown) < 500


def test_secrets_among_arguments_are_not_shown():
    """What a name gives away as one; what is nested is counted only."""
    arguments = {"password": "p", "API_KEY": "k", "accessToken": "t", "options": {"secret": "s"}, "user": "ann"}

    shown = line(ToolCallStart("c", "login", arguments))

    assert "#3 ToolCallStart login(password=***, API_KEY=***, accessToken=***, options={1 fields}, user='ann')" == shown


def test_the_repr_of_a_result_is_for_people():
    """How it ended, what was said, what it cost."""
    usage = Usage(1_200, 30, requests=2, tool_calls=1)
    done = TurnResult("t", TurnStatus.COMPLETED, "It is sunny.", usage)
    failed = TurnResult("t", TurnStatus.FAILED, "", Usage(requests=3, retries=2), BUSY)

    assert "<TurnResult completed 'It is sunny.', 2 requests, 1 call, 1,200 + 30 tokens>" == repr(done) == str(done)
    assert "<TurnResult failed [PROVIDER_ERROR] busy, 3 requests, 0 calls, 2 repeats, 0 + 0 tokens>" == repr(failed)
    assert len(repr(TurnResult("t", TurnStatus.COMPLETED, LONG, usage))) < 200

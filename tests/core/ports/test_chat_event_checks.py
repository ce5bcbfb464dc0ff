"""What a provider yields, validated at the boundary (semantics 4)."""

from __future__ import annotations

import math
import re

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from youyou.core.ports.chat_event_checks import error_of, validate_chat_event
from youyou.messages.chat import (
    ChatError,
    Done,
    Progress,
    ReasoningDelta,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from youyou.messages.errors import ErrorCode, ProviderError, ProviderTimeout
from youyou.messages.history import ToolCall


def without_addresses(value: object) -> str:
    """An id that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


CALL = ToolCall("c", "write", {"x": 1})
anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.lists(st.integers())


@pytest.mark.parametrize(
    "event",
    [
        TextDelta("a"),
        ReasoningDelta(""),
        ToolCallDelta("c"),
        Progress(),
        Progress(TokenUsage(1)),
        CALL,
        Done(),
        Done(TokenUsage(1), StopReason.LENGTH),
        ChatError("x"),
    ],
)
def test_what_is_right_stays_as_it_is(event):
    """A well-formed event passes unchanged."""
    assert validate_chat_event(event) == event


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (TextDelta("\ud83da"), TextDelta("\ufffda")),
        (ReasoningDelta("a\ud83db"), ReasoningDelta("a\ufffdb")),
        (TextDelta("a\ud83d"), TextDelta("a\ud83d")),
        (ToolCallDelta("\ud83d", "w\ud83d", "a"), ToolCallDelta("\ufffd", "w\ufffd", "a")),
        (attrs.evolve(CALL, arguments={}, raw_arguments='{}{"x": 1}'), attrs.evolve(CALL, raw_arguments='{}{"x": 1}')),
        (ToolCall("\ud83d", "w\ud83d", {"\ud83d": ["\ud83d"]}), ToolCall("\ufffd", "w\ufffd", {"\ufffd": ["\ufffd"]})),
        (attrs.evolve(CALL, call_id=None), attrs.evolve(CALL, call_id="")),
        (Done(stop_reason="tool_use"), Done(stop_reason=StopReason.TOOL_USE)),
        (ChatError("x", code="PROVIDER_TIMEOUT"), ChatError("x", code=ErrorCode.PROVIDER_TIMEOUT)),
        (ChatError("x", code="overloaded_error"), ChatError("x", code=ErrorCode.PROVIDER_ERROR)),
        (ChatError("x", retry_after_ms=1.6), ChatError("x", retry_after_ms=2)),
        (ChatError("x", retry_after_ms=math.inf), ChatError("x")),
        (ChatError("x", retry_after_ms=math.nan), ChatError("x")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_can_be_understood_is_put_right(event, expected):
    """Surrogates, texts of enums, ids left out and waits that are not a whole number are not a failure."""
    assert validate_chat_event(event) == expected
    assert type(validate_chat_event(event)) is type(expected)


@pytest.mark.parametrize("event", [None, "a", 5, object(), TextDelta, {"text": "a"}], ids=without_addresses)
def test_what_is_no_chat_event_is_refused(event):
    """The error names what came and what may come, and is not worth a retry."""
    with pytest.raises(ProviderError, match="yield TextDelta, ReasoningDelta, ToolCall, ChatError or Done") as caught:
        validate_chat_event(event)
    assert not caught.value.retryable


@settings(max_examples=150, deadline=None, database=None)
@given(st.data())
def test_a_field_of_any_type_is_either_right_or_refused(data):
    """Whatever stands in the fields, what comes out has fields of the pinned types, or it is a ProviderError."""
    event = data.draw(
        st.one_of(
            st.builds(TextDelta, anything),
            st.builds(ReasoningDelta, anything),
            st.builds(ToolCallDelta, anything, anything, anything),
            st.builds(Progress, anything),
            st.builds(ToolCall, anything, anything, st.just({}), anything),
            st.builds(ChatError, anything, anything, anything, anything),
            st.builds(Done, anything, anything),
        )
    )
    try:
        out = validate_chat_event(event)
    except ProviderError:
        return
    match out:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            assert isinstance(text, str)
        case ToolCallDelta():
            assert isinstance(out.call_id, str)
            assert isinstance(out.text, str)
        case Progress():
            assert isinstance(out.usage, TokenUsage | None)
        case ToolCall():
            assert isinstance(out.call_id, str)
            assert isinstance(out.tool_name, str)
            assert isinstance(out.raw_arguments, str | None)
        case ChatError():
            assert isinstance(error_of(out).message, str)
            assert isinstance(out.retry_after_ms, int | None)
        case Done():
            assert isinstance(out.usage, TokenUsage | None)
            assert isinstance(out.stop_reason, StopReason)


def test_an_error_keeps_what_the_provider_said():
    """Code, text, retryability and wish to wait."""
    error = error_of(ChatError("slow", ErrorCode.PROVIDER_TIMEOUT, False, 7))
    assert error == ProviderTimeout("slow", retryable=False, retry_after_ms=7)

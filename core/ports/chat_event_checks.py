"""What a provider yields, validated at the boundary (semantics 4).

    validate_chat_event(TextDelta("\\ud83da"))              # TextDelta("\\ufffda"): nothing unsendable gets in
    validate_chat_event(Done(stop_reason="length"))         # the text of a stop reason is as good as its name
    validate_chat_event(TextDelta(5))                       # raises ProviderError

A provider is foreign code: a field of a wrong type must fail its turn, not an actor that trusts it later. Pure.
"""

from __future__ import annotations

import attrs
import msgspec

from ...messages.chat import (
    ChatError,
    ChatEvent,
    Done,
    Progress,
    ReasoningDelta,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from ...messages.errors import AgentError, ErrorCode, ErrorSource, ProviderError
from ...messages.history import ToolCall
from ...messages.plain import NotPlain, plain_json, plain_record, plain_text
from ...messages.text import clean_value, safe_str
from .call_arguments import repaired
from .split_characters import clean_inside


def validate_chat_event(event: object) -> ChatEvent:
    """``event``, clean of lone surrogates, with fields of the right types.

    Raises:
        ProviderError: not retryable; it is not a chat event, or one of its fields is of another type.
    """
    if type(event) is TextDelta and type(event.text) is str and event.text.isascii():
        return event  # nearly all that a model says comes this way, many times a second
    try:
        return _checked(event)
    except NotPlain as problem:
        raise _refusal(f"{_shown(event)} with a field that cannot be taken: {problem}") from None
    except ProviderError:
        raise
    except Exception as error:  # a property or a comparison of its own raised
        raise _refusal(f"{_shown(event)}, looking at which raised {safe_str(error)}") from error


def _checked(event: object) -> ChatEvent:
    match event:
        case TextDelta() | ReasoningDelta():
            kind = TextDelta if isinstance(event, TextDelta) else ReasoningDelta
            text = plain_text(event.text, clean_inside)
            return event if text is event.text and type(event) is kind else kind(text)
        case ToolCallDelta():
            name = None if event.tool_name is None else plain_text(event.tool_name)
            return ToolCallDelta(plain_text(event.call_id), name, plain_text(event.text, clean_inside))
        case Progress(usage=TokenUsage() | None):
            return Progress(_usage(event.usage))
        case ToolCall():
            named = event if event.call_id is not None else attrs.evolve(event, call_id="")
            return _repaired(plain_record(named, ToolCall))
        case ChatError(retryable=bool(), retry_after_ms=int() | float() | None):
            return ChatError(plain_text(event.message), _code(event), event.retryable, _wait(event))
        case Done(usage=TokenUsage() | None):
            return Done(_usage(event.usage), _stop_reason(event), plain_json(event.provider_data))
        case Progress() | ChatError() | Done():
            raise _refusal(f"{_shown(event)}, a field of which is of the wrong type")
        case _:
            raise _refusal(f"{_shown(event)}, which is not a chat event")


def _usage(usage: TokenUsage | None) -> TokenUsage | None:
    """A report without what is not a number of tokens: a server's null costs its field, not the turn."""
    if usage is None:
        return None
    return TokenUsage(**{field.name: _tokens(getattr(usage, field.name)) for field in attrs.fields(TokenUsage)})


def _tokens(value: object) -> int:
    if type(value) is bool or not isinstance(value, int) or not 0 <= value < 1 << 63:
        return 0
    return int.__int__(value)


def size_of_arguments(call: ToolCall) -> int:
    """How many characters of arguments a call brings, roughly: what the model wrote."""
    return len(msgspec.json.encode(call.arguments) if call.raw_arguments is None else call.raw_arguments)


def _repaired(call: ToolCall) -> ToolCall:
    if call.raw_arguments is None or call.arguments or (found := repaired(call.raw_arguments)) is None:
        return call
    try:
        return clean_value(attrs.evolve(call, arguments=found))
    except (TypeError, ValueError):
        return call  # an object that no message may hold, by its depth or its numbers


def error_of(event: ChatError) -> AgentError:
    """The error that the provider reported."""
    error = AgentError.of(event.code, event.message, retryable=event.retryable, retry_after_ms=event.retry_after_ms)
    return error.reported_by(ErrorSource.PROVIDER)


def _code(event: ChatError) -> ErrorCode:
    # What a provider calls its error is its own affair: one that is not of our list is a failure of the provider.
    known = event.code in ErrorCode.__members__.values()
    return ErrorCode(event.code) if known else ErrorCode.PROVIDER_ERROR


def _wait(event: ChatError) -> int | None:
    try:
        return None if event.retry_after_ms is None else round(event.retry_after_ms)
    except (ValueError, OverflowError):
        return None  # not a number of milliseconds, so the policy decides


def _stop_reason(event: Done) -> StopReason:
    try:
        return StopReason(event.stop_reason)
    except ValueError:
        raise _refusal(f"{_shown(event)}, whose stop_reason is none of {', '.join(StopReason)}") from None


def _shown(event: object) -> str:
    return type(event).__name__ if not isinstance(event, type) else f"the class {event.__name__}"


def _refusal(what: str) -> ProviderError:
    return ProviderError(
        f"the provider yielded {what}; yield TextDelta, ReasoningDelta, ToolCall, ChatError or Done", retryable=False
    )

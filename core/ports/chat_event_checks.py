"""What a provider yields, judged at the door (semantics 4).

    checked(TextDelta("a\\ud83d"))              # TextDelta("a\\ufffd"): nothing unsendable gets in
    checked(Done(stop_reason="length"))         # the text of a stop reason is as good as its name
    checked(TextDelta(5))                       # raises ProviderError

A provider is code of others: a field of a wrong type must fail its turn, not an actor that trusts it later. Pure.
"""

from __future__ import annotations

import attrs

from ...messages.chat import ChatError, ChatEvent, Done, ReasoningDelta, StopReason, TextDelta, TokenUsage
from ...messages.errors import AgentError, ErrorCode, ProviderError
from ...messages.history import ToolCall
from ...messages.text import clean_text, clean_value


def checked(event: object) -> ChatEvent:
    """``event``, clean of lone surrogates, with fields of the right types.

    Raises:
        ProviderError: not retryable; it is no chat event, or one of its fields is of another type.
    """
    match event:
        case TextDelta(text=str(text)):
            return TextDelta(clean_text(text))
        case ReasoningDelta(text=str(text)):
            return ReasoningDelta(clean_text(text))
        case ToolCall(call_id=str() | None, tool_name=str(), raw_arguments=str() | None):
            # `evolve` runs the field's converter again, which freezes arguments that a provider has changed since.
            return clean_value(attrs.evolve(event, call_id=event.call_id or ""))
        case ChatError(message=str(), retryable=bool(), retry_after_ms=int() | float() | None):
            return attrs.evolve(event, code=_code(event), retry_after_ms=_wait(event))
        case Done(usage=TokenUsage() | None):
            return attrs.evolve(event, stop_reason=_stop_reason(event))
        case TextDelta() | ReasoningDelta() | ToolCall() | ChatError() | Done():
            raise _refusal(f"{_shown(event)}, a field of which is of the wrong type")
        case _:
            raise _refusal(f"{_shown(event)}, which is no chat event")


def error_of(event: ChatError) -> AgentError:
    """The error that the provider told of."""
    return AgentError.of(event.code, event.message, retryable=event.retryable, retry_after_ms=event.retry_after_ms)


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

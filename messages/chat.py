"""What goes to a provider and what it streams back (semantics 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

import attrs

from .errors import ErrorCode
from .history import Message, ToolCall
from .jsonvalue import JsonObject, freeze, json_object


class StopReason(StrEnum):
    """Why the model stopped."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"


@attrs.frozen
class TokenUsage:
    """Tokens of one request, or a sum of several (``+``). Cached and reasoning tokens are parts of input and output."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        if not isinstance(other, TokenUsage):
            return NotImplemented
        return TokenUsage(*(a + b for a, b in zip(attrs.astuple(self), attrs.astuple(other), strict=True)))


@attrs.frozen
class ToolSpec:
    """A tool as the model sees it. ``parameters`` is a JSON Schema."""

    name: str
    description: str
    parameters: JsonObject = attrs.field(converter=json_object)


@attrs.frozen
class SystemPrompt:
    """The system prompt in two parts: ``stable`` can be cached by a provider, ``dynamic`` changes each turn."""

    stable: str = ""
    dynamic: str = ""

    @property
    def text(self) -> str:
        """Both parts as one text."""
        return "\n\n".join(part for part in (self.stable, self.dynamic) if part)


# Not plain tuple: mypy cannot see through a generic converter.
def _specs(values: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(values)


@attrs.frozen
class ChatRequest:
    """One request to a model. ``messages`` is read-only and always sendable (semantics 5)."""

    model_id: str
    system: SystemPrompt
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = attrs.field(default=(), converter=_specs)
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    response_schema: JsonObject | None = attrs.field(default=None, converter=attrs.converters.optional(json_object))
    metadata: JsonObject = attrs.field(factory=JsonObject, converter=json_object)


@attrs.frozen
class TextDelta:
    """A piece of the answer."""

    text: str


@attrs.frozen
class ReasoningDelta:
    """A piece of reasoning that the model shows."""

    text: str


@attrs.frozen
class Done:
    """The end of a response. ``provider_data`` is kept with the assistant message and handed back unread."""

    usage: TokenUsage | None = None
    stop_reason: StopReason = StopReason.END_TURN
    provider_data: Any = attrs.field(default=None, converter=freeze)


@attrs.frozen
class ChatError:
    """A provider's way to say that the request failed without raising."""

    message: str
    code: ErrorCode = ErrorCode.PROVIDER_ERROR
    retryable: bool = True
    retry_after_ms: int | None = None


ChatEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCall | Done | ChatError

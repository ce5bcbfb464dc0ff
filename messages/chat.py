"""What goes to a provider and what it streams back (semantics 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import attrs

from .errors import ErrorCode
from .history import Message, ToolCall
from .history import StopReason as StopReason
from .jsonvalue import JsonObject, freeze, json_object


@attrs.frozen
class TokenUsage:
    """Tokens of one request, or a sum of several (``+``). Cached and reasoning tokens are parts of input and output."""

    input_tokens: int = 0
    """All input tokens, those read from and written to a cache included."""
    output_tokens: int = 0
    """All output tokens, reasoning included."""
    cache_read_tokens: int = 0
    """Input tokens that the provider found in its prompt cache; 0 where it does not say."""
    cache_write_tokens: int = 0
    """Input tokens that the provider put into its prompt cache; 0 where it does not say."""
    reasoning_tokens: int = 0
    """Output tokens spent on reasoning; 0 where the provider does not say."""

    def __add__(self, other: TokenUsage) -> TokenUsage:
        # `sum()` begins with 0: without this a forgotten start value would give an AttributeError far from its cause.
        if not isinstance(other, TokenUsage):
            return NotImplemented
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@attrs.frozen(kw_only=True)
class Usage(TokenUsage):
    """What a turn or a session has used: the tokens of all its requests, and how many things it did (``+`` adds up).

    Synopsis::

        result.usage.requests, result.usage.tool_calls, result.usage.retries
        result.usage.tokens                 # the tokens alone, a `TokenUsage`
    """

    requests: int = 0
    """Requests that were sent to models: those of retries, of rejected answers and of compaction included."""
    tool_calls: int = 0
    """Calls that models asked for, those included that were refused or skipped."""
    retries: int = 0
    """Requests that were sent again because one before had failed."""

    @property
    def tokens(self) -> TokenUsage:
        """The tokens, without the counts."""
        return TokenUsage(
            self.input_tokens,
            self.output_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.reasoning_tokens,
        )

    def __add__(self, other: TokenUsage) -> Usage:
        if not isinstance(other, TokenUsage):
            return NotImplemented
        more = other if isinstance(other, Usage) else Usage()
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            requests=self.requests + more.requests,
            tool_calls=self.tool_calls + more.tool_calls,
            retries=self.retries + more.retries,
        )

    # Also where the plain tokens come first: what is added up keeps its counts.
    __radd__ = __add__


@attrs.frozen
class ToolSpec:
    """A tool as the model sees it. ``parameters`` is a JSON Schema."""

    name: str
    """Unique among the tools of a request."""
    description: str
    """What the tool is for, written for the model."""
    parameters: JsonObject = attrs.field(converter=json_object)
    """JSON Schema of an object: the arguments."""


@attrs.frozen
class SystemPrompt:
    """The system prompt in two parts: ``stable`` can be cached by a provider, ``dynamic`` changes each turn."""

    stable: str = ""
    """The same in every turn of a session, so that a provider can cache it. May be empty."""
    dynamic: str = ""
    """Built anew in each turn: memories, environment, sections of hooks. May be empty."""

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
    """One of the ids of the provider's own ``models()``."""
    system: SystemPrompt
    """The system prompt; both parts may be empty."""
    messages: Sequence[Message]
    """A read-only view of the history, oldest first. Keep no reference beyond the request: take ``tuple(messages)``."""
    tools: tuple[ToolSpec, ...] = attrs.field(default=(), converter=_specs)
    """Tools on offer; empty when there are none or the mode has none."""
    temperature: float | None = None
    """Sampling temperature, 0 or more. None: the provider's default."""
    max_tokens: int | None = None
    """Limit of output tokens. None: the provider's default."""
    reasoning_effort: str | None = None
    """The provider's own word ("low", "high", ...), passed on as it is. None: the provider's default."""
    response_schema: JsonObject | None = attrs.field(default=None, converter=attrs.converters.optional(json_object))
    """JSON Schema that the answer's text must fit. None: free text."""
    metadata: JsonObject = attrs.field(factory=JsonObject, converter=json_object)
    """``SessionConfig.metadata``: facts of the host, for the provider to pass on or ignore."""


@attrs.frozen
class TextDelta:
    """A piece of the answer."""

    text: str
    """Text to append to what was streamed before. An empty delta counts as silence."""


@attrs.frozen
class ReasoningDelta:
    """A piece of reasoning that the model shows."""

    text: str
    """Reasoning to append to what was streamed before. An empty delta counts as silence."""


@attrs.frozen
class ToolCallDelta:
    """A piece of the arguments of a call that the model is writing. Shown, never stored, no visible output."""

    call_id: str
    """The id that the call itself will have."""
    tool_name: str | None = None
    """The tool's name, where it is known by now."""
    text: str = ""
    """The piece, as the model writes it: not JSON by itself."""


@attrs.frozen
class Progress:
    """The model works and has nothing to show: hidden reasoning, a signature. It keeps the idle limit away."""

    usage: TokenUsage | None = None
    """What the request has cost so far, where the server says so; it counts when no `Done` follows."""


@attrs.frozen
class Done:
    """The end of a response. ``provider_data`` is kept with the assistant message and handed back unread."""

    usage: TokenUsage | None = None
    """Tokens of this request. None: the provider does not report them, and sizes are estimated."""
    stop_reason: StopReason = StopReason.END_TURN
    """Why the model stopped. After ``LENGTH`` none of the response's calls runs."""
    provider_data: Any = attrs.field(default=None, converter=freeze)
    """JSON data kept with the assistant message and handed back unread in later requests. None: nothing."""


@attrs.frozen
class ChatError:
    """A provider's way to say that the request failed without raising."""

    message: str
    """What was wrong and what to do instead, without an API key in it."""
    code: ErrorCode = ErrorCode.PROVIDER_ERROR
    """The error's code; it decides the class of the `AgentError` that the turn fails with."""
    retryable: bool = True
    """Whether the same request may succeed later. It is retried only while nothing of the answer was visible."""
    retry_after_ms: int | None = None
    """Milliseconds that the server asked to wait. None: it did not say, and the policy's delay is used."""


ChatEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta | Progress | ToolCall | Done | ChatError

"""What a session remembers and a storage keeps: the five kinds of message (semantics 5).

A `ToolCall` is the same class when a provider streams it, when history holds it and when a store keeps it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

import attrs

from .content import ContentBlock, ReasoningBlock, TextBlock, blocks, text_of
from .jsonvalue import JsonObject, freeze, json_object


class MessageStatus(StrEnum):
    """Whether an assistant message is whole."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


class StopReason(StrEnum):
    """Why the model stopped. What follows from each is the table in semantics 4."""

    END_TURN = "end_turn"
    """It had said all."""
    TOOL_USE = "tool_use"
    """It waits for the results of its calls."""
    LENGTH = "length"
    """A limit on tokens cut it."""
    CONTENT_FILTER = "content_filter"
    """A filter of the provider cut it."""
    REFUSAL = "refusal"
    """The model refused."""
    PAUSE = "pause"
    """It wants to go on, in a request that hands back what it said so far."""
    ERROR = "error"
    """The provider failed, or gave up."""
    OTHER = "other"
    """Anything else: not known to be good."""


class ToolOutcome(StrEnum):
    """How a call ended. Each announced call has exactly one (semantics 5)."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


# Frozen and compared by value: one object is in history, in the log and in events at the same time, and a storage tells
# its own writer from another one by comparing what is stored with what is sent.
@attrs.frozen
class UserMessage:
    """What the user said."""

    content: tuple[ContentBlock, ...] = attrs.field(converter=blocks)
    """Blocks in the order of the input. A plain string becomes one `TextBlock`."""

    @property
    def text(self) -> str:
        """The plain text of the message; files and images are left out."""
        return text_of(self.content)


def _is_blank(block: ContentBlock) -> bool:
    # Signed reasoning without text is not blank: the provider that signed it wants it back.
    if isinstance(block, ReasoningBlock) and block.provider_data is not None:
        return False
    return isinstance(block, TextBlock | ReasoningBlock) and not block.text.strip()


@attrs.frozen
class AssistantMessage:
    """What the model said in one response. ``cause`` of an incomplete one: "cancelled", "failed" or "crashed"."""

    content: tuple[ContentBlock, ...] = attrs.field(converter=blocks)
    """Text and reasoning in the order in which they were streamed. Calls are messages of their own (`ToolCall`)."""
    status: MessageStatus = MessageStatus.COMPLETE
    """``INCOMPLETE`` when the response was stopped or broke off after something was shown."""
    cause: str | None = None
    """Why it is incomplete: "cancelled", "failed" or "crashed". None for a complete message."""
    response_id: str = ""
    """Given by the runtime: one id for the message and the calls of a response. Empty for a message made by hand."""
    provider_data: Any = attrs.field(default=None, converter=freeze)
    """The ``Done.provider_data`` of the response, handed back unread in later requests. None: nothing."""
    stop_reason: StopReason | None = None
    """Why the model stopped; None if it was stopped, or if a log of an older version does not say."""

    @property
    def text(self) -> str:
        """The plain text of the message."""
        return text_of(self.content)

    @property
    def blank(self) -> bool:
        """Nothing but white space, no reasoning, no provider data: such a message is never kept (semantics 5)."""
        return self.provider_data is None and all(map(_is_blank, self.content))


# A message of its own, not a block of the assistant's: a call whose response broke off needs its one result all the
# same, and is told apart from the text that was said with it by nothing but its place.
@attrs.frozen
class ToolCall:
    """A call that the model asks for. ``raw_arguments`` is its text where that was not JSON object (semantics 8)."""

    call_id: str
    """Unique within the session. A provider's id is kept unless it is missing or repeated."""
    tool_name: str
    """The name as the model wrote it; it may be the name of a tool that does not exist."""
    arguments: JsonObject = attrs.field(converter=json_object)
    """The arguments, read-only. Where ``raw_arguments`` is set: what it can only mean, or empty."""
    raw_arguments: str | None = None
    """The argument text as it came, when it was not a JSON object. The call then gets an error result, unless the text
    can be meant in one way only. None: it was one.
    """
    response_id: str = ""
    """The response that the call belongs to, as in `AssistantMessage`. Empty in what a provider yields."""
    provider_data: Any = attrs.field(default=None, converter=freeze)
    """JSON data that the provider needs back with this call, never read by the runtime. None: nothing."""


# No name of the tool and no arguments: they are the call's, and two copies could disagree after a hook changed one.
@attrs.frozen
class ToolResult:
    """The one answer to a call."""

    call_id: str
    """The call that this answers."""
    content: str
    """What the model reads: the tool's output, or a notice in its place (`Notices`)."""
    outcome: ToolOutcome = ToolOutcome.OK
    """How the call ended. Everything but ``OK`` is an error to the model."""

    @property
    def is_error(self) -> bool:
        """True unless the tool ran and succeeded."""
        return self.outcome is not ToolOutcome.OK


# In history and not in the system prompt: what is said there once would be said in each later request, and a prompt
# that changes makes the caches of providers useless.
@attrs.frozen
class SystemMessage:
    """A note of the runtime or a skill's prompt, at its place in the conversation."""

    content: str
    """The text, written by the runtime or by a skill."""


Message: TypeAlias = UserMessage | AssistantMessage | ToolCall | ToolResult | SystemMessage

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


class ToolOutcome(StrEnum):
    """How a call ended. Each announced call has exactly one (semantics 5)."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@attrs.frozen
class UserMessage:
    """What the user said."""

    content: tuple[ContentBlock, ...] = attrs.field(converter=blocks)

    @property
    def text(self) -> str:
        """The plain text of the message; files and images are left out."""
        return text_of(self.content)


def _is_blank(block: ContentBlock) -> bool:
    if isinstance(block, ReasoningBlock) and block.provider_data is not None:
        return False
    return isinstance(block, TextBlock | ReasoningBlock) and not block.text.strip()


@attrs.frozen
class AssistantMessage:
    """What the model said in one response. ``cause`` of an incomplete one: "cancelled", "failed" or "crashed"."""

    content: tuple[ContentBlock, ...] = attrs.field(converter=blocks)
    status: MessageStatus = MessageStatus.COMPLETE
    cause: str | None = None
    response_id: str = ""
    provider_data: Any = attrs.field(default=None, converter=freeze)

    @property
    def text(self) -> str:
        """The plain text of the message."""
        return text_of(self.content)

    @property
    def blank(self) -> bool:
        """Nothing but white space, no reasoning, no provider data: such a message is never kept (semantics 5)."""
        return self.provider_data is None and all(map(_is_blank, self.content))


@attrs.frozen
class ToolCall:
    """A call that the model asks for. ``raw_arguments`` is set when its text was no JSON object."""

    call_id: str
    tool_name: str
    arguments: JsonObject = attrs.field(converter=json_object)
    raw_arguments: str | None = None
    response_id: str = ""
    provider_data: Any = attrs.field(default=None, converter=freeze)


@attrs.frozen
class ToolResult:
    """The one answer to a call."""

    call_id: str
    content: str
    outcome: ToolOutcome = ToolOutcome.OK

    @property
    def is_error(self) -> bool:
        """True unless the tool ran and succeeded."""
        return self.outcome is not ToolOutcome.OK


@attrs.frozen
class SystemMessage:
    """A note of the runtime or a skill's prompt, at its place in the conversation."""

    content: str


Message: TypeAlias = UserMessage | AssistantMessage | ToolCall | ToolResult | SystemMessage

"""Messages as text for a model to read about, not to continue (semantics 9, 12). Pure.

render([UserMessage("hi"), AssistantMessage("hello")])      # "User: hi\\n\\nAssistant: hello"
fenced("conversation", text)                                # in a tag that the text cannot close
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages.codec import to_json
from ...messages.content import ContentBlock, FileBlock, ImageBlock, ReasoningBlock
from ...messages.history import (
    AssistantMessage,
    Message,
    MessageStatus,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)


def render(messages: Iterable[Message]) -> str:
    """The conversation as text, in order. Reasoning is left out and an image is named only."""
    return "\n\n".join(text for message in messages if (text := render_message(message)))


def render_message(message: Message) -> str:
    """One message as text; empty when nothing of it can be read."""
    match message:
        case UserMessage():
            return f"User: {_blocks(message.content)}"
        case AssistantMessage(status=MessageStatus.INCOMPLETE):
            # Said, because a summary that takes half an answer for a whole one would be wrong in the next turn.
            return f"Assistant (interrupted): {_blocks(message.content)}"
        case AssistantMessage():
            text = _blocks(message.content)
            return f"Assistant: {text}" if text.strip() else ""
        case ToolCall():
            arguments = to_json(message.arguments) if message.raw_arguments is None else message.raw_arguments
            return f"Assistant calls {message.tool_name} ({message.call_id}): {arguments}"
        case ToolResult():
            return f"Result of {message.call_id} ({message.outcome}): {message.content}"
        case SystemMessage():
            return f"Note: {message.content}"


def _blocks(content: Iterable[ContentBlock]) -> str:
    return "\n".join(_block(block) for block in content if not isinstance(block, ReasoningBlock))


def _block(block: ContentBlock) -> str:
    match block:
        case ImageBlock():
            return f"[image, {block.media_type}]"
        case FileBlock():
            return f"[file {block.name}]\n{block.text}"
        case _:
            return block.text

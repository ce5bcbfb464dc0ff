"""Messages as text for a model to read about, not to continue (semantics 9, 12). Pure.

render([UserMessage("hi"), ToolResult("a", "sunny")])      # "<user>\\nhi\\n</user>\\n\\n<result of=\\"a\\" ..."

Each message stands in a tag of its own, which its text can neither close nor open again: a tool's output, which may
come from anywhere, must not speak as the user in what is remembered.
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
from ..prompts.tags import escape, one_line, shown


def render(messages: Iterable[Message]) -> str:
    """The conversation as text, in order. Reasoning is left out and an image is named only."""
    return "\n\n".join(text for message in messages if (text := render_message(message)))


def render_message(message: Message) -> str:
    """One message as text in a tag; empty when nothing of it can be read."""
    match message:
        case UserMessage():
            return _tagged("user", _blocks(message.content))
        case AssistantMessage(status=MessageStatus.INCOMPLETE):
            # Said, because a summary that takes half an answer for a whole one would be wrong in the next turn.
            return _tagged("assistant", _blocks(message.content), interrupted="yes")
        case AssistantMessage():
            text = _blocks(message.content)
            return _tagged("assistant", text) if text.strip() else ""
        case ToolCall():
            arguments = to_json(message.arguments) if message.raw_arguments is None else message.raw_arguments
            return _tagged("call", arguments, tool=message.tool_name, id=message.call_id)
        case ToolResult():
            return _tagged("result", message.content, of=message.call_id, outcome=message.outcome)
        case SystemMessage():
            return _tagged("note", message.content)


_TAGS = ("user", "assistant", "call", "result", "note")


def _tagged(tag: str, text: str, **attributes: str) -> str:
    return f"<{tag}{shown(attributes)}>\n{escape(*_TAGS[:1], text, *_TAGS[1:])}\n</{tag}>"


def _blocks(content: Iterable[ContentBlock]) -> str:
    return "\n".join(_block(block) for block in content if not isinstance(block, ReasoningBlock))


def _block(block: ContentBlock) -> str:
    match block:
        case ImageBlock():
            return f"[image, {block.media_type}]"
        case FileBlock():
            return f"[file {one_line(block.name)}]\n{block.text}"
        case _:
            return block.text

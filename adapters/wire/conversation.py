"""History as the parties of a chat API see it: who speaks, and what belongs to one response (semantics 5).

Every chat API wants a response's text and its tool calls in one message and the results right after it; history keeps
them apart. Pure, knows no API, never repairs: what it is given is sendable.

    for part in parts(request.messages):
        match part:
            case Response(): ...        # text, calls and their results
            case Said(): ...            # the user, or a note of the runtime as user-role text
            case SystemMessage(): ...   # only where the model takes system messages anywhere
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

import attrs
import msgspec

from ...core.ports.call_arguments import repaired
from ...core.prompts.tags import enclose
from ...messages.content import ContentBlock, FileBlock, ImageBlock, TextBlock
from ...messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage
from ...messages.jsonvalue import thaw
from ...messages.text import clean_text
from .origin import Origin


@attrs.frozen
class Said:
    """User-role content: consecutive user messages, and notes where the model takes no system messages."""

    content: tuple[TextBlock | ImageBlock, ...]

    @property
    def plain(self) -> str | None:
        """The content as one text, or None when there is an image in it."""
        texts = [block.text for block in self.content if isinstance(block, TextBlock)]
        return "\n\n".join(texts) if len(texts) == len(self.content) else None


@attrs.define
class Response:
    """What the model said in one response, what it called, and the results."""

    message: AssistantMessage | None = None
    calls: list[ToolCall] = attrs.field(factory=list)
    results: list[ToolResult] = attrs.field(factory=list)

    @property
    def text(self) -> str:
        """The text, empty when there is nothing but white space (no API takes that)."""
        text = "" if self.message is None else self.message.text
        return text if text.strip() else ""

    def kept(self, origin: Origin) -> Any:
        """What ``origin`` left with the message, or None."""
        return None if self.message is None else origin.own(self.message.provider_data)

    def takes(self, call: ToolCall) -> bool:
        """Whether ``call`` belongs to this response. Without ids, one that follows a result does not."""
        earlier = self.message if self.message is not None else self.calls[0]
        if earlier.response_id or call.response_id:
            return earlier.response_id == call.response_id
        return not self.results


Part: TypeAlias = Said | Response | SystemMessage


def parts(messages: Iterable[Message], *, notes_as_user: bool) -> list[Part]:
    """Group history. With ``notes_as_user`` no system message is left, and the user never speaks twice in a row."""
    grouped: list[Part] = []
    for message in messages:
        match message:
            case AssistantMessage():
                grouped.append(Response(message))
            case ToolCall():
                _response_of(grouped, message).calls.append(message)
            case ToolResult():
                _last_response(grouped).results.append(message)
            case SystemMessage() if not notes_as_user:
                grouped.append(message)
            case SystemMessage(content=text):
                _say(grouped, (TextBlock(enclose("system", text)),), merge=True)
            case UserMessage(content=content):
                _say(grouped, tuple(map(_plain_block, filter(_speakable, content))), merge=notes_as_user)
    return grouped


def _response_of(grouped: list[Part], call: ToolCall) -> Response:
    last = grouped[-1] if grouped else None
    if isinstance(last, Response) and last.takes(call):
        return last
    grouped.append(fresh := Response())
    return fresh


def _last_response(grouped: list[Part]) -> Response:
    last = grouped[-1] if grouped else None
    if isinstance(last, Response):
        return last
    raise ValueError("a tool result without a call before it: normalise the history first")


def _say(grouped: list[Part], content: tuple[TextBlock | ImageBlock, ...], *, merge: bool) -> None:
    last = grouped[-1] if grouped else None
    if merge and isinstance(last, Said):
        grouped[-1] = Said(last.content + content)
    elif content:
        grouped.append(Said(content))


def _speakable(block: ContentBlock) -> bool:
    return isinstance(block, ImageBlock | FileBlock) or (isinstance(block, TextBlock) and bool(block.text.strip()))


def _plain_block(block: ContentBlock) -> TextBlock | ImageBlock:
    if isinstance(block, FileBlock):
        return TextBlock(enclose("file", block.text, name=block.name))
    if isinstance(block, TextBlock | ImageBlock):
        return block
    raise TypeError(f"{type(block).__name__} has no place in a user message")


def data_url(image: ImageBlock) -> str:
    """The image as a data URL."""
    return f"data:{image.media_type};base64,{image.data}"


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object, also when the model's text was none: many servers parse them again."""
    text = call.raw_arguments
    if text is None or call.arguments or text.strip() in ("", "null") or repaired(text) is not None:
        arguments: dict[str, Any] = thaw(call.arguments)
        return arguments
    return {"invalid_json": text}


def tool_call(call_id: str, name: str, text: str, provider_data: Any = None) -> ToolCall:
    """A finished call from the text of its arguments; a text that is not a JSON object is kept as it is.

    Whatever the text is, the call comes out: what is wrong with it is told to the model, not to the stream.
    """
    text = clean_text(text)
    try:
        arguments = msgspec.json.decode(text)
        if isinstance(arguments, dict):
            return ToolCall(call_id, name, arguments, provider_data=provider_data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass  # no JSON, or nested deeper than a message may be
    return ToolCall(call_id, name, {}, raw_arguments=text, provider_data=provider_data)


def argument_text(value: object) -> str:
    """Arguments, or a piece of them, as a text; some servers send the object that the text would hold."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_text(value: Any) -> str:
    """Compact JSON."""
    return msgspec.json.encode(value).decode()


def strict_ready(schema: Any) -> bool:
    """Whether every object of a JSON Schema is closed and requires all it has, as strict structured output wants it."""
    if isinstance(schema, list | tuple):
        return all(map(strict_ready, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = set(schema.get("properties", ()))
        if schema.get("additionalProperties") is not False or names != set(schema.get("required", ())):
            return False
    return all(map(strict_ready, schema.values()))

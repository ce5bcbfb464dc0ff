"""A request as the body of the chat completions API (semantics 4, 5, 14). Pure, imports no SDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.ports.protocols import ModelCapabilities
from ...messages.chat import ChatRequest, ToolSpec
from ...messages.content import ImageBlock, TextBlock
from ...messages.history import SystemMessage, ToolCall
from ...messages.jsonvalue import thaw
from ..wire.conversation import Response, Said, arguments_of, data_url, json_text, parts, strict_ready
from ..wire.ids import Ids, tool_name
from ..wire.origin import Origin
from .thoughts import HANDED_BACK


def chat_body(
    request: ChatRequest, capabilities: ModelCapabilities, origin: Origin, *, limit_name: str, ids: Ids
) -> dict[str, Any]:
    """The arguments of ``chat.completions.create``.

    Args:
        origin: whose own reasoning is handed back.
        limit_name: what the server calls its token limit, ``max_completion_tokens`` or ``max_tokens``.
        ids: how long an id of a call may be, and of what.
    """
    body: dict[str, Any] = {
        "model": request.model_id,
        "messages": _messages(request, capabilities, origin, ids),
        "stream": capabilities.streaming,
        "stream_options": {"include_usage": True} if capabilities.streaming else None,
        "tools": [_tool(tool) for tool in request.tools] if capabilities.tool_use else None,
        "temperature": request.temperature,
        limit_name: request.max_tokens,
        "reasoning_effort": request.reasoning_effort,
        "response_format": _response_format(request),
    }
    return {name: value for name, value in body.items() if value is not None and value != []}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": thaw(tool.parameters)}
    return {"type": "function", "function": function}


def _response_format(request: ChatRequest) -> dict[str, Any] | None:
    if (schema := thaw(request.response_schema)) is None:
        return None
    form = {"name": "response", "schema": schema, "strict": strict_ready(schema)}
    return {"type": "json_schema", "json_schema": form}


def _messages(request: ChatRequest, capabilities: ModelCapabilities, origin: Origin, ids: Ids) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if request.system.text.strip():
        messages.append({"role": "system", "content": request.system.text})
    for part in parts(request.messages, notes_as_user=not capabilities.system_messages):
        match part:
            case Said():
                messages.append({"role": "user", "content": _user_content(part)})
            case SystemMessage(content=text):
                messages.append({"role": "system", "content": text})
            case Response():
                messages.extend(_response(part, origin, ids))
    return messages


def _user_content(said: Said) -> str | list[dict[str, Any]]:
    # Only a list when there is no other way: many servers take plain strings alone.
    return said.plain if said.plain is not None else [_content_part(block) for block in said.content]


def _content_part(block: TextBlock | ImageBlock) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        return {"type": "image_url", "image_url": {"url": data_url(block)}}
    return {"type": "text", "text": block.text}


def _response(response: Response, origin: Origin, ids: Ids) -> Iterator[dict[str, Any]]:
    kept = thaw(response.kept(origin)) or {}
    content: Any = response.text or None
    if kept.get("parts"):
        content = [*kept["parts"], *([{"type": "text", "text": response.text}] if response.text else [])]
    message = {"role": "assistant", "content": content}
    if response.calls:
        message["tool_calls"] = [_call(call, origin, ids) for call in response.calls]
    message |= {name: value for name, value in (kept.get("message") or {}).items() if name in HANDED_BACK}
    if response.calls or content:
        yield message
    for result in response.results:
        yield {"role": "tool", "tool_call_id": ids(result.call_id), "content": result.content}


def _call(call: ToolCall, origin: Origin, ids: Ids) -> dict[str, Any]:
    kept = {name: value for name, value in (thaw(origin.own(call.provider_data)) or {}).items() if name != "from"}
    function = {
        "name": tool_name(call.tool_name),
        "arguments": json_text(arguments_of(call)),
        **kept.pop("function", {}),
    }
    return {"id": ids(call.call_id), "type": "function", "function": function, **kept}

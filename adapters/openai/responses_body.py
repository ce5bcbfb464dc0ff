"""A request as the body of the responses API (semantics 4, 5, 14). Pure, imports no SDK.

Nothing is kept on the server (``store`` is off): the whole conversation travels each time, and with it the reasoning
items that the model needs to go on where it was. They live in ``provider_data`` of the assistant message.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from typing import Any

from ...core.ports.protocols import ModelCapabilities
from ...messages.chat import ChatRequest, ToolSpec
from ...messages.content import ImageBlock, TextBlock
from ...messages.history import SystemMessage, ToolCall
from ...messages.jsonvalue import thaw
from ..wire.conversation import Response, Said, arguments_of, data_url, json_text, parts, strict_ready
from ..wire.ids import Ids, tool_name
from ..wire.origin import Origin

INCLUDE = "reasoning.encrypted_content"


def responses_body(request: ChatRequest, capabilities: ModelCapabilities, origin: Origin) -> dict[str, Any]:
    """The arguments of ``responses.create``.

    Args:
        origin: whose own items are handed back.
    """
    body: dict[str, Any] = {
        "model": request.model_id,
        "instructions": request.system.text or None,
        "input": _input(request, capabilities, origin),
        "stream": capabilities.streaming,
        "store": False,
        # What is not stored comes encrypted, where the server was asked for it: OpenAI sends it unasked, others do not.
        "include": [INCLUDE],
        "tools": [_tool(tool) for tool in request.tools] if capabilities.tool_use else None,
        "temperature": request.temperature,
        "max_output_tokens": request.max_tokens,
        "reasoning": None if request.reasoning_effort is None else {"effort": request.reasoning_effort},
        "text": _text_format(request),
    }
    return {name: value for name, value in body.items() if value is not None and value != []}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    # This API is strict unless told otherwise, and most schemas are not written for that.
    parameters = thaw(tool.parameters)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
        "strict": strict_ready(parameters),
    }


def _text_format(request: ChatRequest) -> dict[str, Any] | None:
    if (schema := thaw(request.response_schema)) is None:
        return None
    return {"format": {"type": "json_schema", "name": "response", "schema": schema, "strict": strict_ready(schema)}}


def _input(request: ChatRequest, capabilities: ModelCapabilities, origin: Origin) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    ids = Ids(longest=64)
    for part in parts(request.messages, notes_as_user=not capabilities.system_messages):
        match part:
            case Said(content=content):
                items.append({"role": "user", "content": [_content_part(block) for block in content]})
            case SystemMessage(content=text):
                items.append({"role": "system", "content": text})
            case Response():
                items.extend(_response(part, origin, ids))
    return items


def _content_part(block: TextBlock | ImageBlock) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        return {"type": "input_image", "image_url": data_url(block)}
    return {"type": "input_text", "text": block.text}


def _response(response: Response, origin: Origin, ids: Ids) -> Iterator[dict[str, Any]]:
    """The items of a response in the order in which the model made them; without that order, text first."""
    text, calls = response.text, iter(response.calls)
    kept = thaw(response.kept(origin)) or {}
    name = response.message.response_id if response.message is not None else ""
    for place, item in enumerate(kept.get("output") or ()):
        match item:
            case {"type": "message", "characters": int() as characters, **more}:
                yield from _message(text[:characters], f"{name}.{place}", more)
                text = text[characters:]
            case {"type": "function_call", **more}:
                yield from (_function_call(call, ids) | dict(more) for call in islice(calls, 1))
            case _:
                yield item
    yield from _message(text, name, {})
    yield from (_function_call(call, ids) for call in calls)
    for result in response.results:
        yield {"type": "function_call_output", "call_id": ids(result.call_id), "output": result.content}


def _message(text: str, name: str, more: Any) -> Iterator[dict[str, Any]]:
    """The form of an output item: the one that OpenAI, llama.cpp and vLLM all take back."""
    if text.strip():
        made = f"msg_{sha256(f'{name} {text[:64]}'.encode(errors='replace')).hexdigest()[:32]}"
        content = [{"type": "output_text", "text": text, "annotations": []}]
        yield {"type": "message", "id": made, "role": "assistant", "status": "completed", "content": content} | more


def _function_call(call: ToolCall, ids: Ids) -> dict[Any, Any]:
    arguments = json_text(arguments_of(call))
    name = tool_name(call.tool_name)
    return {"type": "function_call", "call_id": ids(call.call_id), "name": name, "arguments": arguments}

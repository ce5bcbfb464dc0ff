"""A request as the body of the Anthropic messages API (semantics 4, 5, 14). Pure, imports no SDK.

User and assistant take turns, the user first; the results of a batch stand together at the head of the next user
message; the notes of the runtime are user-role text, for this API takes system text at the start alone. Thinking
blocks go back as they came, signature and place included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from ...core.ports.protocols import ModelCapabilities
from ...core.structured_output import instruction
from ...messages.chat import ChatRequest, ToolSpec
from ...messages.content import ImageBlock, TextBlock
from ...messages.history import ToolCall, ToolResult
from ...messages.jsonvalue import thaw
from ..wire.conversation import Part, Response, Said, arguments_of, parts
from ..wire.ids import Ids, tool_name
from ..wire.origin import Origin

API = "anthropic-messages"
_MAX_TOKENS = 8_192
_THINKING = ("thinking", "redacted_thinking")

# Models that think by budget; the later ones decide for themselves and are told an effort.
_BUDGET_MODELS = re.compile(r"claude-3|claude-(opus|sonnet|haiku)-4(-[015])?(-\d{8}|-latest|@|$)")
_BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 24_576}


def messages_body(
    request: ChatRequest,
    capabilities: ModelCapabilities,
    origin: Origin,
    transform: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> dict[str, Any]:
    """The arguments of ``messages.create``.

    Args:
        origin: whose own blocks are handed back.
        transform: makes a JSON Schema one that this API takes; ValueError where that cannot be.
    """
    conversation = parts(request.messages, notes_as_user=True)
    schema = _enforceable(request.response_schema, transform)
    body: dict[str, Any] = {
        "model": request.model_id,
        "max_tokens": request.max_tokens or _MAX_TOKENS,
        "system": _system(request, told=schema is None),
        "messages": _messages(conversation, origin),
        "tools": [_tool(tool) for tool in request.tools] if capabilities.tool_use else [],
        "temperature": request.temperature,
        "output_config": {} if schema is None else {"format": {"type": "json_schema", "schema": schema}},
        "stream": capabilities.streaming,
    }
    _add_thinking(body, request.reasoning_effort, conversation, origin)
    return {name: value for name, value in body.items() if value is not None and value not in ([], {})}


def _system(request: ChatRequest, *, told: bool) -> list[dict[str, Any]]:
    """The system prompt; ``told``: with the schema of the answer, if there is one."""
    stable, dynamic = request.system.stable, request.system.dynamic
    schema = instruction(request.response_schema) if told and request.response_schema is not None else ""
    texts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in (stable, dynamic, schema) if text.strip()]
    if stable.strip():
        # The mark also covers the tools, which come before it.
        texts[0]["cache_control"] = {"type": "ephemeral"}
    return texts


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": thaw(tool.parameters)}


def _enforceable(schema: Any, transform: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any] | None:
    """The schema as this API holds the model to it; None if there is none, or the API takes no such schema."""
    if schema is None or _has_open_object(schema):
        return None
    try:
        return transform(thaw(schema))
    except (ValueError, AssertionError, TypeError):
        return None


def _has_open_object(schema: Any) -> bool:
    # Where every object is closed, one with names of its own would always be empty.
    if isinstance(schema, list | tuple):
        return any(map(_has_open_object, schema))
    if not isinstance(schema, Mapping):
        return False
    is_object = schema.get("type") == "object" and not schema.get("properties")
    return (is_object and schema.get("additionalProperties", True) is not False) or any(
        map(_has_open_object, schema.values())
    )


def _add_thinking(body: dict[str, Any], effort: str | None, conversation: list[Part], origin: Origin) -> None:
    if effort in (None, "none") or _continues_without_thinking(conversation, origin):
        return
    del body["temperature"]  # the API fixes it while the model thinks
    if _BUDGET_MODELS.search(body["model"]) is None:
        body["thinking"] = {"type": "adaptive"}
        body["output_config"]["effort"] = "low" if effort == "minimal" else effort
        return
    budget = _BUDGETS.get(str(effort), _BUDGETS["high"])
    body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    body["max_tokens"] += budget  # the limit counts thinking too, and the caller meant the answer


def _continues_without_thinking(conversation: list[Part], origin: Origin) -> bool:
    """Whether a response with calls waits for its continuation and has no thinking: the API refuses to start then."""
    last = conversation[-1] if conversation else None
    if not isinstance(last, Response) or not last.calls:
        return False
    return not any(item["type"] in _THINKING for item in _output(last, origin))


def _messages(conversation: list[Part], origin: Origin) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    ids = Ids(longest=64)
    for part in conversation:
        if isinstance(part, Response):
            _say(messages, "assistant", list(_response(part, origin, ids)))
            _say(messages, "user", [_result(result, ids) for result in part.results])
        elif isinstance(part, Said):
            _say(messages, "user", [_content(block) for block in part.content])
    if messages and messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [{"type": "text", "text": "(the conversation goes on)"}]})
    return messages


def _say(messages: list[dict[str, Any]], role: str, content: list[dict[str, Any]]) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(content)
    elif content:
        messages.append({"role": role, "content": content})


def _content(block: TextBlock | ImageBlock) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        return {"type": "image", "source": {"type": "base64", "media_type": block.media_type, "data": block.data}}
    return {"type": "text", "text": block.text}


def _result(result: ToolResult, ids: Ids) -> dict[str, Any]:
    answer = {"type": "tool_result", "tool_use_id": ids(result.call_id), "content": result.content}
    return {**answer, "is_error": True} if result.is_error else answer


def _tool_use(call: ToolCall, ids: Ids) -> dict[str, Any]:
    name = tool_name(call.tool_name)
    return {"type": "tool_use", "id": ids(call.call_id), "name": name, "input": arguments_of(call)}


def _output(response: Response, origin: Origin) -> list[dict[str, Any]]:
    data = thaw(response.kept(origin))
    return [] if data is None else data["content"]


def _response(response: Response, origin: Origin, ids: Ids) -> Iterator[dict[str, Any]]:
    """The blocks of a response in the order in which the model made them; without that order, text first."""
    text, calls, blank = response.text, iter(response.calls), ""
    for item in _output(response, origin):
        match item:
            case {"type": "text", "characters": int() as characters}:
                said, text = blank + text[:characters], text[characters:]
                # The API takes no block of white space alone, but the next text may need it (citations are cut so).
                blank = "" if said.strip() else said
                yield from _text(said)
            case {"type": "tool_use"}:
                yield from (_tool_use(call, ids) for call in islice(calls, 1))
            case _:
                yield item
    yield from _text(blank + text if text else "")
    yield from (_tool_use(call, ids) for call in calls)


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []

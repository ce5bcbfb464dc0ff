"""The responses API: a request as its body, its events as chat events (semantics 4, 14). Pure, imports no SDK.

Nothing is kept on the server (``store`` is off): the whole conversation travels each time, and with it the encrypted
reasoning items that the model needs to go on where it was. They live in ``provider_data`` of the assistant message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import attrs

from ...core.ports.protocols import ModelCapabilities
from ...messages.chat import ChatEvent, ChatRequest, Done, ReasoningDelta, StopReason, TextDelta, ToolSpec
from ...messages.content import ImageBlock, TextBlock
from ...messages.errors import AgentError
from ...messages.history import SystemMessage, ToolCall
from ...messages.jsonvalue import thaw
from ..wire.conversation import Response, Said, arguments_of, data_url, json_text, parts, strict_ready, tool_call
from ..wire.errors import Failure, judge
from .chat import usage_of

API = "openai-responses"


def responses_body(request: ChatRequest, capabilities: ModelCapabilities) -> dict[str, Any]:
    """The arguments of ``responses.create``."""
    body: dict[str, Any] = {
        "model": request.model_id,
        "instructions": request.system.text or None,
        "input": _input(request, capabilities),
        "stream": True,
        "store": False,
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


def _input(request: ChatRequest, capabilities: ModelCapabilities) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for part in parts(request.messages, notes_as_user=not capabilities.system_messages):
        match part:
            case Said(content=content):
                items.append({"role": "user", "content": [_content_part(block) for block in content]})
            case SystemMessage(content=text):
                items.append({"role": "system", "content": text})
            case Response():
                items.extend(_response(part))
    return items


def _content_part(block: TextBlock | ImageBlock) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        return {"type": "input_image", "image_url": data_url(block)}
    return {"type": "input_text", "text": block.text}


def _response(response: Response) -> Iterator[dict[str, Any]]:
    """The items of a response in the order in which the model made them; without that order, text first."""
    spoken = iter([{"role": "assistant", "content": response.text}] if response.text else [])
    calls = map(_function_call, response.calls)
    made = response.provider_data(API) or {"output": []}
    for item in made["output"]:
        match item:
            case {"type": "reasoning"}:
                yield thaw(item)
            case {"type": "message"}:
                yield from islice(spoken, 1)
            case {"type": "function_call"}:
                yield from islice(calls, 1)
    yield from spoken
    yield from calls
    for result in response.results:
        yield {"type": "function_call_output", "call_id": result.call_id, "output": result.content}


def _function_call(call: ToolCall) -> dict[str, Any]:
    arguments = json_text(arguments_of(call))
    return {"type": "function_call", "call_id": call.call_id, "name": call.tool_name, "arguments": arguments}


_DELTAS: dict[str, type[TextDelta] | type[ReasoningDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": TextDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
}


@attrs.define
class ResponsesTranslator:
    """Events of a response as chat events. A call comes as soon as its item is done."""

    _output: list[dict[str, Any]] = attrs.field(factory=list)
    _called: bool = False
    _complete: bool = False

    @property
    def complete(self) -> bool:
        """Whether the response was declared over."""
        return self._complete

    def feed(self, item: dict[str, Any]) -> Iterable[ChatEvent]:
        """One event. Kinds that mean nothing to us are passed over."""
        match item:
            case {"type": "response.output_item.done", "item": dict() as made}:
                yield from self._item(made)
            case {"type": "response.completed" | "response.incomplete", "response": dict() as response}:
                yield self._done(response)
            case {"type": "response.failed", "response": {"error": dict() as error}}:
                raise _failure(error)
            case {"type": "error" | "response.failed"}:
                raise _failure(item)
            case {"type": str() as kind, "delta": str() as text} if kind in _DELTAS and text:
                yield _DELTAS[kind](text)

    def _item(self, item: dict[str, Any]) -> Iterator[ChatEvent]:
        match item:
            case {"type": "function_call", "call_id": call_id, "name": name}:
                self._called = True
                self._output.append({"type": "function_call"})
                yield tool_call(call_id, name, item.get("arguments") or "")
            case {"type": "message"}:
                self._output.append({"type": "message"})
            case {"type": "reasoning", "encrypted_content": str()}:
                kept = ("type", "id", "summary", "encrypted_content")
                self._output.append({"summary": []} | {name: item[name] for name in kept if name in item})

    def _done(self, response: dict[str, Any]) -> Done:
        self._complete = True
        usage = response.get("usage")
        return Done(usage_of(usage) if usage else None, self._stop_reason(response), self._provider_data())

    def _stop_reason(self, response: dict[str, Any]) -> StopReason:
        match response.get("incomplete_details"):
            case {"reason": "max_output_tokens" | "max_tokens"}:
                return StopReason.LENGTH
            case {"reason": "content_filter"}:
                return StopReason.CONTENT_FILTER
        return StopReason.TOOL_USE if self._called else StopReason.END_TURN

    def _provider_data(self) -> dict[str, Any] | None:
        if not any(item["type"] == "reasoning" for item in self._output):
            return None
        return {"api": API, "output": self._output}

    def finish(self) -> Iterable[ChatEvent]:
        """Nothing: an early end has no `Done`."""
        return ()


def _failure(error: dict[str, Any]) -> AgentError:
    message = error.get("message") or "the server gave up on the response without saying why"
    return judge(Failure(message, names=frozenset(filter(None, [error.get("code")]))))

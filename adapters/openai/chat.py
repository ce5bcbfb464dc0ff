"""The chat completions API: a request as its body, its chunks as chat events (semantics 4, 14). Pure, imports no SDK.

Written for OpenAI and for the many servers that speak its API with an accent: what one leaves out or repeats is
tolerated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ...core.ports.protocols import ModelCapabilities
from ...messages.chat import ChatEvent, ChatRequest, Done, ReasoningDelta, StopReason, TextDelta, TokenUsage, ToolSpec
from ...messages.content import ImageBlock, TextBlock
from ...messages.history import SystemMessage
from ...messages.jsonvalue import thaw
from ..wire.conversation import Response, Said, arguments_of, data_url, json_text, parts, strict_ready, tool_call

_STOP_REASONS = {
    "length": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.CONTENT_FILTER,
}


def chat_body(request: ChatRequest, capabilities: ModelCapabilities, *, limit_name: str) -> dict[str, Any]:
    """The arguments of ``chat.completions.create``.

    Args:
        limit_name: what the server calls its token limit, ``max_completion_tokens`` or ``max_tokens``.
    """
    body: dict[str, Any] = {
        "model": request.model_id,
        "messages": _messages(request, capabilities),
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


def _messages(request: ChatRequest, capabilities: ModelCapabilities) -> list[dict[str, Any]]:
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
                messages.extend(_response(part))
    return messages


def _user_content(said: Said) -> str | list[dict[str, Any]]:
    # Only a list when there is no other way: many servers take plain strings alone.
    return said.plain if said.plain is not None else [_content_part(block) for block in said.content]


def _content_part(block: TextBlock | ImageBlock) -> dict[str, Any]:
    if isinstance(block, ImageBlock):
        return {"type": "image_url", "image_url": {"url": data_url(block)}}
    return {"type": "text", "text": block.text}


def _response(response: Response) -> Iterator[dict[str, Any]]:
    if response.calls:
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": json_text(arguments_of(call))},
            }
            for call in response.calls
        ]
        yield {"role": "assistant", "content": response.text or None, "tool_calls": calls}
    elif response.text:
        yield {"role": "assistant", "content": response.text}
    for result in response.results:
        yield {"role": "tool", "tool_call_id": result.call_id, "content": result.content}


@attrs.define
class _Call:
    """A tool call whose pieces are still arriving."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""


@attrs.define
class ChatTranslator:
    """Chunks of a chat completion as chat events. Calls come at the end: until then any of them may grow."""

    _calls: list[_Call] = attrs.field(factory=list)
    _finish_reason: str | None = None
    _usage: TokenUsage | None = None

    @property
    def complete(self) -> bool:
        """Whether a finish reason came."""
        return self._finish_reason is not None

    def feed(self, item: dict[str, Any]) -> Iterable[ChatEvent]:
        """One chunk, or a whole completion of a model that does not stream."""
        # Several reports of one response are cumulative: the last one counts.
        if usage := item.get("usage"):
            self._usage = usage_of(usage)
        for choice in item.get("choices") or ():
            # A server that ignores n=1 shall not mix two answers.
            if not choice.get("index"):
                yield from self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> Iterator[ChatEvent]:
        delta = choice.get("delta") or choice.get("message") or {}
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning and isinstance(reasoning, str):
            yield ReasoningDelta(reasoning)
        for text in (delta.get("content"), delta.get("refusal")):
            if text:
                yield TextDelta(text)
        for piece in delta.get("tool_calls") or ():
            self._grow(piece)
        self._finish_reason = choice.get("finish_reason") or self._finish_reason

    def _grow(self, piece: dict[str, Any]) -> None:
        call = self._call_of(piece.get("index"), piece.get("id") or "")
        function = piece.get("function") or {}
        call.name = call.name or function.get("name") or ""
        arguments = function.get("arguments")
        if arguments is not None:
            call.arguments += arguments if isinstance(arguments, str) else json_text(arguments)

    def _call_of(self, index: int | None, id: str) -> _Call:
        """The call a piece belongs to. A new id under a known index is a new call: some servers count all as 0."""
        for call in reversed(self._calls):
            if call.index == index or index is None:
                if not id or not call.id or id == call.id:
                    call.id = call.id or id
                    return call
                break
        self._calls.append(call := _Call(index, id))
        return call

    def finish(self) -> Iterable[ChatEvent]:
        """The calls, then `Done`; nothing if the stream ended without a finish reason."""
        if self._finish_reason is None:
            return
        for call in self._calls:
            yield tool_call(call.id, call.name, call.arguments)
        yield Done(self._usage, self._stop_reason(self._finish_reason))

    def _stop_reason(self, finish_reason: str) -> StopReason:
        # Some servers say "stop" after tool calls.
        usual = StopReason.TOOL_USE if self._calls else StopReason.END_TURN
        return _STOP_REASONS.get(finish_reason, usual)


def usage_of(usage: dict[str, Any]) -> TokenUsage:
    """Token counts of either OpenAI API; what the server does not say is 0."""
    sent = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    made = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    return TokenUsage(
        input_tokens=usage.get("prompt_tokens") or usage.get("input_tokens") or 0,
        output_tokens=usage.get("completion_tokens") or usage.get("output_tokens") or 0,
        cache_read_tokens=sent.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0,
        cache_write_tokens=sent.get("cache_write_tokens") or 0,
        reasoning_tokens=made.get("reasoning_tokens") or 0,
    )

"""The events of an Anthropic message stream as chat events (semantics 4, 14). Pure, imports no SDK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ...messages.chat import ChatEvent, Done, ReasoningDelta, StopReason, TextDelta, TokenUsage
from ..wire.conversation import json_text, tool_call
from .request import API

_STOP_REASONS = {
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.CONTENT_FILTER,
}
_USAGE_NAMES = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "thinking_tokens",
)


@attrs.define
class _Block:
    """A content block that is still arriving: ``start`` is how it was announced."""

    start: dict[str, Any]
    text: str = ""
    signature: str = ""


@attrs.define
class MessageTranslator:
    """Events of one message as chat events. A call comes when its block is closed."""

    _blocks: dict[int, _Block] = attrs.field(factory=dict)
    _content: list[dict[str, Any]] = attrs.field(factory=list)
    _usage: dict[str, int] = attrs.field(factory=dict)
    _stop_reason: StopReason = StopReason.END_TURN
    _complete: bool = False

    @property
    def complete(self) -> bool:
        """Whether the message was declared over."""
        return self._complete

    def feed(self, item: dict[str, Any]) -> Iterable[ChatEvent]:
        """One event. Kinds that mean nothing to us are passed over."""
        match item:
            case {"type": "message_start", "message": {"usage": dict() as usage}}:
                self._count(usage)
            case {"type": "content_block_start", "index": int() as index, "content_block": dict() as start}:
                yield from self._start(index, start)
            case {"type": "content_block_delta", "index": int() as index, "delta": dict() as delta}:
                yield from self._grow(self._blocks[index], delta)
            case {"type": "content_block_stop", "index": int() as index}:
                yield from self._close(self._blocks.pop(index))
            case {"type": "message_delta", "delta": dict() as delta}:
                self._count(item.get("usage") or {})
                self._stop_reason = _STOP_REASONS.get(delta.get("stop_reason") or "", self._stop_reason)
            case {"type": "message_stop"}:
                self._complete = True
                yield Done(self._token_usage(), self._stop_reason, self._provider_data())

    def _start(self, index: int, start: dict[str, Any]) -> Iterator[ChatEvent]:
        block = self._blocks[index] = _Block(start, signature=start.get("signature") or "")
        match start:
            case {"type": "text", "text": str() as text} if text:
                block.text = text
                yield TextDelta(text)
            case {"type": "thinking", "thinking": str() as text} if text:
                block.text = text
                yield ReasoningDelta(text)

    def _grow(self, block: _Block, delta: dict[str, Any]) -> Iterator[ChatEvent]:
        match delta:
            case {"type": "text_delta", "text": str() as text} if text:
                block.text += text
                yield TextDelta(text)
            case {"type": "thinking_delta", "thinking": str() as text} if text:
                block.text += text
                yield ReasoningDelta(text)
            case {"type": "signature_delta", "signature": str() as text}:
                block.signature += text
            case {"type": "input_json_delta", "partial_json": str() as text}:
                block.text += text

    def _close(self, block: _Block) -> Iterator[ChatEvent]:
        match block.start:
            case {"type": "text"}:
                self._content.append({"type": "text", "characters": len(block.text)})
            case {"type": "thinking"}:
                self._content.append({"type": "thinking", "thinking": block.text, "signature": block.signature})
            case {"type": "redacted_thinking", "data": data}:
                self._content.append({"type": "redacted_thinking", "data": data})
            case {"type": "tool_use", "id": call_id, "name": name}:
                self._content.append({"type": "tool_use"})
                # A server that sends no pieces has put all of it into the announcement.
                yield tool_call(call_id, name, block.text or json_text(block.start.get("input") or {}))

    def _count(self, usage: dict[str, Any]) -> None:
        """Counts are cumulative: what is said last holds, what is not said stays."""
        details = usage.get("output_tokens_details") or {}
        said = {**usage, "thinking_tokens": details.get("thinking_tokens")}
        self._usage |= {name: said[name] for name in _USAGE_NAMES if said.get(name) is not None}

    def _token_usage(self) -> TokenUsage | None:
        fresh, made, read, written, thought = (self._usage.get(name, 0) for name in _USAGE_NAMES)
        if not any((fresh, made, read, written)):
            return None
        # This API counts cached input beside the rest; a TokenUsage counts it as a part.
        return TokenUsage(fresh + read + written, made, read, written, thought)

    def _provider_data(self) -> dict[str, Any] | None:
        """The order of the blocks, kept only when there is thinking to hand back."""
        if not any("thinking" in item["type"] for item in self._content):
            return None
        return {"api": API, "content": self._content}

    def finish(self) -> Iterable[ChatEvent]:
        """Nothing: an early end has no `Done`."""
        return ()

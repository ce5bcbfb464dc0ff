"""The events of an Anthropic message stream as chat events (semantics 4, 14). Pure, imports no SDK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ..messages.chat import ChatEvent, Done, ReasoningDelta, StopReason, TextDelta, TokenUsage
from .anthropic_request import API
from .conversation import json_text, tool_call

_STOP_REASONS = {
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.CONTENT_FILTER,
}
_USAGE_NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@attrs.define
class _Block:
    """A content block that is still arriving: ``start`` is how it was announced."""

    start: Any
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

    def feed(self, item: Any) -> Iterable[ChatEvent]:
        """One event. Kinds that mean nothing to us are passed over."""
        match getattr(item, "type", None):
            case "message_start":
                self._count(getattr(item.message, "usage", None))
            case "content_block_start":
                yield from self._start(item.index, item.content_block)
            case "content_block_delta":
                yield from self._grow(item.index, item.delta)
            case "content_block_stop":
                yield from self._close(item.index)
            case "message_delta":
                self._count(getattr(item, "usage", None))
                self._stop_reason = _STOP_REASONS.get(getattr(item.delta, "stop_reason", None) or "", self._stop_reason)
            case "message_stop":
                self._complete = True
                yield Done(self._token_usage(), self._stop_reason, self._provider_data())

    def _start(self, index: int, start: Any) -> Iterator[ChatEvent]:
        block = self._blocks[index] = _Block(start)
        match start.type:
            case "text" if start.text:
                block.text = start.text
                yield TextDelta(start.text)
            case "thinking":
                block.text = getattr(start, "thinking", None) or ""
                block.signature = getattr(start, "signature", None) or ""
                yield from [ReasoningDelta(block.text)] if block.text else []

    def _grow(self, index: int, delta: Any) -> Iterator[ChatEvent]:
        block = self._blocks[index]
        match delta.type:
            case "text_delta" if delta.text:
                block.text += delta.text
                yield TextDelta(delta.text)
            case "thinking_delta" if delta.thinking:
                block.text += delta.thinking
                yield ReasoningDelta(delta.thinking)
            case "signature_delta":
                block.signature += delta.signature
            case "input_json_delta":
                block.text += delta.partial_json

    def _close(self, index: int) -> Iterator[ChatEvent]:
        block = self._blocks.pop(index)
        start = block.start
        match start.type:
            case "text":
                self._content.append({"type": "text", "characters": len(block.text)})
            case "thinking":
                thinking = {"thinking": block.text, "signature": block.signature}
                self._content.append({"type": "thinking", **thinking})
            case "redacted_thinking":
                self._content.append({"type": "redacted_thinking", "data": start.data})
            case "tool_use":
                self._content.append({"type": "tool_use"})
                # A server that sends no pieces has put all of it into the announcement.
                yield tool_call(start.id, start.name, block.text or json_text(getattr(start, "input", None) or {}))

    def _count(self, usage: Any) -> None:
        """Counts are cumulative: what is said last holds, what is not said stays."""
        for name in _USAGE_NAMES:
            if (count := getattr(usage, name, None)) is not None:
                self._usage[name] = count
        thought = getattr(getattr(usage, "output_tokens_details", None), "thinking_tokens", None)
        self._usage["thinking_tokens"] = thought or self._usage.get("thinking_tokens", 0)

    def _token_usage(self) -> TokenUsage | None:
        fresh, made, read, written = (self._usage.get(name, 0) for name in _USAGE_NAMES)
        if not any((fresh, made, read, written)):
            return None
        # This API counts cached input beside the rest; a TokenUsage counts it as a part.
        return TokenUsage(fresh + read + written, made, read, written, self._usage["thinking_tokens"])

    def _provider_data(self) -> dict[str, Any] | None:
        """The order of the blocks, kept only when there is thinking to hand back."""
        if not any("thinking" in item["type"] for item in self._content):
            return None
        return {"api": API, "content": self._content}

    def finish(self) -> Iterable[ChatEvent]:
        """Nothing: an early end has no `Done`."""
        return ()

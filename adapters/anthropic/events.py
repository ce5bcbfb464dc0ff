"""The events of an Anthropic message stream as chat events (semantics 4, 14). Pure, imports no SDK.

The documents bracket each block by a start and a stop and the message by two events of its own. Compatible servers
leave brackets out, double them or count all blocks as 0; a block is therefore also opened by its first piece, and
closed by what takes its place or by the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ...messages.chat import (
    ChatError,
    ChatEvent,
    Done,
    Progress,
    ReasoningDelta,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from ...messages.text import clean_text
from ..wire.body import Item, not_an_answer
from ..wire.conversation import json_text, tool_call
from ..wire.origin import Origin
from ..wire.stop import good_end, stop_reason
from ..wire.usage import count
from .request import API

_COUNTED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
# Which kind of block a piece belongs to, and under which name it brings its text.
_PIECES = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


@attrs.define
class _Block:
    """A content block that may still grow: ``start`` is how it was announced."""

    start: dict[str, Any]
    call_id: str = ""
    pieces: list[str] = attrs.field(factory=list)
    signature: list[str] = attrs.field(factory=list)
    stopped: bool = False

    @property
    def kind(self) -> str:
        """Its type, empty if it has none."""
        return _text(self.start.get("type"))

    @property
    def waits(self) -> bool:
        """Whether it is a call of which no arguments came so far: they may come after its stop, or not at all."""
        return self.kind == "tool_use" and not self.pieces and not self.start.get("input")

    @property
    def text(self) -> str:
        """What its pieces say."""
        return clean_text("".join(self.pieces))


@attrs.define
class MessageTranslator:
    """Events of one message as chat events. A call comes when its block is closed."""

    origin: Origin = attrs.field(factory=lambda: Origin(API))
    last_event: str = "message_stop"
    _open: dict[int, _Block] = attrs.field(factory=dict)
    _blocks: list[_Block] = attrs.field(factory=list)
    _next: int = 0
    _counts: dict[str, int] = attrs.field(factory=dict)
    _stop_reason: Any = None
    _complete: bool = False
    _called: bool = False

    @property
    def declared(self) -> bool:
        """Whether a stop reason came."""
        return self._stop_reason is not None

    @property
    def complete(self) -> bool:
        """Whether the message was declared over."""
        return self._complete

    @property
    def usage(self) -> TokenUsage | None:
        """What was reported so far. This API counts cached input beside the rest; a TokenUsage counts it as a part."""
        fresh, made, read, written = (self._counts.get(name, 0) for name in _COUNTED)
        if not any((fresh, made, read, written)):
            return None
        return TokenUsage(fresh + read + written, made, read, written, self._counts.get("thinking_tokens", 0))

    def feed(self, item: Item) -> Iterable[ChatEvent]:
        """One event, or a whole message. Kinds that mean nothing to us are ignored."""
        event = item.value
        match event.get("type") or item.name:
            case "message_start":
                yield from self._message(event.get("message"))
            case "message" if item.whole or not self._blocks:
                yield from self._message(event)
                yield from self._close_all()
            case "content_block_start":
                start = event.get("content_block")
                yield from self._start(self._index(event, new=True), start if isinstance(start, dict) else {})
            case "content_block_delta":
                yield from self._grow(self._index(event), event.get("delta"))
            case "content_block_stop":
                index = self._index(event)
                if index in self._open:
                    self._open[index].stopped = True
                    if not self._open[index].waits:
                        yield from self._close(self._open.pop(index))
            case "message_delta":
                self._count(event.get("usage"))
                delta = event.get("delta")
                if isinstance(delta, dict) and delta.get("stop_reason"):
                    self._stop_reason = delta["stop_reason"]
                    yield from self._close_all()
            case "message_stop":
                self._complete = True
            case _ if item.whole:
                raise not_an_answer(event)

    def _message(self, message: object) -> Iterator[ChatEvent]:
        """A message as it is announced: empty in a stream, whole in a body that is none."""
        for index, block in list(self._open.items()):
            # A call that was announced and has no arguments yet is left open: closed here, it would run without them.
            if not block.waits:
                yield from self._close(self._open.pop(index))
        if isinstance(message, dict):
            self._count(message.get("usage"))
            content = message.get("content")
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            for place, block in enumerate(content if isinstance(content, list) else ()):
                if isinstance(block, dict):
                    yield from self._start(place, block)
                    self._open[place].stopped = True
            self._stop_reason = message.get("stop_reason") or self._stop_reason

    def _index(self, event: dict[str, Any], *, new: bool = False) -> int:
        index = event.get("index")
        if isinstance(index, int):
            return index
        # Behind the highest, not by the number of blocks: two may have stood in one place.
        return self._next if new else max(self._open, default=self._next)

    def _start(self, index: int, start: dict[str, Any]) -> Iterator[ChatEvent]:
        if (before := self._open.get(index)) is not None:
            if before.waits and start == before.start:
                return  # said twice
            if before.start == {"type": start.get("type")} and not start.get("input"):
                # Its pieces came first. Kept apart, the announced call would run without them.
                before.start = start
                before.call_id = _text(start.get("id")) or before.call_id
                return
            yield from self._close(self._open.pop(index))
        self._next = max(self._next, index + 1)
        block = self._open[index] = _Block(start)
        self._blocks.append(block)
        if signature := _text(start.get("signature")):
            block.signature.append(signature)
        match block.kind:
            case "text":
                yield from self._piece(block, _text(start.get("text")))
            case "thinking":
                yield from self._piece(block, _text(start.get("thinking")))
            case "tool_use":
                block.call_id = _text(start.get("id")) or f"call_{len(self._blocks) - 1}"
                yield ToolCallDelta(block.call_id, _text(start.get("name")) or None)
            case _:
                yield Progress()

    def _piece(self, block: _Block, text: str) -> Iterator[ChatEvent]:
        if not text:
            return
        block.pieces.append(text)
        match block.kind:
            case "text":
                yield TextDelta(text)
            case "thinking":
                yield ReasoningDelta(text)
            case "tool_use":
                yield ToolCallDelta(block.call_id, _text(block.start.get("name")) or None, text)
            case _:
                yield Progress()

    def _grow(self, index: int, delta: object) -> Iterator[ChatEvent]:
        if not isinstance(delta, dict):
            return
        known = _PIECES.get(_text(delta.get("type")))
        if known is None:
            return
        kind, name = known
        text = _text(delta.get(name))
        block = self._open.get(index)
        # A piece that fits no open block opens one, and closes what stood in its place.
        if block is None or (block.kind != kind and not (kind == "tool_use" and block.kind in _CALLS)):
            yield from self._start(index, {"type": kind})
            block = self._open[index]
        if name == "signature":
            block.signature.append(text)
            yield Progress()
        else:
            yield from self._piece(block, text)

    def _close_all(self) -> Iterator[ChatEvent]:
        for index in list(self._open):
            yield from self._close(self._open.pop(index))

    def _close(self, block: _Block) -> Iterator[ChatEvent]:
        if block.kind == "tool_use":
            self._called = True
            # A server that sends no pieces has put all of it into the announcement. Nothing in either place means no
            # arguments in this format, but only if the block was closed: else its pieces may be lost.
            given = block.start.get("input")
            nothing = "{}" if block.stopped else ""
            text = block.text or (json_text(given) if isinstance(given, dict) and given else _text(given) or nothing)
            yield tool_call(block.call_id, _text(block.start.get("name")), text)

    def _count(self, usage: object) -> None:
        """Counts are cumulative: what is said last holds, what is not said stays."""
        if isinstance(usage, dict):
            details = usage.get("output_tokens_details")
            thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
            said = {name: count(usage.get(name)) for name in _COUNTED} | {"thinking_tokens": count(thinking)}
            self._counts |= {name: number for name, number in said.items() if number is not None}

    def finish(self, *, marked: bool) -> Iterable[ChatEvent]:
        """The calls that are still open, then `Done`; nothing if the message was cut."""
        if not (self._complete or self.declared or marked):
            return
        yield from self._close_all()
        if self._stop_reason is None:
            reason = good_end(called=self._called)
        else:
            reason = stop_reason(self._stop_reason, called=self._called)
        if reason is StopReason.ERROR:
            yield ChatError(f"the server ended the message with stop_reason {self._stop_reason!r}")
        else:
            yield Done(self.usage, reason, self.origin.mark(self._kept()))

    def _kept(self) -> dict[str, Any]:
        """The blocks in their order, kept only when there is one that history has no place for."""
        content = [item for item in map(_kept_block, self._blocks) if item]
        plain = all(item["type"] in ("text", "tool_use") for item in content)
        return {} if plain else {"content": content}


def _kept_block(block: _Block) -> dict[str, Any]:
    match block.kind:
        case "text":
            return {"type": "text", "characters": len(block.text)}
        case "thinking":
            return {"type": "thinking", "thinking": block.text, "signature": "".join(block.signature)}
        case "tool_use":
            return {"type": "tool_use"}
        case "":
            return {}
        case kind if kind in _CALLS:
            # A tool that the server runs by itself: it wants its own call back beside the result that it made.
            said = tool_call("", "", block.text or "{}")
            return {**block.start, "input": block.start.get("input") or said.arguments}
        case _:
            return block.start


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

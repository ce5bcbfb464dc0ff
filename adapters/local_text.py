"""What the local model reads and writes as text: history without tools, and the pieces of a one-line answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ..messages.chat import ChatEvent, Done, StopReason, TextDelta, TokenUsage
from ..messages.history import Message, ToolCall, ToolResult, UserMessage


def in_words(messages: Iterable[Message]) -> Iterator[Message]:
    """History for a model that knows nothing of tools: a result becomes user-role text, calls are left out."""
    names: dict[str, str] = {}
    for message in messages:
        match message:
            case ToolCall(call_id=call_id, tool_name=name):
                names[call_id] = name
            case ToolResult(call_id=call_id, content=content):
                yield UserMessage(f"({names.get(call_id, 'a tool')} gave: {content})")
            case _:
                yield message


@attrs.define
class LineTranslator:
    """The chunks of a plain completion of one line, as chat events."""

    _usage: TokenUsage | None = None
    _stop: StopReason | None = None
    _begun: bool = False

    @property
    def complete(self) -> bool:
        return self._stop is not None and self._usage is not None

    def feed(self, item: dict[str, Any]) -> Iterable[ChatEvent]:
        if usage := item.get("usage"):
            self._usage = TokenUsage(usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))
        for choice in item.get("choices") or ():
            if choice.get("finish_reason"):
                self._stop = StopReason.LENGTH if choice["finish_reason"] == "length" else StopReason.END_TURN
            if text := self._line(choice.get("text") or ""):
                yield TextDelta(text)

    def _line(self, text: str) -> str:
        text = text.replace("\n", "")
        text = text if self._begun else text.lstrip()
        self._begun = self._begun or bool(text)
        return text

    def finish(self) -> Iterable[ChatEvent]:
        if self._stop is not None:
            yield Done(self._usage, self._stop)

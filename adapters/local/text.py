"""What the local model reads and writes: history without tools, the pieces of a one-line answer, and how they are told.

No I/O of its own: an answer is read from a stream that somebody else opened and closes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import attrs
import trio

from ...messages.chat import ChatEvent, Done, StopReason, TextDelta, TokenUsage
from ...messages.history import Message, ToolCall, ToolResult, UserMessage


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


@attrs.define(eq=False)
class Told:
    """Events that are all known, as a stream of them."""

    _events: deque[ChatEvent]

    def __aiter__(self) -> Told:
        return self

    async def __anext__(self) -> ChatEvent:
        await trio.lowlevel.checkpoint()
        if not self._events:
            raise StopAsyncIteration
        return self._events.popleft()


@attrs.define(eq=False)
class Counted:
    """A stream whose end also counts what was ``spent`` before it."""

    _stream: AsyncIterator[ChatEvent]
    _spent: TokenUsage

    def __aiter__(self) -> Counted:
        return self

    async def __anext__(self) -> ChatEvent:
        event = await anext(self._stream)
        if isinstance(event, Done) and event.usage is not None:
            return attrs.evolve(event, usage=event.usage + self._spent)
        return event

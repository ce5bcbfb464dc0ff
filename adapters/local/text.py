"""What the local model reads and writes: history without tools, the pieces of a one-line answer, and how they are told.

No I/O of its own: an answer is read from a stream that somebody else opened and closes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator

import attrs
import trio

from ...messages.chat import ChatEvent, Done, StopReason, TextDelta, TokenUsage
from ...messages.history import Message, ToolCall, ToolResult, UserMessage
from ..openai.usage import usage_of
from ..wire.body import Item
from ..wire.stop import stop_reason


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

    last_event: str = "a finish_reason"
    usage: TokenUsage | None = None
    _stop: StopReason | None = None
    _begun: bool = False

    @property
    def declared(self) -> bool:
        """Whether a finish reason came."""
        return self._stop is not None

    @property
    def complete(self) -> bool:
        """Whether usage came too: nothing follows it."""
        return self._stop is not None and self.usage is not None

    def feed(self, item: Item) -> Iterable[ChatEvent]:
        """One chunk."""
        self.usage = usage_of(item.value.get("usage")) or self.usage
        for choice in item.value.get("choices") or ():
            if choice.get("finish_reason"):
                self._stop = stop_reason(choice["finish_reason"], called=False)
            if text := self._line(choice.get("text") or ""):
                yield TextDelta(text)

    def _line(self, text: str) -> str:
        text = text.replace("\n", "")
        text = text if self._begun else text.lstrip()
        self._begun = self._begun or bool(text)
        return text

    def finish(self, *, marked: bool) -> Iterable[ChatEvent]:
        """`Done`, unless the stream was cut."""
        if self._stop is not None or marked:
            yield Done(self.usage, self._stop or StopReason.END_TURN)


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

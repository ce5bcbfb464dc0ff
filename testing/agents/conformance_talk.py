"""A provider under test: how the suite asks it, hears it out, and what it holds each answer to (semantics 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, overload

import attrs
import trio

from ...core.ports.protocols import ChatStream, ModelInfo, ModelProvider
from ...messages.chat import (
    ChatEvent,
    ChatRequest,
    Done,
    Progress,
    ReasoningDelta,
    SystemPrompt,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
)
from ...messages.history import Message, ToolCall
from .conformance_support import expect


class View(Sequence[Message]):
    """Messages as the runtime hands them over: a sequence that is neither list nor tuple."""

    def __init__(self, *messages: Message) -> None:
        self._messages = messages

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)


@attrs.frozen
class Talk:
    """The provider under test, and what to hold it to."""

    provider: ModelProvider
    model: ModelInfo
    must_call: bool
    leave_within: float
    patience: float

    def request(self, *messages: Message, tools: tuple[ToolSpec, ...] = ()) -> ChatRequest:
        """A request with ``messages``."""
        system = SystemPrompt("You answer in a few words.", "It is noon.")
        return ChatRequest(self.model.id, system, View(*messages), tools, temperature=0, max_tokens=48)

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[ChatStream]:
        """The answer as it comes, whichever form of stream the provider uses."""
        opened: Any = self.provider.chat(request)
        if hasattr(opened, "__aenter__"):
            async with opened as events:
                yield events
        elif hasattr(opened, "aclose"):
            async with aclosing(opened):
                yield opened
        else:
            yield opened

    async def hear(self, request: ChatRequest, what: str) -> list[ChatEvent]:
        """The whole answer, its form checked."""
        events: list[ChatEvent] = []
        with trio.move_on_after(self.patience) as scope, named(what):
            async with self.stream(request) as stream:
                async for event in stream:
                    events.append(event)  # noqa: PERF401  # what came before the time was up counts
        expect(False, scope.cancelled_caught, f"{what}: the stream ends within {self.patience} s")
        _check_form(events, request, what)
        return events


@contextmanager
def named(what: str) -> Iterator[None]:
    """Whatever a provider raises where it should not is a broken promise too."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{what}: the provider raised {error!r}") from error


def _check_form(events: Sequence[ChatEvent], request: ChatRequest, what: str) -> None:
    for event in events:
        match event:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                expect(True, isinstance(text, str) and text != "", f"{what}: a delta holds text")
                text.encode()
            case ToolCallDelta(call_id=call_id, text=text):
                expect(True, isinstance(call_id, str) and isinstance(text, str), f"{what}: a piece of a call has an id")
            case Progress():
                pass
            case ToolCall():
                _check_call(event, request, what)
            case Done(usage=usage):
                expect(True, usage is None or min(attrs.astuple(usage)) >= 0, f"{what}: token counts are not negative")
            case _:
                expect("a chat event of an answer", event, f"{what}: the stream holds chat events and no error")
    kinds = [type(event) for event in events]
    expect(1, kinds.count(Done), f"{what}: a stream holds exactly one Done")
    expect(Done, kinds[-1], f"{what}: Done comes last")


def _check_call(call: ToolCall, request: ChatRequest, what: str) -> None:
    names = [tool.name for tool in request.tools]
    expect(True, bool(names), f"{what}: no call without tools")
    expect(True, isinstance(call.call_id, str), f"{what}: a call id is text")
    expect(True, isinstance(call.arguments, Mapping), f"{what}: arguments are an object")
    expect(True, call.raw_arguments is None or not call.arguments, f"{what}: raw arguments come instead of parsed ones")

"""A response that an SDK opened, as chat events, left cleanly whatever happens (semantics 4, 14).

Knows neither SDK: it is given a way to open the stream, a translator without I/O, and a way to explain exceptions. The
SDK makes the request; the body is read here. Under Trio the SDKs' own iterators leave half-read generators to the
garbage collector, even at the ordinary end of a stream.

    stream = SdkStream(open=lambda: client.create(stream=True, ...), translator=ChatTranslator(), explain=explain)
    async with stream:
        async for event in stream: ...
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol

import attrs
import trio

from ...messages.chat import ChatEvent
from ...messages.errors import AgentError
from .errors import stream_failure
from .sse import SseDecoder, SseEvent

# How long to wait, after the last event, for the end of the body that lets the connection be used again.
_TAIL_SECONDS = 0.04


class ByteResponse(Protocol):
    """The part of an HTTP response that is used."""

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The body, decompressed."""


class OpenedStream(Protocol):
    """The part of an SDK's stream that is used."""

    @property
    def response(self) -> ByteResponse:
        """The HTTP response, its body unread."""

    async def close(self) -> None:
        """Give the connection back."""


class Translator(Protocol):
    """Turns the objects in a stream into chat events. Pure: no I/O, no clock."""

    @property
    def complete(self) -> bool:
        """Whether the model's last word is known."""

    def feed(self, item: dict[str, Any]) -> Iterable[ChatEvent]:
        """What one object of the stream means."""

    def finish(self) -> Iterable[ChatEvent]:
        """What is left to say when the stream has ended. Nothing, not even `Done`, if it ended too early."""


@attrs.define(eq=False)
class SdkStream:
    """One response. An async context manager and its own async iterator.

    Cancellation: entering and each step are checkpoints unless an event is ready. `trio.Cancelled` out of either means
    that the connection is closed by the time the block is left, without waiting for the server.

    Raises:
        AgentError: never an exception of the SDK.
    """

    _open: Callable[[], Awaitable[OpenedStream]]
    _translator: Translator
    _explain: Callable[[Exception, bool], AgentError]
    _decoder: SseDecoder = attrs.field(init=False, factory=SseDecoder)
    _ready: deque[ChatEvent] = attrs.field(init=False, factory=deque)
    _over: bool = attrs.field(init=False, default=False)
    _opened: OpenedStream = attrs.field(init=False)
    _chunks: AsyncIterator[bytes] = attrs.field(init=False)

    async def __aenter__(self) -> SdkStream:
        with self._mapped(streaming=False):
            self._opened = await self._open()
        self._chunks = self._opened.response.aiter_bytes()
        return self

    def __aiter__(self) -> SdkStream:
        return self

    async def __anext__(self) -> ChatEvent:
        while not self._ready:
            if self._over:
                raise StopAsyncIteration
            with self._mapped(streaming=True):
                await self._read()
        return self._ready.popleft()

    async def _read(self) -> None:
        try:
            chunk = await anext(self._chunks)
        except StopAsyncIteration:
            self._take(self._decoder.flush())
            self._end()
        else:
            self._take(self._decoder.feed(chunk))

    def _take(self, events: Iterable[SseEvent]) -> None:
        for event in events:
            if event.data.strip() == "[DONE]":
                self._end()
            elif not self._over:
                self._translate(json.loads(event.data))

    def _translate(self, item: Any) -> None:
        if isinstance(item, dict):
            if (error := stream_failure(item)) is not None:
                raise error
            self._ready.extend(self._translator.feed(item))

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._ready.extend(self._translator.finish())

    @contextmanager
    def _mapped(self, *, streaming: bool) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._over = streaming
            raise self._explain(error, streaming) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close, at once unless the last word was heard and the end of the body is only a moment away.

        A body is read through a pile of async generators. Dropped half-way they would be left to the garbage collector;
        read on in a scope without time, each of them unwinds in order and closes what it holds. The shield keeps an
        outer cancellation from replacing the exception that is on its way out.
        """
        whole = error is None and self._translator.complete
        with trio.move_on_after(_TAIL_SECONDS if whole else 0, shield=True):
            await self._read_to_the_end()
        with trio.move_on_after(0, shield=True):
            await self._opened.close()

    async def _read_to_the_end(self) -> None:
        # Whatever the server still says, nobody listens any more; StopAsyncIteration is the expected end.
        with suppress(Exception):
            while True:
                await anext(self._chunks)

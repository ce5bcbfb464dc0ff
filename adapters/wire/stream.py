"""A response that an SDK opened, as chat events, left cleanly whatever happens (semantics 4, 14).

Knows neither SDK: it is given a way to open the response, a translator without I/O, and a way to explain exceptions.
The SDK makes the request; the body is read here. Under Trio the SDKs' own iterators leave half-read generators to the
garbage collector, even at the ordinary end of a stream, and they take every body for the one that was asked for.

    stream = SdkStream(open_response, ChatTranslator(origin), explain)
    async with stream:
        async for event in stream: ...
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Protocol

import attrs
import trio

from ...messages.chat import ChatEvent, Progress, TokenUsage
from ...messages.errors import AgentError, StreamInterrupted
from .body import END, Body, Found, Item, not_an_answer
from .errors import stream_failure

# How long to wait, after the last event, for the end of the body that lets the connection be used again.
_TAIL_SECONDS = 0.04

END_SECONDS = 1.0
"""How long a declared end waits for usage and for the mark of the end, both of which many servers leave out."""


class HttpResponse(Protocol):
    """The part of an HTTP response that is used."""

    @property
    def headers(self) -> Mapping[str, str]:
        """By names in small letters."""

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The body, decompressed."""


class OpenedResponse(Protocol):
    """The part of an SDK's unread response that is used."""

    @property
    def http_response(self) -> HttpResponse:
        """The HTTP response, its body unread."""

    async def close(self) -> None:
        """Give the connection back."""


class Translator(Protocol):
    """Turns the objects in a body into chat events. Pure: no I/O, no clock."""

    @property
    def declared(self) -> bool:
        """Whether the server said how the response ends: only usage and a mark of the end may follow."""

    @property
    def complete(self) -> bool:
        """Whether nothing at all can follow."""

    @property
    def usage(self) -> TokenUsage | None:
        """What the server reported so far."""

    @property
    def last_event(self) -> str:
        """What should have come when a stream ends too early, for the words of that error."""

    def feed(self, item: Item) -> Iterable[ChatEvent]:
        """What one object of the body means."""

    def finish(self, *, marked: bool) -> Iterable[ChatEvent]:
        """What is left to say when the body has ended; without a `Done` (or an error) it ended too early.

        Args:
            marked: whether the server marked the end, by ``[DONE]`` or by sending all in one.
        """


@attrs.define(eq=False)
class SdkStream:
    """One response. An async context manager and its own async iterator.

    Cancellation: entering and each step are checkpoints unless an event is ready. `trio.Cancelled` out of either means
    that the connection is closed by the time the block is left, without waiting for the server.

    Raises:
        AgentError: never an exception of the SDK.
    """

    _open: Callable[[], Awaitable[OpenedResponse]]
    _translator: Translator
    _explain: Callable[[Exception, bool], AgentError]
    _body: Body = attrs.field(init=False, factory=Body)
    _ready: deque[ChatEvent] = attrs.field(init=False, factory=deque)
    _over: bool = attrs.field(init=False, default=False)
    _error: AgentError | None = attrs.field(init=False, default=None)
    _until: float = attrs.field(init=False, default=math.inf)
    _opened: OpenedResponse = attrs.field(init=False)
    _chunks: AsyncIterator[bytes] = attrs.field(init=False)

    async def __aenter__(self) -> SdkStream:
        with self._mapped(streaming=False):
            self._opened = await self._open()
        if self._error is not None:
            raise self._error
        response = self._opened.http_response
        self._body = Body(response.headers.get("content-type", ""))
        self._chunks = response.aiter_bytes()
        return self

    def __aiter__(self) -> SdkStream:
        return self

    async def __anext__(self) -> ChatEvent:
        while not self._ready:
            if self._error is not None:
                raise self._error
            if self._over:
                raise StopAsyncIteration
            with self._mapped(streaming=True):
                await self._read()
        return self._ready.popleft()

    async def _read(self) -> None:
        try:
            # A scope costs several microseconds and most chunks come before the end is declared.
            chunk = await anext(self._chunks) if self._until == math.inf else await self._read_until()
        except StopAsyncIteration:
            self._take(self._body.finish())
            self._end(marked=False)
        except Exception:
            # A connection that breaks behind a declared end takes nothing from the answer.
            if not self._translator.declared:
                raise
            self._end(marked=False)
        else:
            self._take(self._body.feed(chunk))

    async def _read_until(self) -> bytes:
        with trio.move_on_at(self._until):
            return await anext(self._chunks)
        # Comments forever, or silence: what was declared holds. The cut-off reader has closed what it held.
        self._end(marked=False)
        return b""

    def _take(self, found: Iterable[Found]) -> None:
        for item in found:
            if self._over:
                return
            if item is END:
                self._end(marked=True)
            elif isinstance(item, Item):
                self._translate(item)

    def _translate(self, item: Item) -> None:
        if isinstance(item.value, dict):
            if (error := stream_failure(item.value, item.name)) is not None:
                raise error
            before = len(self._ready)
            self._ready.extend(self._translator.feed(item))
            # Counted from the declared end, and again from whatever still comes of the answer after it.
            if self._translator.declared and (self._until == math.inf or len(self._ready) > before):
                if self._until == math.inf and len(self._ready) == before:
                    # The wait that begins is not silence of the model, which the runtime counts from what it was told.
                    self._ready.append(Progress())
                self._until = trio.current_time() + END_SECONDS
        elif (
            isinstance(item.value, list) and item.whole and (error := stream_failure({"error": item.value})) is not None
        ):
            raise error
        elif item.whole:
            raise not_an_answer(item.value)
        if item.whole or self._translator.complete:
            self._end(marked=True)

    def _end(self, *, marked: bool) -> None:
        if self._over:
            return
        self._over = True
        last = list(self._translator.finish(marked=marked))
        self._ready.extend(last)
        if last:
            return
        nothing = "sent nothing at all" if self._body.empty else "ended its answer"
        raise StreamInterrupted(
            f"the server {nothing} before the last event ({self._translator.last_event}); the answer was cut"
        )

    @contextmanager
    def _mapped(self, *, streaming: bool) -> Iterator[None]:
        """Keep what is raised, explained, until the events before it were told."""
        try:
            yield
        except Exception as error:
            self._over = streaming
            self._error = self._explain(error, streaming)
            if self._error is not error:
                self._error.__cause__ = error
            if self._translator.usage is not None:
                self._ready.append(Progress(self._translator.usage))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close, at once unless the last word was heard and the end of the body is only a moment away.

        A body is read through a pile of async generators. Dropped half-way they would be left to the garbage collector;
        read on in a scope without time, each of them unwinds in order and closes what it holds. The shield keeps an
        outer cancellation from replacing the exception that is on its way out.
        """
        whole = error is None and (self._translator.declared or self._translator.complete)
        with trio.move_on_after(_TAIL_SECONDS if whole else 0, shield=True):
            await self._read_to_the_end()
        with trio.move_on_after(0, shield=True):
            await self._opened.close()

    async def _read_to_the_end(self) -> None:
        # Whatever the server still says, nobody listens any more; StopAsyncIteration is the expected end.
        with suppress(Exception):
            while True:
                await anext(self._chunks)

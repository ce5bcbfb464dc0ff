"""Server-sent events from bytes, wherever the bytes are cut. Pure, knows neither HTTP nor JSON.

decoder = SseDecoder()
for chunk in chunks:
    for event in decoder.feed(chunk): ...
for event in decoder.flush(): ...       # a last event whose line end or blank line never came

By the rules of the WHATWG (HTML, section 9.2.6), with two differences: a stream that ends within an event still gives
that event, and a field ``error`` (llama.cpp) is the data of an event of that name. The decoders that could be had
(httpx-sse, the SDKs' own) take lines that somebody else has put together at a quadratic cost, and none is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

MAX_EVENT_BYTES = 32 * 2**20
"""The longest event that is accepted, in bytes: some ten times the largest image that an API sends."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_FIELDS = {b"data": "data", b"error": "data", b"event": "event"}


class EventTooLong(Exception):
    """A line, or all lines of one event, passed `MAX_EVENT_BYTES`."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the server sent an event of more than {limit // 2**20} MiB")


@attrs.frozen
class SseEvent:
    """One event: its name, empty if it has none, and its data, lines joined."""

    name: str
    data: str


@attrs.define
class SseDecoder:
    """Bytes in, events out. Comments, ids and retry hints are ignored, and so is an event without data.

    Linear: a piece is looked at once when it arrives, and once more when the line that it belongs to is joined.
    """

    limit: int = MAX_EVENT_BYTES
    _pieces: list[bytes] = attrs.field(factory=list)
    _held: int = 0
    _name: str = ""
    _data: list[str] = attrs.field(factory=list)
    _begun: bool = False
    _after_cr: bool = False

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """Take more bytes; the events that they complete.

        Raises:
            EventTooLong: what is held for one event is more than ``limit``.
        """
        # A CR ends its line at once; the LF that may follow it in the next chunk belongs to the same line end.
        if self._after_cr and chunk:
            chunk, self._after_cr = chunk.removeprefix(b"\n"), False
        start = 0
        for end in _LINE_END.finditer(chunk):
            self._hold(chunk[start : end.start()])
            start = end.end()
            yield from self._line()
        self._after_cr = chunk.endswith(b"\r") or (self._after_cr and not chunk)
        self._hold(chunk[start:])

    def flush(self) -> Iterator[SseEvent]:
        """The event whose lines have come so far, if there is one; call it when the body has ended."""
        if self._pieces:
            yield from self._line()
        yield from self._dispatch()

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._pieces.append(piece)
            self._held += len(piece)
            if self._held > self.limit:
                raise EventTooLong(self.limit)

    def _line(self) -> Iterator[SseEvent]:
        line, self._pieces = b"".join(self._pieces), []
        if not self._begun:
            self._begun, line = True, line.removeprefix(_BOM)
        if line:
            self._field(line)
        else:
            yield from self._dispatch()

    def _dispatch(self) -> Iterator[SseEvent]:
        data, name = "\n".join(self._data), self._name
        self._name, self._data, self._held = "", [], 0
        if data:
            yield SseEvent(name, data)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        match _FIELDS.get(name):
            case "data":
                self._data.append(value.removeprefix(b" ").decode(errors="replace"))
                self._name = self._name or ("error" if name == b"error" else "")
            case "event":
                self._name = value.removeprefix(b" ").decode(errors="replace")
            case _:
                # Comments for hours are not a part of an event; only what is kept counts.
                self._held -= len(line)

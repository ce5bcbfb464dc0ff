"""The body of an answer as the objects in it: an event stream, one JSON value, or something to be quoted (semantics 4).

    body = Body("text/event-stream; charset=utf-8")
    for chunk in chunks:
        for item in body.feed(chunk): ...       # Item or the mark END
    for item in body.finish(): ...

What a server was asked for and what it sends are two things: the first bytes decide, and where they say nothing the
content type does. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, TypeAlias

import attrs

from .sse import MAX_EVENT_BYTES, EventTooLong, SseDecoder, SseEvent

_QUOTED = 200
_WHITE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
# How a line of an event stream begins. A page, a sentence or a JSON text begins otherwise.
_EVENT_LINE = re.compile(rb"(data|event|error|id|retry)[ \t]*(:|[\r\n])|:")
_LONGEST_START = 16
_MARK_UP = re.compile(r"<(script|style)\b.*?(</\1>|$)|<[^<>]*>", re.DOTALL | re.IGNORECASE)


class Mark(Enum):
    """What is not an object, but says something all the same."""

    END = "[DONE]"


END: Final = Mark.END


class UnreadableBody(Exception):
    """The answer is neither an event stream nor JSON, or an event in it is not JSON: the text quotes it."""


@attrs.frozen
class Item:
    """One JSON value. ``whole``: it was all of the body, not a piece of a stream. ``name`` is that of its event."""

    value: Any
    whole: bool = False
    name: str = ""


Found: TypeAlias = Item | Mark


class _Form(Enum):
    UNKNOWN = "unknown"
    EVENTS = "events"
    JSON = "json"
    OTHER = "other"


@attrs.define
class Body:
    """Bytes in, objects out. ``content_type`` is what the server calls it."""

    content_type: str = ""
    _form: _Form = _Form.UNKNOWN
    _decoder: SseDecoder = attrs.field(factory=SseDecoder)
    _pieces: list[bytes] = attrs.field(factory=list)
    _held: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing at all came."""
        return not self._held

    def feed(self, chunk: bytes) -> Iterator[Found]:
        """Take more bytes; what they complete.

        Raises:
            UnreadableBody: an event holds no JSON.
            EventTooLong: one event, or a body that is not a stream, is longer than `MAX_EVENT_BYTES`.
        """
        if self._form is _Form.EVENTS:
            yield from self._objects(self._decoder.feed(chunk))
            return
        self._hold(chunk)
        if self._form is _Form.UNKNOWN and self._begins_a_stream(ended=False):
            yield from self._objects(self._decoder.feed(self._taken()))

    def finish(self) -> Iterator[Found]:
        """What is left when the body has ended.

        Raises:
            UnreadableBody: the body is neither an event stream nor JSON.
        """
        if self._form is _Form.UNKNOWN and self._begins_a_stream(ended=True):
            yield from self._objects(self._decoder.feed(self._taken()))
        if self._form is _Form.EVENTS:
            yield from self._objects(self._decoder.flush())
        else:
            yield from self._whole(self._taken())

    def _taken(self) -> bytes:
        held, self._pieces = b"".join(self._pieces), []
        return held

    def _begins_a_stream(self, *, ended: bool) -> bool:
        """Judge by what is held. Some servers keep a connection open by blank lines before the answer: none is kept."""
        start = self._taken().removeprefix(_BOM).lstrip(_WHITE)
        self._pieces, self._held = [start] if start else [], len(start)
        self._form = self._judge(start, ended=ended)
        return self._form is _Form.EVENTS

    def _hold(self, chunk: bytes) -> None:
        # Of what can only be quoted a beginning is enough.
        if self._form is not _Form.OTHER or self._held < 8 * _QUOTED:
            self._pieces.append(chunk)
            self._held += len(chunk)
        if self._held > MAX_EVENT_BYTES:
            raise EventTooLong(MAX_EVENT_BYTES)

    def _judge(self, text: bytes, *, ended: bool) -> _Form:
        declared = "event-stream" in self.content_type
        if text.startswith((b"{", b"[")):
            return _Form.JSON
        if _EVENT_LINE.match(text) or (declared and (b"data:" in text or (ended and not text))):
            return _Form.EVENTS
        # A stream may begin with a line that means nothing, and any body with half of one.
        enough = 1024 if declared else _LONGEST_START
        return _Form.OTHER if ended or len(text) >= enough or text.startswith(b"<") else _Form.UNKNOWN

    def _objects(self, events: Iterator[SseEvent]) -> Iterator[Found]:
        for event in events:
            data = event.data.strip()
            if data == "[DONE]":
                yield END
            elif data:
                yield Item(_decoded(data, event.name), name=event.name)

    def _whole(self, body: bytes) -> Iterator[Found]:
        text = body.decode(errors="replace").strip()
        try:
            yield Item(json.loads(text), whole=True)
        except (ValueError, RecursionError):
            kind = self.content_type.partition(";")[0].strip() or "a body without a content type"
            said = f": {_quoted(text)}" if text else ", and nothing in it"
            raise UnreadableBody(
                f"the server answered with {kind} that is not an event stream and no JSON{said}"
            ) from None


def not_an_answer(value: Any) -> UnreadableBody:
    """The error for JSON in which there is no answer."""
    said = json.dumps(value, ensure_ascii=False)[:_QUOTED]
    return UnreadableBody(f"the server answered with JSON that is not an answer of this API: {said}")


def _decoded(data: str, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        if name == "error":  # said in words
            return {"error": {"message": data[:1000]}}
        raise UnreadableBody(f"the server's stream holds what is not JSON: {_quoted(data)}") from None


def _quoted(text: str) -> str:
    """The first characters, without the mark-up and the white space of a page."""
    plain = " ".join(
        re.sub(r"<(script|style)\b.*?(</\1>|$)|<[^<>]*>", " ", text[:8_000], flags=re.DOTALL | re.I).split()
    )
    return repr((plain or text)[:_QUOTED])

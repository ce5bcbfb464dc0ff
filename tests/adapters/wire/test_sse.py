"""Server-sent events: what comes out whatever the packets look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from re import Match, Pattern
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.adapters.wire import sse
from youyou.adapters.wire.body import Body, Item
from youyou.adapters.wire.sse import EventTooLong, SseDecoder, SseEvent

BODY = (
    b"\xef\xbb\xbfevent: greeting\r\ndata: hello\r\n\r\n"
    b": a comment\n\n" + "data: 你好\rdata: 🚀\r\r".encode() + b"id: 7\nretry: 10\ndata:tight\n\n\n"
    b"event: silent\n\ndata: last\n"
)
EVENTS = [SseEvent("greeting", "hello"), SseEvent("", "你好\n🚀"), SseEvent("", "tight"), SseEvent("", "last")]


def decode(*chunks: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [*events, *decoder.flush()]


def test_one_piece() -> None:
    """Every kind of line end, comments, names and several data lines are understood."""
    assert decode(BODY) == EVENTS


@given(st.sets(st.integers(0, len(BODY))))
def test_any_pieces(cuts: set[int]) -> None:
    """Wherever the bytes are cut, the same events come out."""
    edges = [0, *sorted(cuts), len(BODY)]
    chunks = [BODY[a:b] for a, b in pairwise(edges)]

    assert decode(*chunks) == EVENTS


@pytest.mark.parametrize("body", [b"", b"\n\n", b": only\n\n", b"event: x\n\n", b"data"])
def test_no_event(body: bytes) -> None:
    """Without data there is no event, and half a line is none."""
    assert decode(body) == []


@attrs.frozen
class Searches:
    """Stands for the pattern of a line's end, and counts what is searched."""

    pattern: Pattern[bytes]
    looks: Counter[str]

    def finditer(self, chunk: bytes) -> Iterator[Match[bytes]]:
        """The line ends of a chunk."""
        self.looks["searched"] += len(chunk)
        return self.pattern.finditer(chunk)


class CountingDecoder(SseDecoder):
    """Counts how many bytes each of its steps looks at."""

    looks: Counter[str]

    def _hold(self, piece: bytes) -> None:
        self.looks["kept"] += len(piece)
        super()._hold(piece)

    def _line(self) -> Iterator[SseEvent]:
        self.looks["joined"] += sum(map(len, self._pieces))
        return super()._line()

    def _field(self, line: bytes) -> None:
        self.looks["read"] += len(line)
        super()._field(line)

    def _dispatch(self) -> Iterator[SseEvent]:
        self.looks["told"] += sum(map(len, self._data))
        return super()._dispatch()


MIB = 2**20
LONG = {
    "one line": b"data: " + b"x" * 8 * MIB + b"\n\n",
    "eight thousand lines": (b"data: " + b"x" * 1024 + b"\n") * 8192 + b"\n",
}


@pytest.mark.parametrize("name", LONG)
def test_each_byte_of_a_long_event_is_looked_at_once_by_each_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """8 MiB in pieces of 4 KiB: five steps, none of which goes over a byte twice."""
    body, looks = LONG[name], Counter[str]()
    monkeypatch.setattr(sse, "_LINE_END", Searches(sse._LINE_END, looks))
    decoder = CountingDecoder()
    decoder.looks = looks

    (event,) = [event for at in range(0, len(body), 4096) for event in decoder.feed(body[at : at + 4096])]

    assert len(event.data) >= 8 * MIB
    assert {"searched", "kept", "joined", "read", "told"} == set(looks)
    assert looks["searched"] == len(body)
    assert max(looks.values()) <= len(body)


def test_blank_lines_before_an_answer_are_not_kept() -> None:
    """A server that keeps the connection open by them, for hours, costs nothing; the answer behind them is read."""
    body, most = Body("application/json"), 0
    for _ in range(10_000):
        assert [] == list(body.feed(b"\n\n"))
        most = max(most, sum(map(len, body._pieces)))

    assert (0, []) == (most, list(body.feed(b'{"a": 1}')))
    assert [Item({"a": 1}, whole=True)] == list(body.finish())


@pytest.mark.parametrize("begins", [b"data: ", b'{"a": "', b"data: x\ndata: "])
def test_what_never_ends_is_refused(begins: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line, an event or a body that passes the bound; what was held is named."""
    monkeypatch.setattr("youyou.adapters.wire.body.MAX_EVENT_BYTES", MIB)
    body: Any = Body("text/event-stream")
    body._decoder.limit = MIB

    with pytest.raises(EventTooLong, match="more than 1 MiB"):
        for chunk in [begins, *[b"x" * 4096] * 300]:
            list(body.feed(chunk))

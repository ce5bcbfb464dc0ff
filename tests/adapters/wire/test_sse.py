"""Server-sent events: what comes out whatever the packets look like."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.adapters.wire.sse import SseDecoder, SseEvent

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

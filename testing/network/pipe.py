"""One direction of a TCP connection: bytes in order, each arriving when the link lets it.

    pipe.write(b"abc")              # into the window of the sender, as far as there is room
    pipe.finish()                   # no more will come
    await pipe.wait_readable()
    data = pipe.read(2)             # b"ab"; b"" at the end

Knows nothing of sockets. A segment that was sent while the link was down arrives once the link is up again, as a
retransmission would.
"""

from __future__ import annotations

import errno
from collections import deque
from typing import Protocol

import attrs
import trio

WINDOW = 65_536
"""Bytes that may be under way or unread before a sender has to wait."""


class Link(Protocol):
    """What a pipe asks of the path that its bytes take."""

    @property
    def up(self) -> bool:
        """Whether anything gets through."""

    def arrival(self, size: int) -> float:
        """When ``size`` bytes that are sent now arrive, in `trio.current_time` seconds."""


@attrs.define(eq=False)
class _Segment:
    data: bytes
    arrives: float


@attrs.define(eq=False)
class Pipe:
    """Bytes from one socket to its peer."""

    link: Link
    reset: bool = False
    """Whether the connection was torn down: what is under way is lost."""
    finished: bool = False
    """Whether the sender has said that no more will come."""
    abandoned: bool = False
    """Whether the receiver is closed: what is sent now is answered with a reset."""
    _segments: deque[_Segment] = attrs.field(factory=deque)
    _size: int = 0
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)

    @property
    def capacity(self) -> int:
        """Bytes that a sender may write now."""
        return WINDOW - self._size

    def write(self, data: bytes) -> int:
        """Send as much of ``data`` as there is room for. Sync. How many bytes were taken.

        Raises:
            OSError: the peer has reset the connection, or is closed.
        """
        if self.abandoned and not self.reset:
            self.tear_down()
        if self.reset:
            raise BrokenPipeError(errno.EPIPE, "the peer has closed the connection")
        taken = data[: self.capacity]
        if taken:
            self._segments.append(_Segment(bytes(taken), self.link.arrival(len(taken))))
            self._size += len(taken)
            self.wake()
        return len(taken)

    def finish(self) -> None:
        """No more will come. Sync, idempotent. The end takes its time, as bytes do."""
        if not self.finished:
            self.finished = True
            self._segments.append(_Segment(b"", self.link.arrival(0)))
            self.wake()

    def tear_down(self) -> None:
        """Reset: each reader or writer gets an error. Sync, idempotent."""
        self.reset = True
        self._segments.clear()
        self._size = 0
        self.wake()

    def wake(self) -> None:
        """Let everybody who waits look again."""
        self._changed.unpark_all()

    @property
    def readable(self) -> bool:
        """Whether a read returns at once: with bytes, with the end, or with an error."""
        return self.reset or (
            bool(self._segments) and self.link.up and self._segments[0].arrives <= trio.current_time()
        )

    @property
    def unread(self) -> int:
        """Bytes that have arrived and nobody has read."""
        now = trio.current_time()
        return sum(len(segment.data) for segment in self._segments if segment.arrives <= now)

    def read(self, limit: int) -> bytes:
        """At most ``limit`` bytes that have arrived; empty at the end. Sync: call it when `readable`.

        Raises:
            ConnectionResetError: the connection was torn down.
        """
        if self.reset:
            raise ConnectionResetError(errno.ECONNRESET, "the connection was reset by the peer")
        parts: list[bytes] = []
        while limit and self._segments and self._segments[0].arrives <= trio.current_time():
            segment = self._segments[0]
            if not segment.data:
                break  # the end stays where it is: every later read sees it too
            parts.append(segment.data[:limit])
            segment.data = segment.data[limit:]
            limit -= len(parts[-1])
            if not segment.data:
                self._segments.popleft()
        self._size -= sum(map(len, parts))
        if parts:
            self.wake()
        return b"".join(parts)

    async def wait_readable(self) -> None:
        """Wait until a read returns at once. A checkpoint only if it has to wait."""
        while not self.readable:
            arrives = self._segments[0].arrives if self._segments and self.link.up else float("inf")
            with trio.CancelScope(deadline=arrives):
                await self._changed.park()

    async def wait_writable(self) -> None:
        """Wait until a write takes a byte or raises. A checkpoint only if it has to wait."""
        while not (self.capacity > 0 or self.reset or self.abandoned):
            await self._changed.park()

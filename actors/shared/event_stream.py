"""The events of one turn on their way to a reader (semantics 6, "Delivery").

A gate and a deque: numbering and putting are one sync step, and the terminal event always has room. Bounded while the
turn runs; from the moment of a stop nothing here blocks. Deltas cost no task switch while there is room.

    if not stream.offer(payload):
        await stream.emit(payload)
"""

from __future__ import annotations

import math
from collections import deque

import attrs
import trio

from ...messages.events import AgentEvent, AgentEventPayload, ToolProgress
from ...messages.hook_payloads import utc_now


@attrs.define(eq=False)
class Numbering:
    """The running number of a session's events."""

    last: int = 0


@attrs.define(eq=False)
class _QueuedProgress:
    """An unread progress, which a newer one of its call replaces in its place."""

    event: AgentEvent
    call_id: str


# A gate and a deque, not a memory channel: numbering and putting must be one sync step, or two tasks' events would be
# numbered in one order and delivered in another; and the terminal event must have room when the channel is full.
@attrs.define(eq=False)
class EventStream:
    """One writer side (the turn and its tools), one reader side (a `RunningTurn`)."""

    session_id: str
    turn_id: str
    numbering: Numbering
    size: int
    room: float = attrs.field(init=False)
    """How many more events keep within the bound; infinite as soon as nothing blocks any more."""
    detached: bool = False
    closed: bool = False
    dropped: int = 0
    peak: int = 0
    _items: deque[AgentEvent | _QueuedProgress] = attrs.Factory(deque)
    _progress: dict[str, _QueuedProgress] = attrs.Factory(dict)
    _writable: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    _readable: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    # How many are parked: asked for at each event, and waking nobody costs ten times as much as looking here.
    _writers: int = 0
    _readers: int = 0

    def __attrs_post_init__(self) -> None:
        self.room = self.size

    def __len__(self) -> int:
        return len(self._items)

    def offer(self, payload: AgentEventPayload) -> bool:
        """Put if there is room. Sync. False: call ``emit``."""
        if self.room <= 0:
            return False
        self.put(payload)
        return True

    async def emit(self, payload: AgentEventPayload) -> None:
        """Wait for room, then put. A checkpoint. If `trio.Cancelled` comes out, the event was not emitted."""
        await self.wait_for_capacity()
        self.put(payload)

    async def wait_for_capacity(self) -> None:
        """Wait until a put keeps within the bound. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while self.room <= 0:
            self._writers += 1
            try:
                await self._writable.park()
            finally:
                self._writers -= 1

    def put(self, payload: AgentEventPayload) -> None:
        """Number and put. Sync, never blocks: for what must be said on the way out."""
        if self.closed:
            return
        # Numbered even if nobody reads: a gap tells a later reader that something was there.
        self.numbering.last += 1
        if self.detached:
            self.dropped += 1
            return
        event = AgentEvent(self.session_id, self.turn_id, utc_now(), self.numbering.last, payload)
        items = self._items
        if type(payload) is ToolProgress:
            self._progress[payload.call_id] = slot = _QueuedProgress(event, payload.call_id)
            items.append(slot)
        else:
            items.append(event)
        self.room -= 1
        if len(items) > self.peak:
            self.peak = len(items)
        if self._readers:
            self._readable.unpark()

    def progress(self, call_id: str, value: object) -> None:
        """The newest progress of a call takes the place of an unread older one. Sync."""
        payload = ToolProgress(call_id, value)
        if (slot := self._progress.get(call_id)) is not None:
            slot.event = attrs.evolve(slot.event, payload=payload)
        else:
            self.put(payload)

    def terminal(self, payload: AgentEventPayload) -> None:
        """The last event. Sync; a second call does nothing."""
        if not self.closed:
            self.open_gate()
            self.put(payload)
            self.closed = True
            # All of them: besides the reader, a task may wait for the end.
            self._readable.unpark_all()

    def open_gate(self) -> None:
        """From now on nothing blocks."""
        self.room = math.inf
        self._writable.unpark_all()

    def reader_gone(self) -> None:
        """Nobody will read: let the turn run on, and count what is not read."""
        self.detached = True
        self.room = math.inf
        self.dropped += len(self._items)
        self._items.clear()
        self._progress.clear()
        self._writable.unpark_all()
        self._readable.unpark_all()

    def take(self) -> AgentEvent | None:
        """The next event, if there is one. Sync."""
        if not self._items:
            return None
        item = self._items.popleft()
        self.room += 1
        if self._writers:
            self._writable.unpark()
        if type(item) is AgentEvent:
            return item
        assert isinstance(item, _QueuedProgress)
        if self._progress.get(item.call_id) is item:
            del self._progress[item.call_id]
        return item.event

    async def wait_readable(self) -> bool:
        """Wait until there is something to take. A checkpoint. False: there will never be anything again."""
        await trio.lowlevel.checkpoint()
        while not self._items:
            if self.closed or self.detached:
                return False
            self._readers += 1
            try:
                await self._readable.park()
            finally:
                self._readers -= 1
        return True

"""The events of one turn on their way to a reader (semantics 6, "Delivery").

A gate and a deque: numbering and putting are one sync step, and the terminal event always has room. Bounded while the
turn runs; from the moment of a stop nothing here blocks. Deltas cost no task switch while there is room.

    if not stream.offer(payload):
        await stream.emit(payload)
"""

from __future__ import annotations

from collections import deque

import attrs
import trio

from ...messages.events import AgentEvent, AgentEventPayload, ToolProgress
from ...messages.hook_payloads import utc_now


@attrs.define(eq=False)
class Numbering:
    """The running number of a session's events."""

    last: int = 0

    def next(self) -> int:
        """The next number."""
        self.last += 1
        return self.last


@attrs.define(eq=False)
class _QueuedEvent:
    event: AgentEvent


# A gate and a deque, not a memory channel: numbering and putting must be one sync step, or two tasks' events would be
# numbered in one order and delivered in another; and the terminal event must have room when the channel is full.
@attrs.define(eq=False)
class EventStream:
    """One writer side (the turn and its tools), one reader side (a `RunningTurn`)."""

    session_id: str
    turn_id: str
    numbering: Numbering
    size: int
    unbounded: bool = False
    detached: bool = False
    closed: bool = False
    dropped: int = 0
    peak: int = 0
    _items: deque[_QueuedEvent] = attrs.Factory(deque)
    _progress: dict[str, _QueuedEvent] = attrs.Factory(dict)
    _since_checkpoint: int = 0
    _writable: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    _readable: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def _has_capacity(self) -> bool:
        return self.unbounded or self.detached or len(self._items) < self.size

    def offer(self, payload: AgentEventPayload) -> bool:
        """Put if there is room. Sync. False: call ``emit``, it is also time for a checkpoint."""
        # Without the second condition a turn whose reader keeps up would never switch tasks: a checkpoint once per
        # buffer costs nothing measurable, one for each delta more than the delta.
        if not self._has_capacity or self._since_checkpoint >= self.size:
            return False
        self._since_checkpoint += 1
        self.put(payload)
        return True

    async def emit(self, payload: AgentEventPayload) -> None:
        """Wait for room, then put. A checkpoint. If `trio.Cancelled` comes out, the event was not emitted."""
        self._since_checkpoint = self.size
        await self.wait_for_capacity()
        self.put(payload)

    async def wait_for_capacity(self) -> None:
        """Wait until a put keeps within the bound. A checkpoint when there is no room, and once per buffer."""
        if self._has_capacity and self._since_checkpoint < self.size:
            self._since_checkpoint += 1
            return
        await trio.lowlevel.checkpoint()
        while not self._has_capacity:
            await self._writable.park()
        self._since_checkpoint = 0

    def put(self, payload: AgentEventPayload) -> None:
        """Number and put. Sync, never blocks: for what must be said on the way out."""
        if self.closed:
            return
        # Numbered even if nobody reads: a gap tells a later reader that something was there.
        event = AgentEvent(self.session_id, self.turn_id, utc_now(), self.numbering.next(), payload)
        if self.detached:
            self.dropped += 1
            return
        slot = _QueuedEvent(event)
        self._items.append(slot)
        self.peak = max(self.peak, len(self._items))
        if isinstance(payload, ToolProgress):
            self._progress[payload.call_id] = slot
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
        self.unbounded = True
        self._writable.unpark_all()

    def reader_gone(self) -> None:
        """Nobody will read: let the turn run on, and count what is not read."""
        self.detached = True
        self.dropped += len(self._items)
        self._items.clear()
        self._progress.clear()
        self._writable.unpark_all()
        self._readable.unpark_all()

    def take(self) -> AgentEvent | None:
        """The next event, if there is one. Sync."""
        if not self._items:
            return None
        slot = self._items.popleft()
        payload = slot.event.payload
        if isinstance(payload, ToolProgress) and self._progress.get(payload.call_id) is slot:
            del self._progress[payload.call_id]
        self._writable.unpark()
        return slot.event

    async def wait_readable(self) -> bool:
        """Wait until there is something to take. A checkpoint. False: there will never be anything again."""
        await trio.lowlevel.checkpoint()
        while not self._items:
            if self.closed or self.detached:
                return False
            await self._readable.park()
        return True

"""The events of one turn on their way to a reader (semantics 6, "Delivery").

A gate and a deque: numbering and putting are one sync step, and the terminal event always has room. Bounded while the
turn runs; from the moment of a stop nothing here blocks. Deltas cost no task switch while there is room.

    if not stream.offer(payload):
        await stream.emit(payload)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

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
class _Slot:
    event: AgentEvent


@attrs.define(eq=False)
class EventStream:
    """One writer side (the turn and its tools), one reader side (a `RunningTurn`)."""

    session_id: str
    turn_id: str
    numbering: Numbering
    size: int
    on_over: Callable[[], None]
    free: bool = False
    deaf: bool = False
    over: bool = False
    dropped: int = 0
    peak: int = 0
    _items: deque[_Slot] = attrs.Factory(deque)
    _progress: dict[str, _Slot] = attrs.Factory(dict)
    _since_checkpoint: int = 0
    _room: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    _news: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def _has_room(self) -> bool:
        return self.free or self.deaf or len(self._items) < self.size

    def offer(self, payload: AgentEventPayload) -> bool:
        """Put if there is room. Sync. False: call ``emit``, it is also time for a checkpoint."""
        if not self._has_room or self._since_checkpoint >= self.size:
            return False
        self._since_checkpoint += 1
        self.put(payload)
        return True

    async def emit(self, payload: AgentEventPayload) -> None:
        """Wait for room, then put. A checkpoint. If `trio.Cancelled` comes out, the event was not emitted."""
        self._since_checkpoint = self.size
        await self.wait_for_room()
        self.put(payload)

    async def wait_for_room(self) -> None:
        """Wait until a put keeps within the bound. A checkpoint when there is no room, and once per buffer."""
        if self._has_room and self._since_checkpoint < self.size:
            self._since_checkpoint += 1
            return
        await trio.lowlevel.checkpoint()
        while not self._has_room:
            await self._room.park()
        self._since_checkpoint = 0

    def put(self, payload: AgentEventPayload) -> None:
        """Number and put. Sync, never blocks: for what must be said on the way out."""
        if self.over:
            return
        event = AgentEvent(self.session_id, self.turn_id, utc_now(), self.numbering.next(), payload)
        if self.deaf:
            self.dropped += 1
            return
        slot = _Slot(event)
        self._items.append(slot)
        self.peak = max(self.peak, len(self._items))
        if isinstance(payload, ToolProgress):
            self._progress[payload.call_id] = slot
        self._news.unpark()

    def progress(self, call_id: str, value: object) -> None:
        """The newest progress of a call takes the place of an unread older one. Sync."""
        payload = ToolProgress(call_id, value)
        if (slot := self._progress.get(call_id)) is not None:
            slot.event = attrs.evolve(slot.event, payload=payload)
        else:
            self.put(payload)

    def terminal(self, payload: AgentEventPayload) -> None:
        """The last event. Sync; a second call does nothing."""
        if not self.over:
            self.open_gate()
            self.put(payload)
            self.over = True
            self.on_over()
            self._news.unpark_all()

    def open_gate(self) -> None:
        """From now on nothing blocks."""
        self.free = True
        self._room.unpark_all()

    def reader_gone(self) -> None:
        """Nobody will read: let the turn run on, and count what is not read."""
        self.deaf = True
        self.dropped += len(self._items)
        self._items.clear()
        self._progress.clear()
        self._room.unpark_all()
        self._news.unpark_all()

    def take(self) -> AgentEvent | None:
        """The next event, if there is one. Sync."""
        if not self._items:
            return None
        slot = self._items.popleft()
        payload = slot.event.payload
        if isinstance(payload, ToolProgress) and self._progress.get(payload.call_id) is slot:
            del self._progress[payload.call_id]
        self._room.unpark()
        return slot.event

    async def news(self) -> bool:
        """Wait until there is something to take. A checkpoint. False: there will never be anything again."""
        await trio.lowlevel.checkpoint()
        while not self._items:
            if self.over or self.deaf:
                return False
            await self._news.park()
        return True

"""A turn's events, kept until the reader has them: it asks by number, and may ask again (semantics 17).

kept = TurnEvents(turn, seconds=300)
nursery.start_soon(kept.read)
events, over = await kept.after(sequence, wait=5)
"""

from __future__ import annotations

from collections import deque
from itertools import islice

import trio

from ...actors.handles.running_turn import RunningTurn
from ...messages.errors import InvalidInput
from ...messages.events import AgentEvent

KEPT = 2048
"""Events that are kept before the turn is held up, like any turn whose reader is slow."""
_BATCH = 512


class TurnEvents:
    """Reads a turn on behalf of a reader in another process.

    Args:
        turn: the turn.
        seconds: for how long its events are kept when nobody asks for them; then the turn is detached.
    """

    def __init__(self, turn: RunningTurn, seconds: float) -> None:
        self.turn = turn
        self._seconds = seconds
        self._events: deque[AgentEvent] = deque()
        self._over = False
        self._released = 0
        self._lost_after: int | None = None
        self._changed: trio.Event | None = None
        self._asked_at = trio.current_time()

    @property
    def forgotten(self) -> bool:
        """Whether the reader has everything, or has not asked for so long that nothing is kept for it."""
        if not self._over:
            return False
        return not self._events or trio.current_time() - self._asked_at > self._seconds

    def _change(self) -> None:
        # Once per event: an event of Trio is made only for one who waits.
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def _wait(self) -> None:
        if self._changed is None:
            self._changed = trio.Event()
        await self._changed.wait()

    async def read(self) -> None:
        """The task: take the turn's events as they come, until it is over."""
        try:
            async for event in self.turn:
                self._events.append(event)
                self._change()
                while len(self._events) >= KEPT:
                    if not await self._room():
                        self.turn.detach()
                        self._lost_after = event.sequence
                        break
        finally:
            self._over = True
            self._change()

    async def _room(self) -> bool:
        """Wait for the reader to take something. False: it has not asked for too long."""
        while len(self._events) >= KEPT:
            with trio.CancelScope(deadline=self._asked_at + self._seconds) as waiting:
                await self._wait()
            if waiting.cancelled_caught and trio.current_time() >= self._asked_at + self._seconds:
                return False
        return True

    async def after(self, sequence: int, wait: float) -> tuple[list[AgentEvent], bool]:
        """Events with higher numbers, and whether they are the last; waits for one, so many seconds at most.

        Lets go of those up to ``sequence``. Cancelled, or asked again with the same number, nothing is lost.

        Raises:
            InvalidInput: events after that number were let go, because another reader had them, or nobody asked.
        """
        self._asked_at = trio.current_time()
        if sequence < self._released:
            raise InvalidInput(
                f"events after {sequence} were let go when a reader asked for those after {self._released}; "
                "read the session's history"
            )
        while self._events and self._events[0].sequence <= sequence:
            self._released = self._events.popleft().sequence
        self._change()
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(wait):
            while not self._events and not self._over:
                await self._wait()
        self._asked_at = trio.current_time()
        if not self._events and self._lost_after is not None:
            raise InvalidInput(
                f"events after {self._lost_after} were not kept: nobody asked for {self._seconds:g} seconds; the turn "
                "went on, read the session's history"
            )
        batch = list(islice(self._events, _BATCH))
        return batch, self._over and self._lost_after is None and len(batch) == len(self._events)

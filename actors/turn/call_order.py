"""The order in which calls that may run are handed over (semantics 8): the model's, whichever task comes first.

    line.join(index)                # its hooks are done
    await line.front(index)         # those ahead of it that have joined, too, were handed over
    ...
    line.leave(index)

A call whose hook is still asking has not joined and holds up nobody.
"""

from __future__ import annotations

import attrs
import trio


@attrs.define(eq=False)
class Line:
    """Places in a line, the lowest number in front."""

    _places: dict[int, trio.Event] = attrs.Factory(dict)

    def join(self, place: int) -> None:
        """Stand in line. Sync."""
        self._places[place] = trio.Event()
        self._call_front()

    async def front(self, place: int) -> None:
        """Wait until nobody is ahead. A checkpoint; who was in front once need not give way to late-comers."""
        await self._places[place].wait()

    def leave(self, place: int) -> None:
        """Stand in line no longer. Sync, idempotent."""
        self._places.pop(place, None)
        self._call_front()

    def _call_front(self) -> None:
        if self._places:
            self._places[min(self._places)].set()

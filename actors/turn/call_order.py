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
class CallOrder:
    """Admits calls in ascending order of index: a FIFO whose order is known beforehand."""

    _waiting: dict[int, trio.Event] = attrs.Factory(dict)

    def enter(self, index: int) -> None:
        """Wait for admission. Sync."""
        self._waiting[index] = trio.Event()
        self._wake_first()

    async def wait_first(self, index: int) -> None:
        """Wait until no lower index waits. A checkpoint; a call that was first once need not give way to later ones."""
        await self._waiting[index].wait()

    def leave(self, index: int) -> None:
        """Wait no longer. Sync, idempotent."""
        self._waiting.pop(index, None)
        self._wake_first()

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[min(self._waiting)].set()

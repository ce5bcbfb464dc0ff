"""The renewals of all agents of a process, gathered into one statement (semantics 7, "Claims").

Each agent renews its own claim; a host has thousands of them, and a statement for each would be what breaks first. So
the first that comes waits a little for others, and then asks for all.

    lost = await renewals.renew("owner", {"session": 7}, ttl_ms=15_000)
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import trio

from ...messages.errors import StorageError
from .connection import Database

_LONGEST_WAIT = 0.25
"""Seconds for which the first waits for others, at most a sixtieth of the time that it asks for."""


@attrs.define(eq=False)
class _Renewal:
    """What one agent asks for, and what it is told."""

    owner: str
    epochs: Mapping[str, int]
    ttl_ms: int
    lost: tuple[str, ...] | None = None
    error: StorageError | None = None


@attrs.define(eq=False)
class Renewals:
    """The first task asks for all that wait; the others wait for it, or take over when it is cancelled."""

    _database: Database
    _waiting: list[_Renewal] = attrs.Factory(list)
    _asking: bool = False
    _news: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    statements: int = 0
    """How many were executed."""

    async def renew(self, owner: str, epochs: Mapping[str, int], ttl_ms: int) -> tuple[str, ...]:
        """Prolong the claims of ``owner``; the ids of those that it no longer has.

        Raises:
            StorageError: the database failed.
        """
        mine = _Renewal(owner, epochs, ttl_ms)
        self._waiting.append(mine)
        try:
            while mine.lost is None and mine.error is None:
                if self._asking:
                    await self._news.park()
                else:
                    await self._ask(mine)
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)
        if mine.error is not None:
            raise mine.error
        return mine.lost or ()

    async def _ask(self, mine: _Renewal) -> None:
        self._asking = True
        batch: list[_Renewal] = []
        try:
            await trio.sleep(min(_LONGEST_WAIT, mine.ttl_ms / 60_000))
            batch, self._waiting = self._waiting, []
            kept = await self._prolong(batch)
            for each in batch:
                each.lost = tuple(s for s, epoch in each.epochs.items() if (s, each.owner, epoch) not in kept)
        except StorageError as error:
            for each in batch:
                each.error = error
        finally:
            # Cancelled: one of the others asks anew, for itself and the rest.
            self._waiting += [each for each in batch if each.lost is None and each.error is None and each is not mine]
            self._asking = False
            self._news.unpark_all()

    async def _prolong(self, batch: list[_Renewal]) -> set[tuple[str, str, int]]:
        rows = [(s, each.owner, epoch, each.ttl_ms) for each in batch for s, epoch in each.epochs.items()]
        self.statements += 1
        kept = await self._database.run(
            "UPDATE {s}.claims AS c SET expires_at = clock_timestamp() + h.ttl * interval '1 millisecond' "
            "FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[]) AS h (session_id, owner, epoch, ttl) "
            "WHERE c.session_id = h.session_id AND c.epoch = h.epoch AND c.owner = h.owner "
            "RETURNING c.session_id, c.owner, c.epoch",
            [[row[column] for row in rows] for column in range(4)],
        )
        return {(session_id, owner, epoch) for session_id, owner, epoch in kept}

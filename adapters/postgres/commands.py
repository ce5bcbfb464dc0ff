"""Commands for sessions that live elsewhere: rows, and a NOTIFY that wakes every listener (semantics 16)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs
import trio

from ...core.ports.commands import HostCommand
from ...messages.codec import from_json, to_json
from .connection import Database, connect
from .errors import errors_of, require_psycopg

POLL_SECONDS = 5.0
"""Between two looks where there is no connection that listens: a third of the usual life of a claim."""


async def send(database: Database, session_id: str, command: HostCommand) -> None:
    """Leave a command and wake the listeners, in one transaction. What is older than an hour is cleared away."""
    await database.run(
        "WITH old AS (DELETE FROM {s}.commands WHERE sent_at < now() - interval '1 hour'), "
        "new AS (INSERT INTO {s}.commands (session_id, body) VALUES (%s, %s)) SELECT pg_notify('{s}_commands', '')",
        (session_id, to_json(command)),
    )


async def take(database: Database, session_ids: Collection[str]) -> tuple[tuple[str, HostCommand], ...]:
    """The commands for these sessions, oldest first; they are gone then."""
    rows = await database.run(
        "DELETE FROM {s}.commands WHERE session_id = ANY(%s::text[]) RETURNING number, session_id, body",
        ([*session_ids],),
    )
    return tuple((session_id, from_json(HostCommand, body)) for _, session_id, body in sorted(rows))  # type: ignore[arg-type]  # a union


@attrs.define(eq=False)
class Listener:
    """A direct connection of its own that listens. Without a ``dsn`` it only waits for some time."""

    _database: Database
    dsn: str | None
    _db: Any = None

    async def wait(self) -> None:
        """Return when there may be new commands: at once after connecting, since some may have come before."""
        if self.dsn is None:
            await trio.sleep(POLL_SECONDS)
            return
        with errors_of(self._database.error, self._database.where):
            if self._db is None or self._db.closed:
                self._db = await connect(self.dsn)
                self._db.cuts_when_cancelled = True
                await self._db.execute(f"LISTEN {self._database.schema}_commands")
                return
            from psycopg.generators import notifies

            require_psycopg()
            await self._db.wait(notifies(self._db.pgconn))

    def close(self) -> None:
        """Hang up. Sync, idempotent."""
        if self._db is not None:
            self._db.cut()
            self._db = None

"""Sessions and memories in PostgreSQL (semantics 7, 12, 14). Extra ``postgres``; built on psycopg, natively on Trio.

    from youyou.adapters.postgres import PostgresMemoryStorage, PostgresSessionStorage

    builder = builder.register_session_storage(PostgresSessionStorage("postgresql://app@db/app"))
    builder = builder.register_memory_storage(PostgresMemoryStorage("postgresql://app@db/app"))

Any number of processes may share a database. The agent enters and leaves a registered storage; outside of one, use
``async with storage:``. Entering creates the schema, or brings it up to date.

Durability. A call that returned is committed, and as durable as the server's ``synchronous_commit`` makes it. A call
whose connection was lost is committed or not; each may be repeated. A server that is a failover to an asynchronous
replica may take back the newest commits, claims among them.

Poolers. Every call is one statement, without prepared ones: pgbouncer in transaction mode works.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Self

import trio

from ...core.ports.commands import HostCommand
from ...core.ports.protocols import SessionClaim
from ...messages.errors import AgentError, MemoryStorageError, StorageError
from ...messages.records import Memory, SessionEvent, SessionPage, SessionSummary
from . import claims, commands, memories, sessions
from .commands import Listener
from .connection import Database
from .renewals import Renewals
from .schema import prepare


class _Storage:
    """What both have in common: a database, and when its connections are kept."""

    _error: type[AgentError]

    def __init__(self, dsn: str, *, schema: str = "youyou", connections: int = 4) -> None:
        self._database = Database(dsn, self._error, connections, schema)

    def _arguments(self) -> dict[str, Any]:
        database = self._database
        return {"dsn": database.dsn, "schema": database.schema, "connections": database.connections}

    def __reduce__(self) -> tuple[object, ...]:
        # Its arguments alone, the password among them: another process has connections of its own.
        return partial(type(self), **self._arguments()), ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database.where!r}, schema={self._database.schema!r})"

    async def __aenter__(self) -> Self:
        await self._database.enter()
        try:
            await prepare(self._database)
        except BaseException:
            with trio.CancelScope(shield=True):  # a checkpoint, and nothing else
                await self._database.leave()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        with trio.CancelScope(shield=True):  # a checkpoint, and nothing else
            await self._database.leave()


class PostgresSessionStorage(_Storage):
    """A `SessionStorage` and `SessionClaims` in PostgreSQL.

    Synopsis::

        async with PostgresSessionStorage("postgresql://app@db/app") as storage:
            page = await storage.list_sessions()

    Cancellation: every coroutine is a checkpoint. If `trio.Cancelled` comes out of a writing one, all of it is stored
    or nothing, none of it runs on, and calling it again is safe.

    Args:
        dsn: a connection string or URL of libpq. libpq's environment variables count, too.
        listen_dsn: a direct connection, past any pooler, on which commands for sessions are heard at once. None: they
            are looked for every five seconds.
        schema: the schema of the tables; several applications may share a database under different ones.
        connections: how many statements of this process run at the same time.

    Raises:
        InvalidConfig: an argument is wrong, or psycopg is not installed.
        StorageError: from any coroutine, when the database cannot be used; retryable where another try may succeed.
    """

    _error = StorageError

    def __init__(
        self, dsn: str, *, listen_dsn: str | None = None, schema: str = "youyou", connections: int = 4
    ) -> None:
        super().__init__(dsn, schema=schema, connections=connections)
        self._listener = Listener(self._database, listen_dsn)
        self._epochs: dict[str, int] = {}
        self._renewals = Renewals(self._database)

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "listen_dsn": self._listener.dsn}

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        """Append one batch, all or nothing. An event that is stored already is ignored (semantics 7).

        A session that was claimed here is appended to only while that claim is the newest, checked in the same
        transaction.

        Raises:
            SessionTaken: another event has one of the numbers, or another owner has claimed the session.
            SessionNotFound: the session is not stored, and the batch does not begin it.
            StorageError: the numbers leave a gap, or the database failed.
        """
        batch = tuple(events)
        if batch:
            await sessions.save(self._database, session_id, batch, self._epochs.get(session_id))
        else:
            await trio.lowlevel.checkpoint()

    async def load_session(self, session_id: str) -> Sequence[SessionEvent] | None:
        """All events in order, or None when there is no such session."""
        return await sessions.load(self._database, session_id)

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """A page of summaries, the most recently updated first. ``limit`` below 1 counts as 1.

        While sessions come and change, none is given twice and none that was left alone is left out.
        """
        return await sessions.page(self._database, cursor, limit)

    async def find_session(self, query: str) -> Sequence[SessionSummary]:
        """Sessions whose id starts with ``query`` or whose title contains it, whatever its case and accents."""
        return await sessions.find(self._database, query)

    async def delete_session(self, session_id: str) -> None:
        """Forget a session, its claim included. Unknown ids are not an error."""
        await sessions.delete(self._database, session_id)

    async def claim(
        self, session_id: str, *, owner: str, address: str, ttl_ms: int, steal: bool = False
    ) -> SessionClaim:
        """Give the session to ``owner``, by the server's clock.

        Raises:
            SessionTaken: another owner has it, its claim has not run out, and ``steal`` is False.
        """
        granted = await claims.claim(self._database, session_id, owner, address, ttl_ms, steal)
        self._epochs[session_id] = granted.epoch
        return granted

    async def renew(self, owner: str, epochs: Mapping[str, int], ttl_ms: int) -> Sequence[str]:
        """Prolong the claims of ``owner``; the ids of those that it no longer has.

        The renewals of all agents that share this storage are gathered, for up to a quarter of a second, into one
        statement.
        """
        return await self._renewals.renew(owner, epochs, ttl_ms)

    async def release(self, session_id: str, *, owner: str, epoch: int | None = None) -> None:
        """End a claim, or whatever claim ``owner`` has. One that is not held is not an error."""
        await claims.release(self._database, session_id, owner, epoch)
        if epoch is None or self._epochs.get(session_id) == epoch:
            self._epochs.pop(session_id, None)

    async def send_command(self, session_id: str, command: HostCommand) -> None:
        """Leave a command for the agent that has the session open, and wake it."""
        await commands.send(self._database, session_id, command)

    async def take_commands(self, session_ids: Collection[str]) -> Sequence[tuple[str, HostCommand]]:
        """The commands for these sessions, oldest first; nobody gets them again."""
        return await commands.take(self._database, session_ids)

    async def wait_for_commands(self) -> None:
        """Return when there may be new ones: when one was sent, or without ``listen_dsn`` every five seconds."""
        await self._listener.wait()

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        await super().__aexit__()  # noqa: ASYNC102  closes sockets, waits for nothing


class PostgresMemoryStorage(_Storage):
    """A `MemoryStorage` in PostgreSQL.

    Synopsis::

        async with PostgresMemoryStorage("postgresql://app@db/app") as storage:
            memories = await storage.search("default", "What fruit do I like?", 20)

    Cancellation, arguments: as of `PostgresSessionStorage`.

    Raises:
        InvalidConfig: an argument is wrong, or psycopg is not installed.
        MemoryStorageError: from any coroutine, when the database cannot be used.
    """

    _error = MemoryStorageError

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        """Those that share the most and rarest terms with ``query`` first, at most ``limit``.

        Terms are words and their beginnings; in Chinese, Japanese, Korean, Thai and their like, pairs of characters,
        or one where the query has just one. Case, width and accents do not matter. An empty query gives the newest.
        """
        if limit < 1:
            await trio.lowlevel.checkpoint()
            return ()
        return await memories.search(self._database, namespace, query, limit)

    async def save(self, memory: Memory) -> None:
        """Insert or update. Same content: only ``updated_at`` changes. ``created_at`` is kept."""
        await memories.save(self._database, memory)

    async def delete(self, namespace: str, id: str) -> None:
        """Forget a memory. Unknown ids are not an error."""
        await memories.delete(self._database, namespace, id)

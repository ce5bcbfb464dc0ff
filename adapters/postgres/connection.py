"""Connections to one server, natively on Trio: psycopg's generators, driven by a ``wait`` of our own.

psycopg's asynchronous connection does its I/O in generators that say what they wait for; only ``wait`` belongs to a
loop. Its lock is asyncio's, which breaks once two tasks meet at it: it is replaced by Trio's. Connecting, and asking to
cancel a statement, block and so go through a thread.

    database = Database("postgresql://...", StorageError)
    rows = await database.run("SELECT 1")
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs
import trio

from ...messages.errors import AgentError, InvalidConfig
from .errors import errors_of, require_psycopg

if TYPE_CHECKING:
    from psycopg import AsyncConnection

CANCEL_SECONDS = 2.0
"""How long a cancelled call waits until the server has let go of its statement; then the connection is cut."""
CONNECT_SECONDS = 10
_DEFAULTS = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    # A server that is gone without a word is noticed while we write, too.
    "tcp_user_timeout": 10_000,
    "application_name": "youyou",
}
Rows = Sequence[tuple[Any, ...]]


@cache
def trio_connection() -> type[AsyncConnection[Any]]:
    """The class of psycopg's connections on Trio; made on first use, because psycopg is an extra."""
    psycopg = require_psycopg()
    from psycopg import waiting

    class TrioConnection(psycopg.AsyncConnection):  # type: ignore[misc,name-defined]  # psycopg is loaded late
        """One connection. One task at a time gets through; the others wait at the lock."""

        def __init__(self, pgconn: Any) -> None:
            super().__init__(pgconn)
            self.lock = trio.Lock()
            self._autocommit = True
            self.cuts_when_cancelled = False
            # Prepared statements belong to a connection of the server, which a pooler changes under us.
            self.prepare_threshold = None

        async def wait(self, gen: Any, *_: Any, **__: Any) -> Any:
            """Drive one of psycopg's generators. A cancelled statement is cancelled on the server, too."""
            await trio.lowlevel.checkpoint_if_cancelled()
            socket = self.pgconn.socket
            try:
                wanted = next(gen)
                while True:
                    wanted = gen.send(await _until_ready(socket, wanted, waiting))
            except StopIteration as done:
                await trio.lowlevel.cancel_shielded_checkpoint()
                return done.value
            except trio.ClosedResourceError as error:
                raise psycopg.OperationalError("the connection was closed while it was in use") from error
            except trio.Cancelled:
                if self.cuts_when_cancelled:
                    self.cut()
                    raise
                with trio.move_on_after(CANCEL_SECONDS, shield=True) as patience:
                    await self._let_go(gen, socket)
                if patience.cancelled_caught:
                    self.cut()
                raise

        async def _let_go(self, gen: Any, socket: int) -> None:
            """Have the server end the statement, and take its answer."""
            try:
                await trio.to_thread.run_sync(self.pgconn.get_cancel().cancel, abandon_on_cancel=True)
                wanted = waiting.WAIT_R
                while True:
                    wanted = gen.send(await _until_ready(socket, wanted, waiting))
            except (StopIteration, psycopg.errors.QueryCanceled):
                return
            except (psycopg.Error, trio.ClosedResourceError):
                self.cut()

        def cut(self) -> None:
            """Close at once. Sync, idempotent; a task that waits for the socket is woken."""
            if self.pgconn.status != psycopg.pq.ConnStatus.BAD:
                trio.lowlevel.notify_closing(self.pgconn.socket)
                self.pgconn.finish()

    return TrioConnection


async def _until_ready(socket: int, wanted: Any, waiting: Any) -> Any:
    if wanted == waiting.WAIT_R:
        await trio.lowlevel.wait_readable(socket)
        return waiting.READY_R
    if wanted == waiting.WAIT_W:
        await trio.lowlevel.wait_writable(socket)
        return waiting.READY_W
    # Either: a server that has something to say may not read on before it is heard.
    ready: list[Any] = []

    async def watch(wait: Any, state: Any) -> None:
        await wait(socket)
        ready.append(state)
        nursery.cancel_scope.cancel("the socket is ready")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, trio.lowlevel.wait_readable, waiting.READY_R)
        nursery.start_soon(watch, trio.lowlevel.wait_writable, waiting.READY_W)
    return waiting.READY_RW if len(ready) == 2 else ready[0]


async def connect(dsn: str) -> Any:
    """A new connection, in autocommit mode.

    Cancellation: a checkpoint. If `trio.Cancelled` comes out, there is no connection; one that comes later is closed.
    """
    psycopg = require_psycopg()
    given = psycopg.conninfo.conninfo_to_dict(dsn)
    conninfo = psycopg.conninfo.make_conninfo(**{**_DEFAULTS, **given})
    given_up = threading.Event()

    def open_one() -> Any:
        pgconn = psycopg.pq.PGconn.connect(conninfo.encode())
        if pgconn.status != psycopg.pq.ConnStatus.OK:
            said = pgconn.get_error_message()
            pgconn.finish()
            raise psycopg.OperationalError(said)
        if given_up.is_set():
            pgconn.finish()
        return pgconn

    try:
        pgconn = await trio.to_thread.run_sync(open_one, abandon_on_cancel=True)
    except trio.Cancelled:
        given_up.set()
        raise
    pgconn.nonblocking = 1
    return trio_connection()(pgconn)


@attrs.define(eq=False)
class Database:
    """Up to ``connections`` connections to the server of ``dsn``, opened when needed; errors are raised as ``error``.

    Args:
        dsn: a connection string or URL of libpq.
        error: `StorageError` or `MemoryStorageError`.
        connections: how many statements run at the same time.
        schema: the schema that holds the tables: lower-case letters, digits and ``_``.
    """

    dsn: str = attrs.field(repr=False)
    error: type[AgentError]
    connections: int = 4
    schema: str = "youyou"
    _free: deque[Any] = attrs.field(factory=deque, init=False)
    _room: trio.Semaphore = attrs.field(init=False)
    _users: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        psycopg = require_psycopg()
        if isinstance(self.connections, bool) or not isinstance(self.connections, int) or self.connections < 1:
            raise InvalidConfig(f"connections is {self.connections!r}; pass a whole number from 1 on")
        name = self.schema
        if not (isinstance(name, str) and name.isascii() and name.isidentifier() and name == name.lower()) or (
            len(name) > 40 or name.startswith("pg_")
        ):
            raise InvalidConfig(f"schema is {name!r}; pass up to 40 lower-case letters, digits and underscores")
        try:
            psycopg.conninfo.conninfo_to_dict(self.dsn)
        except psycopg.Error as error:
            # The string itself may hold a password.
            raise InvalidConfig(
                "the dsn is not a connection string of libpq; pass postgresql://user@host/db"
            ) from error
        self._room = trio.Semaphore(self.connections)

    @property
    def where(self) -> str:
        """The place of the database, for messages; without its password."""
        given = require_psycopg().conninfo.conninfo_to_dict(self.dsn)
        return f"postgres {given.get('dbname', '')}@{given.get('host', 'localhost')}:{given.get('port', 5432)}"

    async def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        """Execute one statement, which is a transaction of its own, and fetch its rows. ``{s}`` is the schema.

        Every statement of this adapter may be repeated: one that failed on a connection that had grown old is.

        Cancellation: a checkpoint. If `trio.Cancelled` comes out, the statement was executed or not; none runs on.
        """
        with errors_of(self.error, self.where):
            async with self._room:
                while self._free:
                    rows = await self._try(self._free.pop(), statement, values, old=True)
                    if rows is not None:
                        return rows
                rows = await self._try(await connect(self.dsn), statement, values)
                assert rows is not None
                return rows

    async def _try(self, db: Any, statement: str, values: Sequence[object], old: bool = False) -> Rows | None:
        try:
            cursor = await db.execute(statement.replace("{s}", self.schema), values)
            rows: Rows = await cursor.fetchall() if cursor.description is not None else ()
        except require_psycopg().OperationalError:
            if old and db.closed:
                return None
            raise
        finally:
            self._give_back(db)
        return rows

    def _give_back(self, db: Any) -> None:
        if not db.closed and self._users:
            self._free.append(db)
        else:
            db.cut()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """A connection in a transaction, for what takes several statements."""
        with errors_of(self.error, self.where):
            async with self._room:
                db = await connect(self.dsn)
                try:
                    async with db.transaction():
                        yield db
                finally:
                    self._give_back(db)

    async def enter(self) -> None:
        """Count one more user; connections are kept while there are any."""
        self._users += 1
        await trio.lowlevel.checkpoint()

    async def leave(self) -> None:
        """Close all connections if this was the last user. Later use opens new ones, for each call its own."""
        self._users -= 1
        if not self._users:
            while self._free:
                self._free.pop().cut()
        await trio.lowlevel.checkpoint()

"""Sessions and memories in an SQLite file (semantics 7, 12, 14). Extra ``sqlite``; built on apsw.

    from youyou.adapters.sqlite import SQLiteMemoryStorage, SQLiteSessionStorage

    builder = builder.register_session_storage(SQLiteSessionStorage("chat.db"))
    builder = builder.register_memory_storage(SQLiteMemoryStorage("chat.db"))

Both may use one file, and several processes may: each waits up to ten seconds for the other's lock. The agent enters
and leaves a registered storage; outside of one, use ``async with storage:``, or just call it and ``await
storage.aclose()`` in the end.

Durability. A call that returned is in the file, in whole, whatever happens to the process. With ``synchronous="FULL"``
also whatever happens to the machine. With ``"NORMAL"``, the default, a power failure may take back the newest calls,
from the end and each in whole; the file stays sound.

Damage. A file that is not a database, another program's, newer, read-only or on a full disk gives an error that says
so. Pages and lines that were changed from outside are noticed when they are read: an error, never a wrong history.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Self, TypeVar

import trio

from ...core.ports.protocols import SessionClaim
from ...messages.errors import AgentError, MemoryStorageError, StorageError
from ...messages.records import Memory, SessionEvent, SessionPage, SessionSummary
from . import claims, memories, sessions
from .connection import CLOSE_SECONDS, DatabaseFile
from .group_commit import GroupCommit

__all__ = ["SQLiteMemoryStorage", "SQLiteSessionStorage"]

T = TypeVar("T")


class _Storage:
    """What both have in common: a file, and when it is open."""

    _error: type[AgentError]

    def __init__(self, path: str | os.PathLike[str], *, synchronous: str = "NORMAL") -> None:
        self._file = DatabaseFile(path, synchronous, self._error)

    def __reduce__(self) -> tuple[object, ...]:
        # Its arguments alone: another process opens the file anew.
        return partial(type(self), self._file.path, synchronous=self._file.synchronous), ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._file.path!r})"

    async def __aenter__(self) -> Self:
        await self._file.enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._file.leave()

    async def aclose(self) -> None:
        """Let go of the file, after the work under way. Takes 5 seconds at most. Later use opens it again."""
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._file.close()


class SQLiteSessionStorage(_Storage):
    """A `SessionStorage` in an SQLite file.

    Synopsis::

        async with SQLiteSessionStorage("chat.db") as storage:
            page = await storage.list_sessions()

    Cancellation: every coroutine is a checkpoint. If `trio.Cancelled` comes out of a writing one, all of it is in the
    file or nothing, and the next call sees which; calling it again is safe.

    Args:
        path: the file, created if missing; or ":memory:".
        synchronous: "NORMAL" or "FULL", see the durability of the module.

    Raises:
        InvalidConfig: ``synchronous`` is something else.
        ModuleNotFoundError: apsw is not installed.
        StorageError: from any coroutine, when the file cannot be used.
    """

    _error = StorageError

    def __init__(self, path: str | os.PathLike[str], *, synchronous: str = "NORMAL") -> None:
        super().__init__(path, synchronous=synchronous)
        self._saves = GroupCommit(self._file)

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        """Append one batch, all or nothing. An event that is stored already is ignored (semantics 7).

        Raises:
            SessionTaken: another event has one of the numbers: the session has another writer.
            SessionNotFound: the session is not stored, and the batch does not begin it.
        """
        batch = tuple(events)
        if batch:
            await self._saves.save(session_id, batch)
        else:
            await trio.lowlevel.checkpoint()

    async def load_session(self, session_id: str) -> Sequence[SessionEvent] | None:
        """All events in order, each checked, or None when there is no such session."""
        return await self._file.run(partial(sessions.load, session_id=session_id))

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """A page of summaries, the most recently updated first. ``limit`` below 1 counts as 1.

        While sessions come and change, none is given twice and none that was left alone is left out.
        """
        return await self._file.run(partial(sessions.page, cursor=cursor, limit=limit))

    async def find_session(self, query: str) -> Sequence[SessionSummary]:
        """Sessions whose id starts with ``query`` or whose title contains it, whatever its case and accents."""
        return await self._file.run(partial(sessions.find, query=query))

    async def delete_session(self, session_id: str) -> None:
        """Forget a session and its claim. Unknown ids are not an error."""
        await self._file.run(partial(sessions.delete, session_id=session_id))

    async def claim(
        self, session_id: str, *, owner: str, address: str, ttl_ms: int, steal: bool = False
    ) -> SessionClaim:
        """Give the session to ``owner``. An owner whose process has died stands in nobody's way.

        Raises:
            SessionTaken: another owner has it, lives, and ``steal`` is False.
        """
        return await self._file.run(
            partial(
                claims.claim,
                locks=self._file.locks,
                session_id=session_id,
                owner=owner,
                address=address,
                ttl_ms=ttl_ms,
                steal=steal,
            )
        )

    async def renew(self, owner: str, epochs: Mapping[str, int], ttl_ms: int) -> Sequence[str]:
        """Prolong the claims of ``owner``; the ids of those that it no longer has."""
        return await self._file.run(partial(claims.renew, owner=owner, epochs=epochs, ttl_ms=ttl_ms))

    async def release(self, session_id: str, *, owner: str, epoch: int | None = None) -> None:
        """End a claim, under this epoch or any. One that is not held any more is not an error."""
        work = partial(claims.release, locks=self._file.locks, session_id=session_id, owner=owner, epoch=epoch)
        await self._file.run(work)


class SQLiteMemoryStorage(_Storage):
    """A `MemoryStorage` in an SQLite file.

    Synopsis::

        async with SQLiteMemoryStorage("chat.db") as storage:
            memories = await storage.search("default", "What fruit do I like?", 20)

    Cancellation: as of `SQLiteSessionStorage`.

    Args:
        path: the file, created if missing; or ":memory:".
        synchronous: "NORMAL" or "FULL", see the durability of the module.

    Raises:
        InvalidConfig: ``synchronous`` is something else.
        ModuleNotFoundError: apsw is not installed.
        MemoryStorageError: from any coroutine, when the file cannot be used.
    """

    _error = MemoryStorageError

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        """Those that share the most and rarest terms with ``query`` first, at most ``limit``.

        Terms are words and their beginnings; in Chinese, Japanese, Korean, Thai and their like, pairs of characters,
        or one where the query has just one. Case, width and accents do not matter. An empty query gives the newest.
        """
        return await self._file.run(partial(memories.search, namespace=namespace, query=query, limit=limit))

    async def save(self, memory: Memory) -> None:
        """Insert or update. Same content: only ``updated_at`` changes. ``created_at`` is kept."""
        await self._file.run(partial(memories.save, memory=memory))

    async def delete(self, namespace: str, id: str) -> None:
        """Forget a memory. Unknown ids are not an error."""
        await self._file.run(partial(memories.delete, namespace=namespace, id=id))

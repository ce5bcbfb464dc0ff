"""The SQLite storages keep the contract of their ports, alone and in one file."""

import itertools

from youyou.adapters.sqlite import SQLiteMemoryStorage, SQLiteSessionStorage
from youyou.testing.agents.conformance_memory import check_memory_storage
from youyou.testing.agents.conformance_storage import check_session_storage


async def test_sessions_in_sqlite_conform(tmp_path):
    """The session storage passes the suite on real files."""
    numbers = itertools.count()
    await check_session_storage(lambda: SQLiteSessionStorage(tmp_path / f"{next(numbers)}.db"))


async def test_memories_in_sqlite_conform(tmp_path):
    """The memory storage passes the suite on real files."""
    numbers = itertools.count()
    await check_memory_storage(lambda: SQLiteMemoryStorage(tmp_path / f"{next(numbers)}.db"))


async def test_sessions_conform_without_being_entered(tmp_path):
    """A storage that nobody entered opens itself and keeps the contract; so does one in memory."""
    opened = []

    class Lazy:
        def __init__(self):
            self._storage = SQLiteSessionStorage(":memory:")
            opened.append(self._storage)

        def __getattr__(self, name):
            return getattr(self._storage, name)

    await check_session_storage(Lazy)
    for storage in opened:
        await storage.aclose()

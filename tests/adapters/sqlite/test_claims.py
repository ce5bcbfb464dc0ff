"""Opening a session of an SQLite file: one owner among processes, and none that died stands in the way (7)."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys

import pytest
import trio
import youyou as y
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.testing import InMemoryClaimedStorage, check_session_claims

CLAIM = """
import sys, trio
from youyou.adapters.sqlite import SQLiteSessionStorage
async def main(path):
    storage = SQLiteSessionStorage(path)
    await storage.claim("s", owner="other", address="there", ttl_ms=3_600_000)
    print("claimed", flush=True)
    await trio.sleep_forever()
trio.run(main, sys.argv[1])
"""


async def test_the_claims_of_sqlite_keep_the_contract(tmp_path):
    """Each check has a file of its own."""
    numbers = itertools.count()

    await check_session_claims(lambda: SQLiteSessionStorage(tmp_path / f"{next(numbers)}.db"))


async def test_the_claims_in_memory_keep_the_contract(autojump_clock):
    """By Trio's clock."""
    await check_session_claims(InMemoryClaimedStorage)


@pytest.fixture
async def other(tmp_path):
    """A process that has claimed session "s" for an hour."""
    process = subprocess.Popen([sys.executable, "-c", CLAIM, str(tmp_path / "a.db")], stdout=-1)  # noqa: ASYNC220
    try:
        with trio.fail_after(30):
            assert b"claimed\n" == await trio.to_thread.run_sync(process.stdout.readline)
        yield process
    finally:
        process.kill()
        process.communicate()


async def claim(storage, **more):
    return await storage.claim("s", owner="me", address="here", ttl_ms=1_000, **more)


async def test_an_owner_that_was_killed_stands_in_nobodys_way(other, tmp_path):
    """Its lock is gone with its process, long before its claim has run out."""
    async with SQLiteSessionStorage(tmp_path / "a.db") as storage:
        with pytest.raises(y.SessionTaken) as refused:
            await claim(storage)
        os.kill(other.pid, signal.SIGKILL)
        other.wait(10)

        assert 2 == (await claim(storage)).epoch
    assert ("other", "there", True) == (refused.value.owner, refused.value.address, refused.value.retryable)
    assert ["a.db"] == sorted(os.listdir(tmp_path))


async def test_an_owner_that_is_frozen_keeps_its_claim_until_it_runs_out(other, tmp_path):
    """A stopped process holds its lock; only its lease, or force, ends its claim."""
    os.kill(other.pid, signal.SIGSTOP)
    async with SQLiteSessionStorage(tmp_path / "a.db") as storage:
        with pytest.raises(y.SessionTaken):
            await claim(storage)

        assert 2 == (await claim(storage, steal=True)).epoch
        assert () == tuple(await storage.renew("me", {"s": 2}, 1_000))


async def test_the_owner_that_lost_learns_it_when_it_renews(tmp_path):
    """Two storages of one process are two owners as well."""
    async with SQLiteSessionStorage(tmp_path / "a.db") as one, SQLiteSessionStorage(tmp_path / "a.db") as two:
        first = await one.claim("s", owner="one", address="", ttl_ms=60_000)
        await claim(two, steal=True)

        assert ("s",) == tuple(await one.renew("one", {"s": first.epoch}, 60_000))

"""Renewals of many agents are one statement, whichever of them is cancelled meanwhile."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from youyou.adapters.postgres import PostgresSessionStorage
from youyou.messages.errors import StorageError

pytestmark = pytest.mark.long  # a server of PostgreSQL


@pytest.fixture
async def storage(postgres, new_schema):
    """A storage with ten claims of ten owners."""
    async with PostgresSessionStorage(postgres.dsn, schema=new_schema()) as storage:
        for n in range(10):
            await storage.claim(f"s{n}", owner=f"o{n}", address="", ttl_ms=60_000)
        yield storage


async def test_renewals_that_come_together_are_one_statement(storage):
    """Each is told of its own losses only."""
    epochs = dict(storage._epochs)
    await storage.claim("s3", owner="thief", address="", ttl_ms=60_000, steal=True)
    lost = {}

    async def renew(n):
        lost[n] = await storage.renew(f"o{n}", {f"s{n}": epochs[f"s{n}"]}, 60_000)

    async with trio.open_nursery() as nursery:
        for n in range(10):
            nursery.start_soon(renew, n)
    assert {n: ("s3",) if n == 3 else () for n in range(10)} == lost
    assert 1 == storage._renewals.statements


async def test_the_others_are_renewed_when_the_one_that_asks_is_cancelled(storage):
    """Before the statement and during it."""
    for steps in (1, 60):
        lost = {}

        async def renew(n, lost=lost):
            lost[n] = await storage.renew(f"o{n}", {f"s{n}": storage._epochs[f"s{n}"]}, 60_000)

        async with trio.open_nursery() as nursery:
            asking = trio.CancelScope()

            async def ask(scope=asking, renew=renew):
                with scope:
                    await renew(0)

            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            for n in range(1, 10):
                nursery.start_soon(renew, n)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            asking.cancel()
        assert dict.fromkeys(range(1, 10), ()) == {n: told for n, told in lost.items() if n}
        assert not storage._renewals._waiting


async def test_everybody_is_told_that_the_database_failed(storage):
    """And the next renewal works."""
    real, storage._database.schema = storage._database.schema, "nowhere"
    failed = []

    async def renew(n):
        with pytest.raises(StorageError):
            await storage.renew(f"o{n}", {f"s{n}": 1}, 60_000)
        failed.append(n)

    async with trio.open_nursery() as nursery:
        for n in range(3):
            nursery.start_soon(renew, n)
    storage._database.schema = real
    assert [0, 1, 2] == sorted(failed)
    assert () == await storage.renew("o1", {"s1": storage._epochs["s1"]}, 60_000)

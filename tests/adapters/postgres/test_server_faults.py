"""A server that is slow, gone, restarted or not ours: an error that says what to do, or the whole, and usable after."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import psycopg
import pytest
import trio
from youyou.adapters.postgres import PostgresMemoryStorage, PostgresSessionStorage
from youyou.adapters.postgres.connection import Database, connect
from youyou.messages.errors import InvalidConfig, MemoryStorageError, SessionTaken, StorageError
from youyou.messages.history import UserMessage
from youyou.messages.records import Memory, Metadata, SessionEvent
from youyou.testing.agents.conformance_support import moment

from .server import binary, free_port, running_server, unprivileged

pytestmark = pytest.mark.long  # a server of PostgreSQL


def event(seq, text="hi"):
    """A message."""
    return SessionEvent(seq, moment(seq), UserMessage(text))


@pytest.fixture
def database(postgres):
    """Connections without tables."""
    return Database(postgres.dsn, StorageError, connections=2)


async def test_tasks_share_connections(database):
    """More tasks than connections: each gets its own answer, and no more connections are opened."""
    await database.enter()
    answers = {}

    async def ask(number):
        answers[number] = await database.run("SELECT %s::int, pg_backend_pid(), pg_sleep(0.05)", (number,))

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(ask, number)
    await database.leave()
    assert list(range(6)) == sorted(rows[0][0] for rows in answers.values())
    assert 2 == len({rows[0][1] for rows in answers.values()})


async def test_one_connection_is_used_by_several_tasks(postgres):
    """psycopg's own lock would break here: those who come wait for the one before."""
    db = await connect(postgres.dsn)
    answers = []

    async def ask(number):
        cursor = await db.execute("SELECT %s::int, pg_sleep(0.02)", (number,))
        answers.append((await cursor.fetchone())[0])

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(ask, number)
    db.cut()
    assert [0, 1, 2] == sorted(answers)


async def test_a_cancelled_statement_ends_on_the_server(database):
    """The caller gets `Cancelled` soon, nothing runs on, and the connection is used again."""
    await database.enter()
    ((pid,),) = await database.run("SELECT pg_backend_pid()")
    began = time.monotonic()
    with trio.move_on_after(0.1) as scope:
        await database.run("SELECT pg_sleep(60)")
    assert scope.cancelled_caught and 10 > time.monotonic() - began
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(60)%%'"
    assert [(0, pid)] == [*await database.run(f"SELECT ({running}), pg_backend_pid()")]
    await database.leave()


async def test_a_cancelled_append_is_whole_or_nothing(postgres, new_schema):
    """It waited for a lock of somebody else: after the cancellation it is not stored, also not later."""
    schema = new_schema()
    async with PostgresSessionStorage(postgres.dsn, schema=schema) as storage:
        await storage.save_events("s", [event(1)])
        async with storage._database.transaction() as db:
            await db.execute(f"SELECT 1 FROM {schema}.sessions FOR UPDATE")
            with trio.move_on_after(0.1) as scope:
                await storage.save_events("s", [event(2)])
            assert scope.cancelled_caught
        assert 1 == len(await storage.load_session("s") or ())
        await storage.save_events("s", [event(2)])
        assert 2 == len(await storage.load_session("s") or ())


async def test_connections_that_were_cut_are_replaced(postgres, new_schema):
    """The server's administrator ends all connections: the next calls work."""
    async with PostgresSessionStorage(postgres.dsn, schema=new_schema()) as storage:
        await storage.save_events("s", [event(1)])
        other = await connect(postgres.dsn)
        await other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'youyou' "
            "AND pid <> pg_backend_pid()"
        )
        other.cut()
        await storage.save_events("s", [event(1), event(2)])
        assert 2 == len(await storage.load_session("s") or ())


@pytest.mark.long
async def test_an_append_without_a_server_fails_and_works_when_it_is_back():
    """The server is killed under load: each append is an error that may be retried or is stored whole."""
    pytest.importorskip("psycopg")
    if binary("postgres") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with running_server() as server:
        async with PostgresSessionStorage(server.dsn) as storage:
            acknowledged = {}
            errors = []
            under_way = trio.Event()

            async def write(session_id):
                for seq in range(1, 10_000):
                    try:
                        await storage.save_events(session_id, [event(seq)])
                    except StorageError as error:
                        errors.append(error)
                        return
                    acknowledged[session_id] = seq
                    if len(acknowledged) == 4:
                        under_way.set()

            async with trio.open_nursery() as nursery:
                for number in range(4):
                    nursery.start_soon(write, f"s{number}")
                await under_way.wait()
                await trio.to_thread.run_sync(server.stop, signal.SIGQUIT)
            assert 4 == len(errors) and all(error.retryable for error in errors)
            with pytest.raises(StorageError) as caught:
                await storage.load_session("s0")
            assert caught.value.retryable
            await trio.to_thread.run_sync(server.start)
            for session_id, seq in acknowledged.items():
                stored = len(await storage.load_session(session_id) or ())
                assert stored in (seq, seq + 1)
                await storage.save_events(session_id, [event(stored + 1)])


async def test_the_former_owner_cannot_append_after_a_takeover(postgres, new_schema):
    """Its epoch is checked in the append's own transaction, before the new owner has written a word."""
    schema = new_schema()
    async with (
        PostgresSessionStorage(postgres.dsn, schema=schema) as one,
        PostgresSessionStorage(postgres.dsn, schema=schema) as two,
    ):
        await one.claim("s", owner="a", address="", ttl_ms=60_000)
        await one.save_events("s", [event(1)])
        await two.claim("s", owner="b", address="", ttl_ms=60_000, steal=True)
        with pytest.raises(SessionTaken, match="claimed by another owner"):
            await one.save_events("s", [event(2)])
        await two.save_events("s", [event(2)])
        assert ["s"] == [*await one.renew("a", {"s": 1}, 1_000)]


async def test_processes_that_begin_at_once_create_one_schema(postgres, new_schema):
    """Sixteen storages enter a new schema at the same moment; none fails, and the version stands there once."""
    schema = new_schema()

    async def begin():
        async with PostgresSessionStorage(postgres.dsn, schema=schema) as storage:
            await storage.list_sessions()

    async with trio.open_nursery() as nursery:
        for _ in range(16):
            nursery.start_soon(begin)
    rows = await Database(postgres.dsn, StorageError, schema=schema).run("SELECT version FROM {s}.migrations")
    assert [(1,)] == [*rows]


async def test_a_newer_schema_is_refused(postgres, new_schema):
    """With both versions named; nothing is written."""
    schema = new_schema()
    async with PostgresSessionStorage(postgres.dsn, schema=schema) as storage:
        await storage._database.run("INSERT INTO {s}.migrations VALUES (99, now())")
    with pytest.raises(StorageError, match=r"newer youyou \(version 99.*update youyou"):
        async with PostgresSessionStorage(postgres.dsn, schema=schema):
            pass


@pytest.mark.parametrize("storage", [PostgresSessionStorage, PostgresMemoryStorage])
async def test_a_server_that_is_not_there_is_said(storage):
    """With where it was looked for and without a password."""
    pytest.importorskip("psycopg")
    error = StorageError if storage is PostgresSessionStorage else MemoryStorageError
    with pytest.raises(error) as caught:
        async with storage(f"postgresql://me:secret@127.0.0.1:{free_port()}/db"):
            pass
    assert caught.value.retryable
    assert "db@127.0.0.1" in caught.value.message and "secret" not in f"{caught.value}{storage('password=secret')!r}"


@pytest.mark.parametrize(
    "options",
    [
        {"dsn": "hello world"},
        {"dsn": "", "connections": 0},
        {"dsn": "", "schema": "a-b"},
        {"dsn": "", "schema": "pg_x"},
    ],
)
def test_odd_arguments_are_refused(options):
    """When the storage is made, with what to pass instead."""
    pytest.importorskip("psycopg")
    with pytest.raises(InvalidConfig, match="pass"):
        PostgresSessionStorage(**options)


async def test_what_the_tables_cannot_hold_is_refused_or_kept(postgres, new_schema):
    """The character zero is kept in events and titles, and refused in ids and memories with an error."""
    async with PostgresSessionStorage(postgres.dsn, schema=new_schema()) as storage:
        await storage.save_events("s", [SessionEvent(1, moment(1), Metadata("title", "a\0b"))])
        assert ["a\0b"] == [s.title for s in (await storage.list_sessions()).sessions]
        assert ["s"] == [s.session_id for s in await storage.find_session("a\0b")]
        with pytest.raises(StorageError):
            await storage.load_session("a\0b")
    async with PostgresMemoryStorage(postgres.dsn, schema=new_schema()) as memories:
        with pytest.raises(MemoryStorageError):
            await memories.save(Memory("1", "n", "a\0b"))
        await memories.save(Memory("1", "n", " ".join(f"word{n}" for n in range(200_000))))
        await memories.save(Memory("2", "n", "x" * 1_000_000))
        assert ["1"] == [m.id for m in await memories.search("n", "word17", 5)]


async def test_rows_changed_from_outside_are_noticed(postgres, new_schema):
    """A log with a hole is an error, never a history."""
    async with PostgresSessionStorage(postgres.dsn, schema=new_schema()) as storage:
        await storage.save_events("s", [event(1), event(2), event(3)])
        await storage._database.run("DELETE FROM {s}.events WHERE seq = 2")
        with pytest.raises(StorageError, match="should have 3 events and has 2"):
            await storage.load_session("s")


async def test_pgbouncer_in_transaction_mode(postgres, new_schema, tmp_path):
    """All that the storage does works where each statement may meet another connection of the server."""
    bouncer = binary("pgbouncer") or next((str(p) for p in [Path("/usr/sbin/pgbouncer")] if p.exists()), None)
    if bouncer is None:
        pytest.skip("pgbouncer is not installed: apt-get install pgbouncer")
    port = free_port()
    folder = postgres.folder / "pgbouncer"
    folder.mkdir(exist_ok=True)
    settings = folder / "settings.ini"
    settings.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={postgres.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = any\npool_mode = transaction\nunix_socket_dir =\ndefault_pool_size = 3\n"
    )
    settings.write_text(settings.read_text().replace("postgres = host", "postgres = user=youyou host"))
    process = subprocess.Popen(  # noqa: ASYNC220  it starts at once, and outlives no test
        [bouncer, str(settings)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **unprivileged()
    )
    try:
        dsn = f"postgresql://youyou@127.0.0.1:{port}/postgres"
        end = time.monotonic() + 30
        while True:
            try:
                (await connect(dsn)).cut()
                break
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
        async with PostgresSessionStorage(dsn, schema=new_schema(), connections=6) as storage:

            async def converse(session_id):
                claim = await storage.claim(session_id, owner="a", address="", ttl_ms=60_000)
                for seq in range(1, 11):
                    await storage.save_events(session_id, [event(seq)])
                assert 10 == len(await storage.load_session(session_id) or ())
                assert [] == [*await storage.renew("a", {session_id: claim.epoch}, 60_000)]
                await storage.release(session_id, owner="a", epoch=claim.epoch)

            async with trio.open_nursery() as nursery:
                for number in range(8):
                    nursery.start_soon(converse, f"s{number}")
            with trio.move_on_after(0.1) as scope:
                await storage._database.run("SELECT pg_sleep(60)")
            assert scope.cancelled_caught
            assert 8 == len((await storage.list_sessions()).sessions)
    finally:
        process.kill()
        process.wait(10)

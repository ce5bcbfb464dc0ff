"""Files that cannot be used are refused with what to do, and never written to; those that can are looked after."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import apsw
import pytest
import trio
import trio.testing
from youyou.adapters.sqlite import SQLiteMemoryStorage, SQLiteSessionStorage, connection, schema
from youyou.adapters.sqlite.transaction import transaction
from youyou.messages.errors import InvalidConfig, MemoryStorageError, StorageError
from youyou.messages.history import UserMessage
from youyou.messages.records import Memory, Metadata, SessionEvent
from youyou.testing.agents.conformance_support import moment

EVENT = SessionEvent(1, moment(1), UserMessage("hi"))


async def _refusal(path, storage_class=SQLiteSessionStorage, error=StorageError):
    """The message with which entering is refused."""
    with pytest.raises(error) as caught:
        async with storage_class(path):
            pass
    return caught.value.message


def _foreign(path):
    with apsw.Connection(str(path)) as db:
        db.execute("CREATE TABLE recipes (name); INSERT INTO recipes VALUES ('cake')")
    db.close()


async def test_another_programs_database_is_refused_and_left_as_it_was(tmp_path):
    """A database with somebody else's tables is refused by both storages, and not one byte of it changes."""
    path = tmp_path / "recipes.db"
    _foreign(path)
    before = path.read_bytes()
    assert "another program" in await _refusal(path)
    assert "another program" in await _refusal(path, SQLiteMemoryStorage, MemoryStorageError)
    assert before == path.read_bytes()
    assert os.listdir(tmp_path) == ["recipes.db"]


@pytest.mark.parametrize("content", [b"hello", b"text " * 1000, bytes(4096), b"SQLite format 3\0" + b"\xff" * 4080])
async def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path, content):
    """Text, zeros and a header with rubbish behind it are refused, and not one byte of them changes."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    message = await _refusal(path)
    assert str(path) in message and ("not a SQLite database" in message or "damaged" in message)
    assert content == path.read_bytes()


async def test_a_newer_schema_is_refused_and_left_as_it_was(tmp_path):
    """A file that a newer version wrote is refused, with both versions named, and not changed."""
    path = tmp_path / "new.db"
    async with SQLiteSessionStorage(path) as storage:
        await storage._file.run(lambda db: db.execute("PRAGMA user_version = 99").get)
    before = path.read_bytes()
    message = await _refusal(path)
    assert "newer youyou (schema 99" in message and "update youyou" in message
    assert before == path.read_bytes()


async def test_a_missing_directory_is_named(tmp_path):
    """The error names the directory that is not there; it is not created."""
    message = await _refusal(tmp_path / "no" / "such" / "chat.db")
    assert repr(str(tmp_path / "no" / "such")) in message and "create it first" in message
    assert os.listdir(tmp_path) == []


async def test_a_directory_in_place_of_the_file_is_refused(tmp_path):
    """A path that is a directory cannot be opened, and the error says to check it."""
    assert "cannot be opened" in await _refusal(tmp_path)


@pytest.mark.parametrize("mode_of_folder", [0o555, 0o777])
async def test_a_read_only_file_is_refused(mode_of_folder):
    """A file that may not be written is refused when it is entered, not at the first save."""
    folder = Path(tempfile.mkdtemp())
    try:
        async with SQLiteSessionStorage(folder / "chat.db") as storage:
            await storage.save_events("s", [EVENT])
        os.chmod(folder / "chat.db", 0o444)
        os.chmod(folder, mode_of_folder)
        unprivileged = os.geteuid() == 0
        if unprivileged:
            os.seteuid(65534)  # root may write anything
        try:
            message = await _refusal(folder / "chat.db")
        finally:
            if unprivileged:
                os.seteuid(0)
        assert "read-only" in message and "writable" in message
    finally:
        os.chmod(folder, 0o755)
        shutil.rmtree(folder)


async def test_a_full_disk_stores_nothing_of_a_batch_and_works_again_with_space(tmp_path, monkeypatch):
    """A batch that does not fit is refused whole, worth a retry, and the same batch is stored once there is space."""
    monkeypatch.setattr(apsw, "connection_hooks", [lambda db: db.pragma("max_page_count", 40)])
    large = [SessionEvent(seq, moment(seq), UserMessage("x" * 50_000)) for seq in (2, 3, 4, 5)]
    async with SQLiteSessionStorage(tmp_path / "full.db") as storage:
        await storage.save_events("s", [EVENT])
        with pytest.raises(StorageError, match="the disk is full; free some space") as caught:
            await storage.save_events("s", large)
        assert caught.value.retryable
        assert await storage.load_session("s") == (EVENT,)

        await storage._file.run(lambda db: db.pragma("max_page_count", 1000))
        await storage.save_events("s", large)
        assert (EVENT, *large) == await storage.load_session("s")


async def test_a_full_disk_is_a_memory_error_for_memories(tmp_path, monkeypatch):
    """The memory storage reports a full disk as its own kind of error and keeps what it had."""
    monkeypatch.setattr(apsw, "connection_hooks", [lambda db: db.pragma("max_page_count", 40)])
    async with SQLiteMemoryStorage(tmp_path / "full.db") as storage:
        small = Memory("a", "n", "apple")
        await storage.save(small)
        with pytest.raises(MemoryStorageError, match="the disk is full"):
            await storage.save(Memory("a", "n", "pear " * 50_000))
        assert (small,) == await storage.search("n", "apple", 5)


async def test_a_lock_that_is_never_given_back_is_an_error_worth_a_retry(tmp_path, monkeypatch):
    """Somebody who holds the write lock for too long makes a save fail, whole, and not reading."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        await storage.list_sessions()
        other = apsw.Connection(str(tmp_path / "chat.db"))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="another program holds its lock") as caught:
            await storage.save_events("s", [EVENT])
        assert caught.value.retryable
        assert await storage.load_session("s") is None
        other.execute("ROLLBACK")
        other.close()
        await storage.save_events("s", [EVENT])


async def _cancel_once_begun(storage, work):
    """Run ``work`` until ``begun`` is set from its thread, then cancel it."""
    begun = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, begun)
        while not begun.is_set():
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel(reason="the test cuts it")


async def test_cancel_in_the_middle_of_a_query_ends_it(tmp_path):
    """An endless query ends when its caller is cancelled, what it wrote is undone, and the next call works."""
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:

        async def work(begun):
            def query(db):
                with transaction(db, "IMMEDIATE"):
                    db.execute("DELETE FROM sessions")
                    begun.set()
                    return db.execute(endless).get

            await storage._file.run(query)

        await storage.save_events("s", [EVENT])
        with trio.fail_after(20):
            await _cancel_once_begun(storage, work)
            assert await storage.load_session("s") == (EVENT,)


async def test_cancel_while_waiting_for_a_lock_gives_up_waiting(tmp_path, monkeypatch):
    """A save that waits for another program's lock gives up when cancelled: the next call need not wait for it."""
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        await storage.list_sessions()
        other = apsw.Connection(str(tmp_path / "chat.db"))
        other.execute("BEGIN IMMEDIATE")

        async def work(begun):
            sleep = time.sleep
            monkeypatch.setattr(connection.time, "sleep", lambda seconds: (begun.set(), sleep(seconds)))
            await storage.save_events("s", [EVENT])

        with trio.fail_after(5):
            await _cancel_once_begun(storage, work)
            assert await storage.load_session("s") is None
        other.close()


async def test_no_clock_but_trios_limits_a_call(tmp_path, mock_clock):
    """While Trio's clock stands still a deadline does not pass, however long a query takes by any other clock."""
    long = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 100000) SELECT count(*) FROM n"
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        with trio.fail_after(0.000_001):
            assert await storage._file.run(lambda db: db.execute(long).get) == 100_000


def _open_at_once(path, number):
    """Open ``path`` by so many connections in the same moment, each in a thread; return what they raised."""
    barrier, errors = threading.Barrier(number), []

    def open_it():
        db = apsw.Connection(path)
        barrier.wait()
        try:
            connection.DatabaseFile(path, "NORMAL", StorageError)._set_up(db)
        except Exception as error:
            errors.append(error)
        db.close()

    threads = [threading.Thread(target=open_it) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_connections_that_create_a_file_at_the_same_moment_all_open_it(tmp_path):
    """One creates the file, the others wait for it, and none takes what is half there for somebody else's."""
    assert [_open_at_once(str(tmp_path / f"{number}.db"), 6) for number in range(15)] == [[]] * 15


async def test_every_call_is_a_checkpoint(tmp_path):
    """Each coroutine of both storages lets others run, whatever it has to do."""
    sessions, memories = SQLiteSessionStorage(tmp_path / "chat.db"), SQLiteMemoryStorage(tmp_path / "chat.db")
    async with sessions, memories:
        for call in (
            lambda: sessions.save_events("s", []),
            lambda: sessions.load_session("s"),
            sessions.list_sessions,
            lambda: sessions.find_session("s"),
            lambda: sessions.delete_session("s"),
            lambda: memories.search("n", "", 0),
            lambda: memories.save(Memory("m", "n", "c")),
            lambda: memories.delete("n", "m"),
        ):
            with trio.testing.assert_checkpoints():
                await call()


async def test_leaving_under_cancellation_closes_the_file_and_keeps_the_error(tmp_path):
    """A body that raised while its scope was cancelled ends with its own error, and the file is let go of."""
    with trio.CancelScope() as scope, pytest.raises(ZeroDivisionError):
        async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
            await storage.save_events("s", [EVENT])
            scope.cancel(reason="the host stops")
            raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["chat.db"]


async def test_opening_is_tried_again_where_sqlite_would_not_wait(tmp_path, monkeypatch):
    """SQLite refuses at once where two connections would wait for each other; opening steps back and tries again."""
    refusals, prepare = [apsw.BusyError("locked")] * 3, connection.prepare

    def refuse_thrice(db, synchronous):
        if refusals:
            raise refusals.pop()
        prepare(db, synchronous)

    monkeypatch.setattr(connection, "prepare", refuse_thrice)
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        await storage.save_events("s", [EVENT])


def test_a_storage_works_in_one_run_after_another_and_holds_up_no_process(tmp_path):
    """A storage that is not entered opens itself in each Trio run, and the process ends though nobody closed it."""
    program = f"""
import trio
from youyou.adapters.sqlite import SQLiteMemoryStorage
from youyou.messages.records import Memory
storage = SQLiteMemoryStorage({str(tmp_path / "chat.db")!r})
trio.run(storage.save, Memory("a", "n", "apple"))
print(len(trio.run(storage.search, "n", "apple", 5)))
"""
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")


async def test_one_storage_entered_twice_stays_open_until_both_have_left(tmp_path):
    """Two users of one storage may enter and leave in any order; it works after both left, too."""
    storage = SQLiteSessionStorage(tmp_path / "chat.db")
    async with storage:
        async with storage:
            await storage.save_events("s", [EVENT])
        assert storage._file._db is not None
    assert storage._file._db is None
    assert await storage.load_session("s") == (EVENT,)
    await storage.aclose()
    assert os.listdir(tmp_path) == ["chat.db"]


async def test_both_storages_share_a_file(tmp_path):
    """Sessions and memories in one file do not disturb each other, saved at the same time."""
    path = tmp_path / "chat.db"
    async with SQLiteSessionStorage(path) as sessions, SQLiteMemoryStorage(path) as memories:
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(sessions.save_events, f"s{number}", [EVENT])
                nursery.start_soon(memories.save, Memory(f"m{number}", "n", "apple"))
        assert len((await sessions.list_sessions()).sessions) == 20
        assert len(await memories.search("n", "apple", 50)) == 20


async def test_fifty_first_calls_at_once_open_one_connection(tmp_path):
    """Tasks that use a fresh storage at the same time wait for one opening."""
    storage = SQLiteSessionStorage(tmp_path / "chat.db")
    before = threading.active_count()
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(storage.save_events, f"s{number}", [EVENT])
    assert before + 1 >= threading.active_count()
    await storage.aclose()


async def test_the_file_says_whose_it_is(tmp_path):
    """The header carries youyou's application id and the version of the schema; the log mode is WAL."""
    path = tmp_path / "chat.db"
    async with SQLiteSessionStorage(path):
        pass
    db = apsw.Connection(str(path))
    expected = (schema.APPLICATION_ID, len(schema.MIGRATIONS), "wal")
    assert expected == tuple(db.pragma(name) for name in ("application_id", "user_version", "journal_mode"))
    db.close()


@pytest.mark.parametrize(("synchronous", "number"), [("NORMAL", 1), ("FULL", 2)])
async def test_durability_is_what_was_asked_for(tmp_path, synchronous, number):
    """The setting reaches SQLite."""
    async with SQLiteSessionStorage(tmp_path / "chat.db", synchronous=synchronous) as storage:
        assert number == await storage._file.run(lambda db: db.pragma("synchronous"))


def test_other_durability_is_refused(tmp_path):
    """A setting that would break the promise of the docstring is refused when the storage is made."""
    with pytest.raises(InvalidConfig, match="synchronous is 'OFF'; pass one of NORMAL, FULL"):
        SQLiteSessionStorage(tmp_path / "chat.db", synchronous="OFF")


async def test_an_older_file_is_migrated_whole_or_not_at_all(tmp_path, monkeypatch):
    """A file of an earlier schema gets the missing steps; a step that fails leaves it as it was."""
    path = tmp_path / "chat.db"
    async with SQLiteSessionStorage(path) as storage:
        await storage.save_events("s", [EVENT])
    first = schema.MIGRATIONS

    monkeypatch.setattr(schema, "MIGRATIONS", (*first, "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)"))
    assert "SQLite says: no such table: nowhere" in await _refusal(path)
    monkeypatch.setattr(schema, "MIGRATIONS", (*first, "CREATE TABLE more (x)"))
    async with SQLiteSessionStorage(path) as storage:
        assert await storage._file.run(lambda db: db.pragma("user_version")) == len(first) + 1
        assert await storage.load_session("s") == (EVENT,)


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    """Without apsw, making a storage says what to install."""
    monkeypatch.setitem(sys.modules, "apsw", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[sqlite\]'"):
        SQLiteSessionStorage(tmp_path / "chat.db")


async def test_half_a_surrogate_pair_is_refused_clearly(tmp_path):
    """Text that no file can hold is an error that says so, and nothing of its batch is stored."""
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        with pytest.raises(StorageError, match="half a surrogate pair"):
            await storage.save_events("s", [EVENT, SessionEvent(2, moment(2), UserMessage("\ud800"))])
        assert await storage.load_session("s") is None


async def test_an_event_of_a_later_version_is_an_error_that_says_so(tmp_path, monkeypatch):
    """A payload of an unknown kind is not left out of the history: loading says to update."""
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        text = '{"seq":1,"timestamp":"2030-01-01T00:00:00+00:00","payload":{"type":"Hologram"}}'
        monkeypatch.setattr("youyou.adapters.sqlite.sessions.to_json", lambda _: text)
        await storage.save_events("s", [EVENT])
        with pytest.raises(StorageError, match="event 1 of session 's' is of a kind unknown to this version"):
            await storage.load_session("s")


async def test_titles_are_found_whatever_their_case_and_accents(tmp_path):
    """Looking for a session by its title ignores case, width and accents."""
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        await storage.save_events("s", [SessionEvent(1, moment(1), Metadata("title", "Café in ZÜRICH"))])
        for query in ("cafe", "CAFÉ IN", "zürich", "ｚｕｒ"):  # noqa: RUF001 - the wide letters are the point
            assert [found.session_id for found in await storage.find_session(query)] == ["s"]


async def test_nothing_of_a_deleted_session_stays_in_the_tables(tmp_path):
    """Deleting a session removes the rows of its events, so that what a user deleted is gone."""
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        await storage.save_events("s", [EVENT])
        await storage.delete_session("s")
        assert await storage._file.run(lambda db: db.execute("SELECT count(*) FROM events").get) == 0


async def test_a_cursor_of_another_kind_is_refused(tmp_path):
    """A cursor that no page gave is an error that says what a cursor is."""
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        with pytest.raises(StorageError, match="pass the next_cursor of a page"):
            await storage.list_sessions("page 2")

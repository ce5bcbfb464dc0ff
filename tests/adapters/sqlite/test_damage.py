"""A damaged database gives a clear error or a consistent prefix, never a wrong history."""

import os
import random
import shutil

import apsw
import pytest
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.messages.errors import StorageError
from youyou.messages.history import UserMessage
from youyou.messages.records import SessionEvent
from youyou.testing.agents.conformance_support import moment

QUICK, LONG = 20, 200


def _sessions():
    rng = random.Random(7)
    return {
        f"s{number}": tuple(
            SessionEvent(seq, moment(seq), UserMessage(f"s{number} {seq} " + "x" * rng.choice([3, 50, 400, 9_000])))
            for seq in range(1, 41)
        )
        for number in range(5)
    }


async def _build(folder):
    """A closed file, and one whose process died with everything still in the write-ahead log."""
    sessions = _sessions()
    async with SQLiteSessionStorage(folder / "closed.db") as storage:
        for start in range(0, 40, 7):
            for session_id, events in sessions.items():
                await storage.save_events(session_id, events[start : start + 7])
        for end in ("", "-wal"):
            shutil.copy(folder / f"closed.db{end}", folder / f"killed.db{end}")
    return sessions


def _truncate(file, size, rng):
    file.truncate(rng.randrange(size))


def _scribble(file, size, rng):
    file.seek(rng.randrange(size))
    file.write(rng.randbytes(rng.randint(1, 64)))


def _blank_sector(file, size, rng):
    file.seek(rng.randrange(size) // 512 * 512)
    file.write(bytes(512))


def _swap_pages(file, size, rng):
    places = [rng.randrange(size // 4096) * 4096 for _ in range(2)]
    pages = [os.pread(file.fileno(), 4096, place) for place in places]
    for place, page in zip(places, reversed(pages), strict=True):
        file.seek(place)
        file.write(page)


def _alter_letter(file, size, rng):
    """The kind of damage that SQLite has no check for: a letter in the text of an event."""
    data = file.read()
    places = [place for place in range(size - 4) if data[place : place + 4] == b"xxxx"]
    file.seek(rng.choice(places))
    file.write(b"y")


async def _judge(path, sessions):
    """What each session loads as: whole, a prefix of it, nothing, or an error."""
    verdicts = []
    try:
        async with SQLiteSessionStorage(path) as storage:
            for session_id, events in sessions.items():
                verdicts.append(await _judge_one(storage, session_id, events))
    except StorageError as error:
        assert str(path) in error.message
        verdicts.append("error")
    return verdicts


async def _judge_one(storage, session_id, events):
    try:
        found = await storage.load_session(session_id)
    except StorageError as error:
        assert "damaged" in error.message or "backup" in error.message
        return "error"
    if found == events:
        return "whole"
    assert events[: len(found or ())] == (found or ()), f"session {session_id} came back with a wrong history"
    return "prefix" if found else "nothing"


async def _damage_and_judge(folder, sessions, which, harm, seed):
    rng = random.Random(seed)
    path = folder / "damaged.db"
    for end in ("", "-wal", "-shm"):
        (folder / f"damaged.db{end}").unlink(missing_ok=True)
        if (folder / f"{which}.db{end}").exists():
            shutil.copy(folder / f"{which}.db{end}", folder / f"damaged.db{end}")
    target = folder / ("damaged.db-wal" if which == "killed" else "damaged.db")
    with target.open("r+b") as file:
        harm(file, target.stat().st_size, rng)
    return await _judge(path, sessions)


async def _many(folder, which, harm, times):
    sessions = await _build(folder)
    verdicts = []
    for seed in range(times):
        verdicts += await _damage_and_judge(folder, sessions, which, harm, f"{which} {harm.__name__} {seed}")
    return set(verdicts)


HARMS = [_truncate, _scribble, _blank_sector, _swap_pages]


@pytest.mark.parametrize("harm", HARMS)
async def test_a_damaged_file_never_gives_a_wrong_history(tmp_path, harm):
    """Damage anywhere in the file: each session is whole or an error, never shorter or different."""
    assert {"whole", "error"} >= await _many(tmp_path, "closed", harm, QUICK // len(HARMS))


@pytest.mark.parametrize("harm", HARMS)
async def test_a_damaged_log_takes_back_the_newest_saves_and_no_more(tmp_path, harm):
    """Damage in the write-ahead log: each session is a prefix of what it was, from nothing to whole, or an error."""
    assert {"whole", "error", "prefix", "nothing"} >= await _many(tmp_path, "killed", harm, QUICK // len(HARMS))


async def test_a_changed_letter_is_noticed(tmp_path):
    """One letter changed in an event's text is an error of that session; the others are whole."""
    sessions = await _build(tmp_path)
    for seed in range(3):
        verdicts = await _damage_and_judge(tmp_path, sessions, "closed", _alter_letter, seed)
        assert sorted(verdicts) == ["error", "whole", "whole", "whole", "whole"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM events WHERE session = 2 AND seq = 40",
        "DELETE FROM events WHERE session = 2 AND seq = 7",
        "UPDATE events SET seq = 99 WHERE session = 2 AND seq = 7",
        "UPDATE events SET session = 3, seq = seq + 100 WHERE session = 2 AND seq > 20",
        "INSERT INTO events SELECT session, seq + 40, checksum, body FROM events WHERE session = 2 AND seq = 1",
        "UPDATE sessions SET session_id = 's9' WHERE key = 2",
        "UPDATE sessions SET event_count = 39 WHERE key = 2",
        "UPDATE sessions SET title = 'other' WHERE key = 2",
    ],
)
async def test_rows_changed_behind_its_back_are_noticed(tmp_path, statement):
    """Rows that were lost, moved, doubled or changed by another program are an error, not a history."""
    sessions = await _build(tmp_path)
    storage = SQLiteSessionStorage(tmp_path / "closed.db")
    async with storage:
        await storage._file.run(lambda db: db.execute(statement))
        changed = "s9" if "s9" in statement else "s1"
        with pytest.raises(StorageError, match="damaged"):
            await storage.load_session(changed)
        assert sessions["s4"] == await storage.load_session("s4")


async def test_swapped_indexes_do_not_hide_sessions(tmp_path):
    """Sessions that a damaged index would hide are not said to be unknown: not when loading, listing or looking."""
    await _build(tmp_path)
    path = tmp_path / "closed.db"
    db = apsw.Connection(str(path))
    names = "sessions_by_time", "sqlite_autoindex_sessions_1"
    roots = [db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get for name in names]
    db.close()
    data = bytearray(path.read_bytes())
    one, two = (slice(4096 * (root - 1), 4096 * root) for root in roots)
    data[one], data[two] = data[two], data[one]
    path.write_bytes(data)

    async with SQLiteSessionStorage(path) as storage:
        for call in (
            lambda: storage.load_session("s1"),
            storage.list_sessions,
            lambda: storage.find_session("s1"),
            lambda: storage.save_events("s1", _sessions()["s1"]),
        ):
            with pytest.raises(StorageError, match="list of sessions is damaged"):
                await call()


@pytest.mark.long
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("which", ["closed", "killed"])
async def test_damage_at_two_hundred_places(tmp_path, which, harm):
    """The same at 200 random places of the file and of the log for each kind of damage."""
    expected = {"whole", "error"} if which == "closed" else {"whole", "error", "prefix", "nothing"}
    assert expected >= await _many(tmp_path, which, harm, LONG)

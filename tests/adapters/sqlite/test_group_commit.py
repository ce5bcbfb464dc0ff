"""Sessions that save at once share a transaction, and nothing but the wait for the disk (semantics 7)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio
import trio.testing
from youyou import SessionEvent, SessionTaken, UserMessage
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.adapters.sqlite import sessions as rows


def event(text: str, seq: int = 1) -> SessionEvent:
    """An event."""
    return SessionEvent(seq, datetime(2026, 1, 1, tzinfo=UTC), UserMessage(text))


@pytest.fixture
def groups(monkeypatch):
    """How many batches each transaction had."""
    seen = []
    plain = rows.save_all

    def counted(db, batches):
        seen.append(len(batches))
        return plain(db, batches)

    monkeypatch.setattr(rows, "save_all", counted)
    return seen


async def saved_at_once(storage, batches):
    """What became of each batch, by session: None, or the error."""
    became = {}

    async def save(session_id, events):
        try:
            await storage.save_events(session_id, events)
            became[session_id] = None
        except SessionTaken as error:
            became[session_id] = error

    async with trio.open_nursery() as nursery:
        for session_id, events in batches.items():
            nursery.start_soon(save, session_id, events)
    return became


async def test_sessions_that_save_at_once_share_a_transaction(tmp_path, groups):
    """Those that come while one writes are written together."""
    names = [f"s{number}" for number in range(20)]
    async with SQLiteSessionStorage(tmp_path / "chat.db", synchronous="FULL") as storage:
        became = await saved_at_once(storage, {name: [event(name)] for name in names})
        loaded = {name: [one.payload.text for one in await storage.load_session(name)] for name in names}

    assert [1, 19] == groups
    assert dict.fromkeys(names) == became
    assert {name: [name] for name in names} == loaded


async def test_a_batch_that_is_refused_costs_nobody_else_anything(tmp_path, groups):
    """One of a group has another writer's number: it alone is told so, and the others are stored."""
    names = [f"s{number}" for number in range(6)]
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        await storage.save_events("s3", [event("another's")])
        became = await saved_at_once(storage, {name: [event(name)] for name in names})
        loaded = {name: [one.payload.text for one in await storage.load_session(name)] for name in names}

    assert 5 in groups
    assert ["s3"] == [name for name, error in became.items() if error is not None]
    assert {name: [name if name != "s3" else "another's"] for name in names} == loaded


async def test_what_a_cancelled_caller_was_writing_for_others_is_written_by_the_next(tmp_path, groups, monkeypatch):
    """The one that writes for all is cancelled: the others are stored all the same."""
    async with SQLiteSessionStorage(tmp_path / "chat.db") as storage:
        await storage.save_events("s0", [event("first")])
        plain, asked, scope = storage._file.run, [], trio.CancelScope()

        async def run(work):
            asked.append(work)
            if len(asked) == 1:
                await trio.sleep_forever()
            return await plain(work)

        monkeypatch.setattr(type(storage._file), "run", lambda _, work: run(work))
        became = {}

        async def leader():
            with scope:
                await storage.save_events("s0", [event("second", 2)])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leader)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(lambda: _into(became, storage, {"s1": [event("one")], "s2": [event("two")]}))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel("the test")
        counts = {name: len(await storage.load_session(name)) for name in ("s0", "s1", "s2")}

    assert scope.cancelled_caught
    assert {"s1": None, "s2": None} == became
    assert {"s0": 1, "s1": 1, "s2": 1} == counts


async def _into(became, storage, batches):
    became |= await saved_at_once(storage, batches)

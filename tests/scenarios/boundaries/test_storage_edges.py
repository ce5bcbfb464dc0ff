"""A storage at its edges: a file that is replaced, numbers from a client, an error that is over (semantics 3, 7)."""

from __future__ import annotations

import os

import pytest
import youyou as y
from youyou.adapters.sqlite import SQLiteMemoryStorage, SQLiteSessionStorage
from youyou.testing import InMemorySessionStorage, ScriptedProvider, say


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_a_database_file_that_is_gone_is_noticed_at_the_next_write(building, tmp_path, how):
    """The turn says that it was not stored."""
    path = tmp_path / "gone.db"
    builder = building(ScriptedProvider([say("ok"), say("ok")]), "scripted")
    builder.register_session_storage(SQLiteSessionStorage(path))
    with pytest.raises(y.AgentError, match="STORAGE_ERROR"):
        async with builder.build() as agent, await agent.new_session() as session:
            await (await session.send_message("one")).result()
            for name in os.listdir(tmp_path):
                os.remove(tmp_path / name)
            if how == "replaced":
                async with SQLiteSessionStorage(path) as other:
                    await other.list_sessions()
            result = await (await session.send_message("two")).result()
            assert "STORAGE_ERROR" == result.error.code


@pytest.mark.parametrize("number", [10**30, -(10**30)], ids=repr)
async def test_numbers_beyond_the_databases_range_are_errors_of_youyou(tmp_path, number):
    """Each argument of each method that takes a number."""
    moment = y.Memory("m", "n", "c").created_at
    async with SQLiteSessionStorage(tmp_path / "o.db") as s, SQLiteMemoryStorage(tmp_path / "o.db") as m:
        await s.save_events("q", [y.SessionEvent(1, moment, y.Metadata("k", 1))])
        for ask in (
            lambda: s.list_sessions(f"{number} x"),
            lambda: s.list_sessions("9" * 50),
            lambda: s.save_events("q", [y.SessionEvent(number, moment, y.Metadata("k", 1))]),
        ):
            with pytest.raises(y.AgentError, match="STORAGE_ERROR"):
                await ask()
        assert 1 == len((await s.list_sessions(None, number)).sessions)
        assert () == tuple(await m.search("a", "b", number))


async def test_a_failure_is_told_in_the_turn_that_it_belongs_to_and_once(building):
    """The turn that stored everything tells of no error."""

    class Full(InMemorySessionStorage):
        full = False

        async def save_events(self, session_id, events):
            if self.full:
                raise OSError("disk is full")
            await super().save_events(session_id, events)

    store = Full()
    builder = building(ScriptedProvider([say("ok")] * 3), "scripted").register_session_storage(store)
    told = []
    async with builder.build() as agent, await agent.new_session() as session:
        for text, full in (("one", False), ("two", True), ("three", False)):
            store.full = full
            turn = await session.send_message(text)
            told.append([event.payload.error.code async for event in turn if isinstance(event.payload, y.ErrorEvent)])

    assert [[], ["STORAGE_ERROR"], []] == told

"""One stored session has one writer: anyone who lost it hears it before anything else happens (semantics 7)."""

from __future__ import annotations

import pytest
import trio
import youyou as y
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.testing import InMemorySessionStorage, ScriptedProvider, calls, say


class Shared(InMemorySessionStorage):
    """One storage for several agents, each of which enters and leaves it."""

    async def __aenter__(self):
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(self, *_):
        await trio.lowlevel.checkpoint()


@pytest.fixture(params=["sqlite", "memory"])
def stores(request, tmp_path):
    """Gives a storage for each agent: all of them of the same sessions."""
    if request.param == "sqlite":
        return lambda: SQLiteSessionStorage(tmp_path / "two.db")
    shared = Shared()
    return lambda: shared


@pytest.fixture
def agent(stores, building):
    """Gives an agent that says these rounds and has a tool that leaves a mark."""

    def make(*rounds, paid=None):
        @y.tool(mutating=True)
        async def pay() -> str:
            paid.append("paid")
            return "ok"

        builder = building(ScriptedProvider(list(rounds)), "scripted").register_tool(pay)
        return builder.register_session_storage(stores()).build()

    return make


async def result_of(session, text):
    return await (await session.send_message(text)).result()


def facts(events):
    return [
        getattr(event.payload, "text", type(event.payload).__name__)
        for event in events
        if not isinstance(event.payload, y.Metadata)
    ]


async def begun(agent):
    """A stored session with one turn."""
    async with agent(say("one")) as first, await first.new_session() as session:
        await result_of(session, "first")
        return session.id


async def left(session):
    """Leave the session as its block would, and give the error that this raises."""
    try:
        await session.close()
    except y.AgentError as error:
        return error
    return None


async def test_the_newest_opener_owns_the_log_and_the_former_owner_fails_before_its_first_tool(agent, stores):
    """The former owner's turn fails with SESSION_TAKEN, its tool does not run, and nothing of it is in the log."""
    session_id, paid = await begun(agent), []

    async with agent(calls("pay"), say("A"), paid=paid) as a, agent(calls("pay"), say("B"), paid=paid) as b:
        former = await a.resume_session(session_id)
        async with await b.resume_session(session_id, steal=True) as owner:
            lost = await result_of(former, "from A")
            kept = await result_of(owner, "from B")
        at_the_end = await left(former)

    async with stores() as storage:
        log = await storage.load_session(session_id)
    assert ("failed", "SESSION_TAKEN") == (lost.status, lost.error.code)
    assert ("completed", None, ["paid"]) == (kept.status, kept.error, paid)
    assert "SESSION_TAKEN" == at_the_end.code
    assert ["first", "one", "from B", "ToolCall", "ToolResult", "B"] == facts(log)
    assert list(range(1, len(log) + 1)) == [event.seq for event in log]


async def test_a_lost_session_leaves_its_agent_alive(agent):
    """After SESSION_TAKEN the agent opens another session, and a turn of it works."""
    session_id = await begun(agent)

    async with agent(say("x"), say("fine")) as a, agent(say("B")) as b:
        former = await a.resume_session(session_id)
        async with await b.resume_session(session_id, steal=True) as owner:
            await result_of(owner, "from B")
        await result_of(former, "from A")
        with pytest.raises(y.AgentError, match="SESSION_TAKEN"):
            await former.send_message("again")
        assert "SESSION_TAKEN" == (await left(former)).code
        async with await a.new_session() as other:
            assert "completed" == (await result_of(other, "hello")).status


async def test_a_session_that_was_deleted_is_not_begun_again_without_its_head(agent, stores):
    """The next turn fails with SESSION_NOT_FOUND and the storage holds nothing of the session."""
    async with agent(say("one"), say("two")) as a:
        session = await a.new_session()
        await result_of(session, "before")
        async with stores() as other:
            await other.delete_session(session.id)
        lost = await result_of(session, "after")
        await left(session)

    async with stores() as storage:
        found = await storage.load_session(session.id)
    assert ("failed", "SESSION_NOT_FOUND") == (lost.status, lost.error.code)
    assert found is None


async def test_an_owner_that_closed_does_not_stand_in_the_way(agent):
    """A session that was closed is resumed without force, again and again."""
    session_id = await begun(agent)

    for number in range(3):
        async with agent(say("ok")) as a, await a.resume_session(session_id) as session:
            result = await result_of(session, f"turn {number}")
            assert "completed" == result.status
            opened = [m for m in session.history if isinstance(m, y.UserMessage)]
    assert 4 == len(opened)


async def test_a_retry_of_the_same_events_is_ignored(stores):
    """The same batch again changes nothing."""
    now = y.SessionEvent(1, y.Memory("m", "n", "c").created_at, y.UserMessage("hi"))
    async with stores() as storage:
        await storage.save_events("s", [now])
        await storage.save_events("s", [now])

        assert (now,) == tuple(await storage.load_session("s"))


async def test_another_event_under_a_known_number_refuses_its_whole_batch(stores):
    """Nothing of the batch is stored, also not what would fit."""
    moment = y.Memory("m", "n", "c").created_at
    async with stores() as storage:
        await storage.save_events("s", [y.SessionEvent(1, moment, y.UserMessage("hi"))])
        with pytest.raises(y.AgentError, match="SESSION_TAKEN") as caught:
            await storage.save_events(
                "s",
                [y.SessionEvent(1, moment, y.UserMessage("other")), y.SessionEvent(2, moment, y.UserMessage("more"))],
            )

        assert not caught.value.retryable
        assert 1 == len(await storage.load_session("s"))
        await trio.lowlevel.checkpoint()

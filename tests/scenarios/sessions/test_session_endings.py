"""Three ways a session ends, and what can be asked of what has ended (semantics 6.3)."""

from __future__ import annotations

import gc

import pytest
import trio
from youyou import AgentClosed, Done, SessionBusy, SessionClosed, SessionEnd, TextDelta, TurnEnd
from youyou.testing.agents.scripted import calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage

EXTRACTED = '[{"content": "likes tea"}]'


async def sleeps_2(_):
    await trio.sleep(2)


@pytest.fixture
def remembering(stage):
    """A conversation whose SessionEnd hook is logged and whose session has something to remember."""
    stage.memories = InMemoryMemoryStorage()
    stage.on(SessionEnd)
    stage.says(say("noted"))
    return stage


async def one_turn(session):
    await (await session.send_message("I like tea")).result()


def remembered(stage):
    return [memory.content for memory in stage.memories.memories("default")]


# the graceful way


@pytest.mark.parametrize("way", ["close", "aclose", "block", "exception"])
async def test_a_session_that_is_closed(way, remembering, autojump_clock):
    """close(), or leaving the block also by an exception: SessionEnd hook, memory extraction, then the slot is free."""
    remembering.extracts([2.0, TextDelta(EXTRACTED), Done()])
    async with remembering.agent() as agent:
        with remembering.takes(2):
            try:
                async with await agent.new_session() as session:
                    await one_turn(session)
                    if way == "exception":
                        raise ValueError("mine")
                    if way != "block":
                        await getattr(session, way)()
            except ValueError as error:
                assert (way, "mine") == ("exception", str(error))
        assert ["SessionEnd begins", "SessionEnd ended"] == remembering.log
        assert ["likes tea"] == remembered(remembering)
        async with await agent.new_session():
            pass


@pytest.mark.parametrize("way", ["shutdown", "block"])
async def test_an_agent_that_is_left(way, remembering, autojump_clock):
    """shutdown(), or leaving the agent: the same for its session, before the plugins are shut down."""
    remembering.plugin("plugin")
    remembering.extracts([2.0, TextDelta(EXTRACTED), Done()])
    with remembering.takes(2):
        async with remembering.agent() as agent:
            session = await agent.new_session()
            await one_turn(session)
            if way == "shutdown":
                await agent.shutdown()

    assert ["SessionEnd begins", "SessionEnd ended", "plugin ends", "plugin ended"] == remembering.log[-4:]
    assert ["likes tea"] == remembered(remembering)


@pytest.mark.parametrize("way, reason", [("close", "session_closed"), ("shutdown", "agent_shutdown")])
async def test_a_running_turn_is_cancelled_and_waited_for(way, reason, stage, autojump_clock):
    """Closing stops the turn, lets its tool finish, and tells the reason."""
    write = stage.tool("write", takes=4.0)
    stage.says(calls("write"))
    async with stage.agent() as agent:
        session = await agent.new_session()
        turn = await session.send_message("go")
        await trio.sleep(1)
        with stage.takes(3):
            await (session.close() if way == "close" else agent.shutdown())
        events = await stage.events(turn)

    assert reason == events[-1].reason
    assert 1 == write.finished


@pytest.mark.parametrize("way", ["close", "shutdown"])
async def test_a_grace_cuts_tools_and_hooks(way, stage, autojump_clock):
    """close(grace) and shutdown(grace) cut what still runs after so many seconds; a second call only tightens."""
    stage.tool("write", takes=60.0)
    stage.on(SessionEnd, sleeps_2)
    stage.says(calls("write"))
    async with stage.agent() as agent:
        session = await agent.new_session()
        turn = await session.send_message("go")
        ask = session.close if way == "close" else agent.shutdown
        await trio.sleep(1)
        with stage.takes(3):
            async with trio.open_nursery() as nursery:
                for grace in (9.0, 3.0, 5.0, None):
                    nursery.start_soon(lambda grace=grace: ask(grace=grace))
        assert ("write",) == (await turn.result()).interrupted

    assert ["SessionEnd begins"] == stage.log


async def test_a_memory_model_that_fails_does_not_hold_up_closing(remembering, autojump_clock, caplog):
    """An extraction that fails is logged; the session closes as if nothing were."""
    remembering.extracts([ValueError("no memory today")])
    async with remembering.session() as session:
        await one_turn(session)

    assert "no memory today" in caplog.text
    assert [] == remembered(remembering)


# dropped


async def test_a_handle_that_is_dropped_warns_and_ends_its_session(remembering, autojump_clock):
    """Collected without close: ResourceWarning, no SessionEnd hook, no extraction, and the slot is free."""
    async with remembering.agent() as agent:
        session = await agent.new_session()
        await one_turn(session)
        with pytest.warns(ResourceWarning, match="never closed"):
            del session
            gc.collect()
        await trio.testing.wait_all_tasks_blocked()
        async with await agent.new_session():
            pass

    assert ["SessionEnd begins", "SessionEnd ended"] == remembering.log  # of the second session only
    assert [] == remembered(remembering)


async def test_a_dropped_session_waits_for_its_turn(stage, autojump_clock):
    """While the turn of a dropped session ends, the slot is busy; after that it is free."""
    write = stage.tool("write", takes=4.0)
    stage.says(calls("write"))
    async with stage.agent() as agent:
        session = await agent.new_session()
        await session.send_message("go")
        await write.started.wait()
        with pytest.warns(ResourceWarning):
            del session
            gc.collect()
        await trio.sleep(1)
        with pytest.raises(SessionBusy):
            await agent.new_session()
        await trio.sleep(3.5)
        async with await agent.new_session():
            pass

    assert 1 == write.finished


async def test_a_turn_keeps_its_session_alive(stage, autojump_clock):
    """Anyone who holds a turn need not hold its session; who lets go of both has dropped it."""
    stage.says([1.0, TextDelta("done"), Done()])
    async with stage.agent() as agent:
        turn = await (await agent.new_session()).send_message("go")
        gc.collect()
        assert "done" == (await turn.result()).text

        with pytest.warns(ResourceWarning, match="never closed"):
            del turn
            gc.collect()


async def test_left_by_a_cancellation(remembering, autojump_clock):
    """A block left by Cancelled cuts what runs after the agent's grace, waits for that, and the slot is free."""
    remembering.configure(shutdown_grace_ms=2_000)
    remembering.tool("write", takes=4.0)
    remembering.provider._rounds.clear()
    remembering.says(calls("write"))
    async with remembering.agent() as agent:
        with remembering.takes(3), trio.move_on_after(1):
            async with await agent.new_session() as session:
                turn = await session.send_message("go")
                await trio.sleep_forever()
        assert "dropped" == (await remembering.events(turn))[-1].reason
        assert [] == remembering.log
        async with await agent.new_session():
            pass


async def test_left_by_a_cancellation_while_it_closes(remembering, autojump_clock):
    """A close() that is cancelled goes on: the hook finishes, and the slot becomes free."""

    remembering.plugins.clear()
    remembering.on(SessionEnd, sleeps_2)
    remembering.extracts(say("[]"))
    async with remembering.agent() as agent:
        session = await agent.new_session()
        await one_turn(session)
        with remembering.takes(1), trio.move_on_after(1):
            await session.close()
        with remembering.takes(1):
            await session.close()
        assert ["SessionEnd begins", "SessionEnd ended"] == remembering.log
        async with await agent.new_session():
            pass


# asking what has ended


async def test_a_closed_session_answers(stage, autojump_clock):
    """Every use of a closed session raises SESSION_CLOSED, at once; close() returns; history stays readable."""
    stage.says(say("hello"))
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            await one_turn(session)
        for use in (lambda: session.send_message("hi"), lambda: session.set_title("t"), session.continue_pipeline):
            with pytest.raises(SessionClosed):
                await use()
        await session.close()
        assert ["user: I like tea", "assistant: hello"] == stage.lines(session.history)


async def test_a_closed_agent_answers(stage, autojump_clock):
    """Every use of a closed agent raises AGENT_CLOSED, at once; shutdown() returns."""
    async with stage.agent() as agent:
        session = await agent.new_session()
        await agent.shutdown()
        await agent.shutdown()
        for use in (agent.new_session, lambda: agent.resume_session("s"), lambda: session.send_message("hi")):
            with pytest.raises(AgentClosed):
                await use()
        await session.close()
    with pytest.raises(AgentClosed):
        await agent.new_session()


async def test_asking_while_it_closes(stage, autojump_clock):
    """While a session closes it takes no message; while an agent closes it opens no session."""
    stage.on(SessionEnd, sleeps_2)
    async with stage.agent() as agent, trio.open_nursery() as nursery:
        session = await agent.new_session()
        nursery.start_soon(session.close)
        await trio.sleep(1)
        with pytest.raises(SessionClosed):
            await session.send_message("hi")
        with pytest.raises(SessionBusy):
            await agent.new_session()
        nursery.start_soon(agent.shutdown)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(AgentClosed), stage.takes(0):
            await agent.new_session()


@pytest.mark.parametrize("what", ["close", "shutdown"])
async def test_many_may_ask_at_once_and_all_wait(what, stage, autojump_clock):
    """close() or shutdown() from ten tasks: one SessionEnd, and each returns when the work is over."""
    stage.on(SessionEnd, sleeps_2)
    returned = []
    async with stage.agent() as agent, trio.open_nursery() as nursery:
        session = await agent.new_session()

        async def ask():
            await (session.close() if what == "close" else agent.shutdown())
            returned.append(trio.current_time())

        for _ in range(10):
            nursery.start_soon(ask)

    assert [2.0] * 10 == returned
    assert ["SessionEnd begins", "SessionEnd ended"] == stage.log


async def test_the_turn_end_hook_is_told_before_the_session_ends(stage, autojump_clock):
    """A close during a turn: TurnEnd before SessionEnd."""
    stage.on(TurnEnd)
    stage.on(SessionEnd)
    stage.says([60.0, Done()])
    async with stage.session() as session:
        await session.send_message("go")
        await trio.sleep(1)

    assert ["TurnEnd begins", "TurnEnd ended", "SessionEnd begins", "SessionEnd ended"] == stage.log


async def test_what_is_closed_says_which_of_both_it_is(stage, autojump_clock):
    """A session that was closed stays a closed session; one that an agent's shutdown ended says so."""
    async with stage.agent() as agent:
        closed = await agent.new_session()
        await closed.close()
        cut = await agent.new_session()
        await agent.shutdown()
        with pytest.raises(SessionClosed):
            await closed.send_message("go")
        with pytest.raises(AgentClosed, match="the agent is closing"):
            await cut.send_message("go")

"""An agent as a task of the host's nursery: ``await nursery.start(builder.serve)`` (semantics 1.1, 6.2)."""

from __future__ import annotations

import pytest
import trio
from youyou import AgentClosed, Done, PluginInitFailed, SessionEnd, TextDelta
from youyou.testing.agents.scripted import calls, say


async def test_it_serves_until_it_is_shut_down(stage, autojump_clock):
    """The task ends after shutdown(), when plugins are down, and the nursery with it."""
    stage.plugin("plugin")
    stage.says(say("hello"))
    async with trio.open_nursery() as nursery:
        agent = await nursery.start(stage.builder().serve)
        async with await agent.new_session() as session:
            assert "hello" == (await (await session.send_message("go")).result()).text
        await agent.shutdown()
        assert "plugin ended" == stage.log[-1]

    with pytest.raises(AgentClosed):
        await agent.new_session()


async def test_shutdown_closes_the_open_session_in_the_orderly_way(stage, autojump_clock):
    """A session that is open at shutdown gets its SessionEnd hook, and its turn is cancelled."""
    stage.on(SessionEnd)
    stage.says([TextDelta("a"), 60.0, Done()])
    async with trio.open_nursery() as nursery:
        agent = await nursery.start(stage.builder().serve)
        session = await agent.new_session()
        turn = await session.send_message("go")
        await trio.sleep(1)
        await agent.shutdown()

    assert "agent_shutdown" == (await stage.events(turn))[-1].reason
    assert ["SessionEnd begins", "SessionEnd ended"] == stage.log


async def test_the_nursery_s_cancel_is_the_host_s(stage, autojump_clock):
    """Cancelling the nursery stops hard: tools get the grace, the nursery ends, no SessionEnd hook runs."""
    write = stage.tool("write", takes=3.0)
    stage.on(SessionEnd)
    stage.says(calls("write"))
    with stage.takes(3):
        async with trio.open_nursery() as nursery:
            agent = await nursery.start(stage.builder().serve)
            session = await agent.new_session()
            turn = await session.send_message("go")
            await trio.sleep(1)
            nursery.cancel_scope.cancel("the host ends")

    assert (1, []) == (write.finished, stage.log)
    assert "host_cancelled" == (await turn.result()).error.message.split("(")[1].split(")")[0]
    await session.close()


async def test_an_entry_that_fails_is_raised_by_start(stage, autojump_clock):
    """A plugin that fails: start() raises it bare, and the host's nursery goes on."""

    async def raises():
        raise ValueError("not today")

    stage.plugin("bad", starting=raises)
    async with trio.open_nursery() as nursery:
        with pytest.raises(PluginInitFailed, match="not today"):
            await nursery.start(stage.builder().serve)


async def test_a_cancelled_start_leaves_nothing(stage, autojump_clock):
    """start() cancelled while a plugin is initialised: the plugins before it are shut down, and start() returns."""

    async def sleeps(_=None):
        await trio.sleep(60)

    stage.plugin("first")
    stage.plugin("slow", starting=sleeps)
    async with trio.open_nursery() as nursery:
        with stage.takes(6), trio.move_on_after(1) as scope:
            await nursery.start(stage.builder().serve)
        assert scope.cancelled_caught

    assert ["first begins", "slow begins", "first ends", "first ended"] == stage.log


async def test_two_agents_of_one_nursery(stage, autojump_clock):
    """Two agents concurrently have nothing to do with each other."""
    other = type(stage)()
    stage.says([2.0, *say("slow")])
    other.says(say("fast"))
    async with trio.open_nursery() as nursery:
        agents = [await nursery.start(each.builder().serve) for each in (stage, other)]
        sessions = [await agent.new_session() for agent in agents]
        turns = [await session.send_message("go") for session in sessions]
        await agents[1].shutdown()
        with stage.takes(2):
            assert "slow" == (await turns[0].result()).text
        await agents[0].shutdown()

"""An agent as a task of the host's nursery: ``await nursery.start(builder.serve)`` (semantics 1.1, 6.2)."""

from __future__ import annotations

import pytest
import trio
from youyou import AgentClosed, Done, PluginInitFailed, SessionEnd, TextDelta
from youyou.testing.agents.scripted import calls, say


async def test_it_serves_until_it_is_shut_down(conversation, autojump_clock):
    """The task ends after shutdown(), when plugins are down, and the nursery with it."""
    conversation.plugin("plugin")
    conversation.says(say("hello"))
    async with trio.open_nursery() as nursery:
        agent = await nursery.start(conversation.builder().serve)
        async with await agent.new_session() as session:
            assert "hello" == (await (await session.send_message("go")).result()).text
        await agent.shutdown()
        assert "plugin ended" == conversation.log[-1]

    with pytest.raises(AgentClosed):
        await agent.new_session()


async def test_shutdown_closes_the_open_session_in_the_orderly_way(conversation, autojump_clock):
    """A session that is open at shutdown gets its SessionEnd hook, and its turn is cancelled."""
    conversation.on(SessionEnd)
    conversation.says([TextDelta("a"), 60.0, Done()])
    async with trio.open_nursery() as nursery:
        agent = await nursery.start(conversation.builder().serve)
        session = await agent.new_session()
        turn = await session.send_message("go")
        await trio.sleep(1)
        await agent.shutdown()

    assert "agent_shutdown" == (await conversation.events(turn))[-1].reason
    assert ["SessionEnd begins", "SessionEnd ended"] == conversation.log


async def test_the_nursery_s_cancel_is_the_host_s(conversation, autojump_clock):
    """Cancelling the nursery stops hard: tools get the grace, the nursery ends, no SessionEnd hook runs."""
    write = conversation.tool("write", takes=3.0)
    conversation.on(SessionEnd)
    conversation.says(calls("write"))
    with conversation.takes(3):
        async with trio.open_nursery() as nursery:
            agent = await nursery.start(conversation.builder().serve)
            session = await agent.new_session()
            turn = await session.send_message("go")
            await trio.sleep(1)
            nursery.cancel_scope.cancel("the host ends")

    assert (1, []) == (write.finished, conversation.log)
    assert "host_cancelled" == (await turn.result()).error.message.split("(")[1].split(")")[0]
    await session.close()


async def test_an_entry_that_fails_is_raised_by_start(conversation, autojump_clock):
    """A plugin that fails: start() raises it bare, and the host's nursery goes on."""

    async def raises():
        raise ValueError("not today")

    conversation.plugin("bad", starting=raises)
    async with trio.open_nursery() as nursery:
        with pytest.raises(PluginInitFailed, match="not today"):
            await nursery.start(conversation.builder().serve)


async def test_a_cancelled_start_leaves_nothing(conversation, autojump_clock):
    """start() cancelled while a plugin is initialised: the plugins before it are shut down, and start() returns."""

    async def sleeps(_=None):
        await trio.sleep(60)

    conversation.plugin("first")
    conversation.plugin("slow", starting=sleeps)
    async with trio.open_nursery() as nursery:
        with conversation.takes(6), trio.move_on_after(1) as scope:
            await nursery.start(conversation.builder().serve)
        assert scope.cancelled_caught

    assert ["first begins", "slow begins", "first ends", "first ended"] == conversation.log


async def test_two_agents_of_one_nursery(conversation, autojump_clock):
    """Two agents concurrently have nothing to do with each other."""
    other = type(conversation)()
    conversation.says([2.0, *say("slow")])
    other.says(say("fast"))
    async with trio.open_nursery() as nursery:
        agents = [await nursery.start(each.builder().serve) for each in (conversation, other)]
        sessions = [await agent.new_session() for agent in agents]
        turns = [await session.send_message("go") for session in sessions]
        await agents[1].shutdown()
        with conversation.takes(2):
            assert "slow" == (await turns[0].result()).text
        await agents[0].shutdown()

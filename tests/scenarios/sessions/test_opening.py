"""A session that is cancelled or overtaken while it opens leaves nothing behind (semantics 6.3)."""

from __future__ import annotations

import pytest
import trio
from youyou import AgentClosed, InvalidConfig, InvalidInput, SessionStart


async def sleeps_2(_):
    await trio.sleep(2)


@pytest.mark.parametrize("how", ["new", "resumed"])
async def test_a_cancelled_opening_leaves_nothing(how, stage, autojump_clock):
    """new_session cancelled during its hook, or resume_session while it loads: the slot is free at once."""
    stage.on(SessionStart, sleeps_2)
    async with stage.agent() as agent:
        async with await agent.new_session() as stored:
            pass
        stage.store.delay = 3.0
        with stage.takes(1), trio.move_on_after(1):
            await (agent.new_session() if how == "new" else agent.resume_session(stored.id))
        await trio.testing.wait_all_tasks_blocked()
        with stage.takes(2):
            session = await agent.new_session()
        await session.close()


@pytest.mark.parametrize("passes", range(12))
async def test_a_new_session_cancelled_at_any_step(passes, stage, autojump_clock):
    """Whatever scheduler step a cancel falls on, the block of a new session is left in order, or there is none."""
    async with stage.agent() as agent, trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def cancel_after_some_steps():
            for _ in range(passes):
                await trio.lowlevel.checkpoint()
            scope.cancel("on purpose")

        nursery.start_soon(cancel_after_some_steps)
        with scope:
            async with await agent.new_session():
                pass
        await trio.testing.wait_all_tasks_blocked()
        async with await agent.new_session():
            pass


async def test_shutdown_during_opening(stage, autojump_clock):
    """An agent that is shut down while a session opens: the hook finishes, anyone who asked gets AGENT_CLOSED."""
    stage.on(SessionStart, sleeps_2)
    async with stage.agent() as agent, trio.open_nursery() as nursery:

        async def asks():
            with pytest.raises(AgentClosed):
                await agent.new_session()

        nursery.start_soon(asks)
        await trio.sleep(1)
        with stage.takes(1):
            await agent.shutdown()

    assert ["SessionStart begins", "SessionStart ended"] == stage.log


@pytest.mark.parametrize("config", [{}, "m", 5, False], ids=repr)
async def test_a_session_takes_a_session_config_only(config, stage, autojump_clock):
    """What is not a `SessionConfig` is refused, also where it is falsy; the slot stays free."""
    async with stage.agent() as agent:
        with pytest.raises(InvalidConfig, match="pass SessionConfig"):
            await agent.new_session(config)
        async with await agent.new_session():
            pass


@pytest.mark.parametrize("session_id", [None, 5, b"id", ["id"]], ids=repr)
async def test_an_id_is_a_string(session_id, stage, autojump_clock):
    """Resuming what is not an id, as after a look-up that found nothing, is refused and opens no new session."""
    async with stage.agent() as agent:
        with pytest.raises(InvalidInput, match="pass the string"):
            await agent.resume_session(session_id)
        async with await agent.new_session():
            pass

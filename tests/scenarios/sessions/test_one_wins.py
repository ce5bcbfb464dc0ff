"""One session per agent, one turn per session: of fifty that ask at once, one wins (semantics 6.3)."""

from __future__ import annotations

from collections import Counter

import trio
from youyou import AgentError, Done, ErrorCode, SessionStart, TextDelta, TurnStatus
from youyou.testing.agents.scripted import say

FIFTY = 50


async def race(ask):
    """What came of fifty tasks asking at once: the winners, and the codes of the others."""
    won, lost = [], Counter()

    async def runner():
        try:
            won.append(await ask())
        except AgentError as error:
            lost[error.code] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(FIFTY):
            nursery.start_soon(runner)
    return won, lost


async def test_fifty_new_sessions(stage, autojump_clock):
    """One opens, the others get SESSION_BUSY at once, though opening takes a while; after it closes one more may."""

    async def sleeps_2(_):
        await trio.sleep(2)

    stage.on(SessionStart, sleeps_2)
    async with stage.agent() as agent:
        for _ in range(2):
            with stage.takes(2):
                (session,), lost = await race(agent.new_session)
            assert {ErrorCode.SESSION_BUSY: FIFTY - 1} == lost
            await session.close()


async def test_fifty_resumed_sessions(stage, autojump_clock):
    """The same for resume_session; new and resumed sessions compete for the same slot."""
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            pass
        (resumed,), lost = await race(lambda: agent.resume_session(session.id))
        assert {ErrorCode.SESSION_BUSY: FIFTY - 1} == lost
        won, lost = await race(agent.new_session)
        assert ([], {ErrorCode.SESSION_BUSY: FIFTY}) == (won, lost)
        await resumed.close()


async def test_fifty_messages(stage, autojump_clock):
    """One turn starts, the others get TURN_BUSY; after its terminal event is queued exactly one more can win."""
    stage.says([TextDelta("one"), 1.0, Done()], [TextDelta("two"), 1.0, Done()])
    async with stage.session() as session:
        for text in ("one", "two"):
            (turn,), lost = await race(lambda: session.send_message("go"))
            assert {ErrorCode.TURN_BUSY: FIFTY - 1} == lost
            assert (TurnStatus.COMPLETED, text) == ((await turn.result()).status, turn._turn.result().text)

    assert ["user: go", "assistant: one", "user: go", "assistant: two"] == stage.stored()


async def test_busy_ends_with_the_terminal_event(stage, autojump_clock):
    """Anyone who has read the terminal event may send the next message at once."""
    stage.says(*[say("hello")] * 20)
    async with stage.session() as session:
        for _ in range(20):
            async for event in await session.send_message("go"):
                last = event
            assert TurnStatus.COMPLETED == last.payload.status

    assert 20 == len(stage.facts("turn_ended"))


async def test_fifty_cancels(stage, autojump_clock):
    """Fifty tasks cancel one turn: all are told that it is cancelled, and it ends once."""
    stage.says([60.0, Done()])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)

        async def cancel():
            await trio.lowlevel.checkpoint()
            return turn.cancel()

        won, lost = await race(cancel)
        assert ([True] * FIFTY, {}) == (won, lost)
        await stage.events(turn)


async def test_fifty_race_a_shutdown(stage, autojump_clock):
    """Fifty tasks open sessions while the agent shuts down: each is answered, and nothing is left open."""
    async with stage.agent() as agent, trio.open_nursery() as nursery:
        nursery.start_soon(agent.shutdown)
        with stage.takes(0):
            won, lost = await race(agent.new_session)
        for session in won:
            await session.close()

    assert FIFTY == len(won) + sum(lost.values())
    assert set(lost) <= {ErrorCode.SESSION_BUSY, ErrorCode.AGENT_CLOSED}

"""What a stop leaves behind: nothing that runs on, and nothing that did not happen (semantics 1, 6.1, 6.2)."""

from __future__ import annotations

import subprocess
import sys

import pytest
import trio
import youyou as y
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.core.retry import retry_delay_ms
from youyou.testing import InMemorySessionStorage, ScriptedProvider, calls, say


class Slow(InMemorySessionStorage):
    """Takes a while for each write."""

    async def save_events(self, session_id, events):
        await trio.sleep(0.2)
        await super().save_events(session_id, events)


async def cut_after(checkpoints, doing):
    """Whether ``doing`` was cancelled when it was cut after so many checkpoints; and what it gave."""
    answer = None
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cut():
                for _ in range(checkpoints):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

            nursery.start_soon(cut)
            answer = await doing()
            nursery.cancel_scope.cancel()
    return answer


async def test_a_message_whose_sending_was_cancelled_was_not_sent(building, autojump_clock):
    """Cut at each of its checkpoints: either there is a turn, or the message is nowhere."""
    for checkpoints in [*range(12)] * 10:  # tasks that are ready run in any order: try several
        store = Slow()
        builder = building(ScriptedProvider([say("ok")]), "scripted").register_session_storage(store)
        async with builder.build() as agent, await agent.new_session() as session:
            turn = await cut_after(checkpoints, lambda session=session: session.send_message("cut"))
            await trio.sleep(5)
            said = [e.payload for e in store.events(session.id) if isinstance(e.payload, y.UserMessage)]
            assert (1 if turn else 0) == len(said), f"after {checkpoints} checkpoints"
            assert bool(turn) == bool(session.history)


@pytest.mark.parametrize("checkpoints", range(12))
async def test_a_session_whose_opening_was_cancelled_is_not_open(building, checkpoints, autojump_clock):
    """The next one opens at once, or as soon as the opening has been undone."""
    builder = building(ScriptedProvider([say("ok")]), "scripted").register_session_storage(Slow())
    async with builder.build() as agent:
        session = await cut_after(checkpoints, agent.new_session)
        if session is not None:
            await session.close()
        await trio.sleep(5)
        async with await agent.new_session() as session:
            assert "completed" == (await (await session.send_message("x")).result()).status


async def test_the_block_of_a_turn_that_is_left_by_a_cancellation_has_ended_what_it_began(building, autojump_clock):
    """No effect of its tool comes after the block, and the next message is accepted."""
    effects = []

    @y.tool
    async def slow() -> str:
        await trio.sleep(20)
        effects.append(trio.current_time())
        return "ok"

    provider = ScriptedProvider([calls("slow"), say("next")])
    builder = building(provider, "scripted", shutdown_grace_ms=1_000).register_tool(slow)
    async with builder.build() as agent, await agent.new_session() as session:
        started = trio.current_time()
        with trio.move_on_after(0.5):
            async with await session.send_message("first") as turn:
                async for _ in turn:
                    pass
        left = trio.current_time() - started
        second = await (await session.send_message("next")).result()
        await trio.sleep(100)

    assert (1.5, []) == (left, effects)
    assert ("cancelled", "completed") == (turn.status, second.status)
    assert ["unknown"] == [each.outcome for each in (await turn.result()).tool_results]


async def test_a_message_may_bring_the_grace_of_its_block(building, autojump_clock):
    """``send_message(..., grace=s)`` says how long a block that is left waits for tools."""

    @y.tool
    async def slow() -> str:
        await trio.sleep(20)
        return "ok"

    builder = building(ScriptedProvider([calls("slow"), say("next")]), "scripted").register_tool(slow)
    async with builder.build() as agent, await agent.new_session() as session:
        started = trio.current_time()
        with trio.move_on_after(0.5):
            async with await session.send_message("first", grace=0.25) as turn:
                await turn.result()
        assert 0.75 == trio.current_time() - started


async def test_the_block_of_a_session_that_is_left_by_a_cancellation_frees_the_slot(building, autojump_clock):
    """Its turn has ended, and another session opens at once."""

    @y.tool
    async def slow() -> str:
        await trio.sleep(20)
        return "ok"

    provider = ScriptedProvider([calls("slow"), say("next")])
    builder = building(provider, "scripted", shutdown_grace_ms=1_000).register_tool(slow)
    async with builder.build() as agent:
        with trio.move_on_after(0.5):
            async with await agent.new_session() as session:
                await (await session.send_message("first")).result()
        async with await agent.new_session() as session:
            assert "completed" == (await (await session.send_message("next")).result()).status


async def test_a_cancel_with_grace_waits_for_a_locked_database_for_a_stated_time(building, tmp_path):
    """The terminal event comes after the grace and ``closing_ms``, and says that the end is not stored yet."""
    path = tmp_path / "busy.db"
    lock = (
        f"import sqlite3; c = sqlite3.connect({str(path)!r}); c.execute('BEGIN EXCLUSIVE'); print(flush=True); input()"
    )
    builder = building(ScriptedProvider([say("ok"), say("ok")]), "scripted", closing_ms=500)
    builder.register_session_storage(SQLiteSessionStorage(path))
    async with builder.build() as agent, await agent.new_session() as session:
        await (await session.send_message("one")).result()
        other = subprocess.Popen([sys.executable, "-c", lock], stdin=-1, stdout=-1)  # noqa: ASYNC220  its pipes are read in a thread
        try:
            await trio.to_thread.run_sync(other.stdout.readline)
            turn = await session.send_message("two")
            turn.cancel(grace=0)
            with trio.fail_after(4):
                result = await turn.result()
        finally:
            other.kill()
            other.communicate()
    assert "cancelled" == result.status
    assert "not stored" in str(result.error)


@pytest.mark.parametrize("retry_after_ms", [10**12, 3_600_001])
async def test_a_wait_that_a_server_asks_for_has_a_limit(building, model, retry_after_ms, autojump_clock):
    """The turn fails at once and names the figure."""

    async def answer(request):
        yield y.ChatError("busy", retryable=True, retry_after_ms=retry_after_ms)

    started = trio.current_time()
    builder = building(model(answer), retry=y.RetryPolicy(attempts=3, max_ms=2_000))
    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("x")).result()

    assert ("failed", 0) == (result.status, trio.current_time() - started)
    assert str(retry_after_ms) in str(result.error)


def test_jitter_never_exceeds_the_maximum():
    """``max_ms`` is the maximum, whatever chance says."""
    policy = y.RetryPolicy(base_ms=1000, max_ms=2000, jitter=0.1)

    assert 2000 == max(
        retry_delay_ms(policy, attempt, None, chance / 10) for attempt in range(1, 9) for chance in range(11)
    )

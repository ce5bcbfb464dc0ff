"""A host waits until a turn stands where it wants it, without reading its events (semantics 6)."""

from __future__ import annotations

import pytest
import trio
from youyou import TurnStatus, WouldDeadlock
from youyou.testing import calls, say


async def test_a_queued_turn_that_begins_is_noticed(stage, autojump_clock):
    """It leaves the queue when the one before it is over."""
    stage.tool("look", takes=3.0)
    stage.says(calls("look"), say("one"), say("two"))
    async with stage.session() as session:
        await session.send_message("go")
        second = await session.send_message("next", queue=True)
        with stage.takes(3):
            assert TurnStatus.QUEUED is await second.wait_status(TurnStatus.QUEUED)
            await second.wait_status(TurnStatus.RUNNING)
        assert TurnStatus.COMPLETED is await second.wait_status()


async def test_the_end_is_the_answer_where_the_wanted_status_never_comes(stage, autojump_clock):
    """Nobody waits forever for a cancel that nobody asks for."""
    stage.says(say("hello"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        assert TurnStatus.COMPLETED is await turn.wait_status(TurnStatus.CANCELLING)


async def test_a_cancel_is_noticed_while_a_tool_still_runs(stage, autojump_clock):
    """The status is cancelling at once, and cancelled at the end."""
    stage.tool("write", takes=9.0, mutating=True)
    stage.says(calls("write"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await stage.tools["write"].started.wait()
        with stage.takes(0):
            turn.cancel()
            assert TurnStatus.CANCELLING is await turn.wait_status(TurnStatus.CANCELLING)
        with stage.takes(9):
            assert TurnStatus.CANCELLED is await turn.wait_status()


async def test_giving_up_the_wait_changes_nothing(stage, autojump_clock):
    """The turn goes on."""
    stage.tool("look", takes=3.0)
    stage.says(calls("look"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        with trio.move_on_after(1):
            await turn.wait_status()
        assert TurnStatus.COMPLETED is (await turn.result()).status


async def test_a_tool_that_waits_for_its_own_turn_is_refused(stage, autojump_clock):
    """It would wait for itself."""
    turns = []

    async def waits(_):
        with pytest.raises(WouldDeadlock):
            await turns[0].wait_status()
        return "refused"

    stage.tool("look", takes=1.0, does=waits)
    stage.says(calls("look"), say("done"))
    async with stage.session() as session:
        turns.append(await session.send_message("go"))
        assert TurnStatus.COMPLETED is await turns[0].wait_status()
    assert ["ok look"] == [line for line in stage.stored() if "look" in line][1:]

"""A message that waits in line for the running turn (semantics 13)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from youyou import Done, SessionClosed, TextDelta, TurnBusy, TurnCancelled, TurnStatus, UserInput
from youyou.testing import say


async def test_queued_messages_run_one_after_the_other(stage: Any, autojump_clock: Any) -> None:
    """In the order in which they were sent, each a turn of its own with its own events, numbered on."""
    stage.says(*[[TextDelta(text), 1.0, Done()] for text in ("1", "2", "3")])
    async with stage.session() as session:
        turns = [await session.send_message(text, queue=True) for text in ("a", "b", "c")]
        waiting = [turn.status for turn in turns]
        events = [[event async for event in turn] for turn in turns]

    assert [TurnStatus.RUNNING, TurnStatus.QUEUED, TurnStatus.QUEUED] == waiting
    assert ["user: a", "assistant: 1", "user: b", "assistant: 2", "user: c", "assistant: 3"] == stage.lines(
        session.history
    )
    numbers = [event.sequence for each in events for event in each]
    assert list(range(1, len(numbers) + 1)) == numbers


async def test_without_queue_a_second_message_is_refused(stage: Any, autojump_clock: Any) -> None:
    """While a turn runs, and while one waits, a plain message is TURN_BUSY; nothing of it is kept."""
    stage.says([1.0, *say("1")], [1.0, *say("2")])
    async with stage.session() as session:
        first = await session.send_message("a")
        second = await session.send_message("b", queue=True)
        with pytest.raises(TurnBusy, match="queue=True"):
            await session.send_message("c")
        await first.result()
        with pytest.raises(TurnBusy):
            await session.send_message("c")
        await second.result()

    assert 2 == len(stage.requests)


async def test_a_cancel_takes_a_turn_out_of_the_queue(stage: Any, autojump_clock: Any) -> None:
    """It ends at once, its input handed back, nothing of it stored; the others go on."""
    stage.says([5.0, *say("1")], say("3"))
    async with stage.session() as session:
        first = await session.send_message("a")
        second = await session.send_message("b", queue=True)
        third = await session.send_message("c", queue=True)
        before = trio.current_time()
        assert second.cancel()
        result = await second.result()
        took = trio.current_time() - before
        await first.result()
        await third.result()

    assert (0, TurnStatus.CANCELLED, (UserInput("b"),)) == (took, result.status, result.undelivered)
    assert ["user: a", "assistant: 1", "user: c", "assistant: 3"] == stage.lines(session.history)
    assert 2 == len(stage.facts("turn_started", session.id))


async def test_cancelling_the_running_turn_lets_the_next_one_run(stage: Any, autojump_clock: Any) -> None:
    """A cancel is a turn's, not the queue's."""
    stage.says([5.0, *say("1")], say("2"))
    async with stage.session() as session:
        first = await session.send_message("a")
        second = await session.send_message("b", queue=True)
        await trio.sleep(1)
        first.cancel()
        result = await second.result()

    assert (TurnStatus.COMPLETED, "2") == (result.status, result.text)


async def test_closing_hands_back_what_waits(stage: Any, autojump_clock: Any) -> None:
    """The running turn and those in line are cancelled; the input of each that waited comes back."""
    stage.says([5.0, *say("1")])
    async with stage.session() as session:
        turns = [await session.send_message(text, queue=True) for text in ("a", "b", "c")]
        await trio.sleep(1)
        await session.close()
        with pytest.raises(SessionClosed):
            await session.send_message("d", queue=True)
        ends = [[event.payload async for event in turn][-1] for turn in turns]

    assert [(), (UserInput("b"),), (UserInput("c"),)] == [end.undelivered for end in ends]
    assert [("session_closed", TurnCancelled)] * 3 == [(end.reason, type(end)) for end in ends]

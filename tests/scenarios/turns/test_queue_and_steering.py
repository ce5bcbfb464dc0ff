"""Messages for later: queued behind a running turn, or steered into it; delivered or handed back, never lost (13)."""

from __future__ import annotations

import pytest
import trio
from youyou import Done, ErrorCode, ProviderError, TextDelta, TurnBusy, TurnEnd, TurnStatus, UserInput
from youyou.testing.agents.scripted import calls, say


def texts(inputs):
    return [block.text for each in inputs for block in each.content]


# queued


async def test_a_queued_message_waits_for_the_running_turn(stage, autojump_clock):
    """queue=True while a turn runs: a turn that is QUEUED, and starts when the other has ended."""
    stage.says([TextDelta("one"), 2.0, Done()], say("two"), say("three"))
    async with stage.session() as session:
        first = await session.send_message("1")
        second = await session.send_message("2", queue=True)
        third = await session.send_message("3", queue=True)
        assert [TurnStatus.RUNNING, TurnStatus.QUEUED, TurnStatus.QUEUED] == [first.status, second.status, third.status]
        with stage.takes(2):
            assert "three" == (await third.result()).text

    lines = ["user: 1", "assistant: one", "user: 2", "assistant: two", "user: 3", "assistant: three"]
    assert lines == stage.stored()


async def test_queueing_when_nothing_runs_starts_at_once(stage, autojump_clock):
    """queue=True without a running turn is an ordinary message."""
    stage.says(say("one"))
    async with stage.session() as session:
        turn = await session.send_message("1", queue=True)
        assert TurnStatus.RUNNING == turn.status
        assert "one" == (await turn.result()).text


async def test_without_queue_a_message_is_refused_while_others_wait(stage, autojump_clock):
    """A message that does not queue does not overtake those that do."""
    stage.says([1.0, *say("one")], [1.0, *say("two")])
    async with stage.session() as session:
        first = await session.send_message("1")
        second = await session.send_message("2", queue=True)
        await first.result()
        with pytest.raises(TurnBusy):
            await session.send_message("3")
        assert "two" == (await second.result()).text


async def test_a_queued_turn_that_is_cancelled_is_handed_back(stage, autojump_clock):
    """Cancelled in the queue: it ends at once, its input is undelivered and stands neither in history nor store."""
    stage.says([2.0, *say("one")], say("three"))
    async with stage.session() as session:
        first = await session.send_message("1")
        second = await session.send_message("2", queue=True)
        third = await session.send_message("3", queue=True)
        assert second.cancel()
        with stage.takes(0):
            events = [event.payload async for event in second]
        assert TurnStatus.CANCELLED == second.status
        assert TurnStatus.RUNNING == first.status
        await third.result()

    assert (1, ["2"]) == (len(events), texts(events[-1].undelivered))
    assert ["user: 1", "assistant: one", "user: 3", "assistant: three"] == stage.stored()


@pytest.mark.parametrize("way", ["close", "shutdown"])
async def test_closing_hands_back_what_waits(way, stage, autojump_clock):
    """A session that ends: the running turn's input is kept, that of the queued ones is handed back."""
    stage.says([60.0, Done()])
    async with stage.agent() as agent:
        session = await agent.new_session()
        turns = [await session.send_message(text, queue=True) for text in "123"]
        await trio.sleep(1)
        await (session.close() if way == "close" else agent.shutdown())
        results = [await turn.result() for turn in turns]

    assert [[], ["2"], ["3"]] == [texts(result.undelivered) for result in results]
    assert [TurnStatus.CANCELLED] * 3 == [result.status for result in results]
    assert ["user: 1"] == stage.stored()


async def test_the_host_s_cancel_hands_back_what_waits(stage, autojump_clock):
    """The same when the host is cancelled."""
    stage.says([60.0, Done()])
    turns = []
    with trio.move_on_after(1):
        async with stage.session() as session:
            turns += [await session.send_message(text, queue=True) for text in "12"]
            await trio.sleep_forever()
    results = [await turn.result() for turn in turns]

    assert [[], ["2"]] == [texts(result.undelivered) for result in results]


async def test_a_queued_turn_starts_after_a_failed_or_cancelled_one(stage, autojump_clock):
    """However the running turn ends, the next one starts."""
    stage.says([1.0, ProviderError("no", retryable=False)], [60.0], say("three"))
    async with stage.session() as session:
        first, second, third = [await session.send_message(text, queue=True) for text in "123"]
        await first.result()
        await trio.sleep(1)
        second.cancel()
        assert (TurnStatus.COMPLETED, "three") == ((await third.result()).status, third._turn.result().text)


async def test_a_cancelled_sender_leaves_no_turn(stage, autojump_clock):
    """Cancelled at any step of sending and entering a turn's block: no turn runs on, and the next is not busy."""
    stage.says(*[[30.0, Done()]] * 10)
    async with stage.session() as session, trio.open_nursery() as nursery:
        for passes in range(10):
            scope = trio.CancelScope()

            async def cancel_after_some_steps(scope=scope, passes=passes):
                for _ in range(passes):
                    await trio.lowlevel.checkpoint()
                scope.cancel("on purpose")

            nursery.start_soon(cancel_after_some_steps)
            with scope:
                async with await session.send_message("go"):
                    await trio.sleep(60)
            await trio.testing.wait_all_tasks_blocked()
        await session.send_message("last")


# steered


async def test_a_steered_message_is_delivered_before_the_next_request(stage, autojump_clock):
    """steer() during a tool: the message stands after the tool's result in the next request, and is stored."""
    stage.tool("look", takes=2.0)
    stage.says(calls("look"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer("and hurry")
        result = await turn.result()

    assert () == result.undelivered
    sent = stage.lines(stage.provider.requests[1].messages)
    assert ["user: go", "call look", "ok look", "user: and hurry"] == sent
    assert [*sent, "assistant: done"] == stage.stored()


async def test_a_message_steered_into_the_last_answer_gets_a_round_of_its_own(stage, autojump_clock):
    """steer() while the last answer streams: the turn goes on for another round with the message."""
    stage.says([TextDelta("one"), 2.0, Done()], say("two"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer(UserInput("wait"))
        result = await turn.result()

    assert (TurnStatus.COMPLETED, "two", ()) == (result.status, result.text, result.undelivered)
    assert ["user: go", "assistant: one", "user: wait", "assistant: two"] == stage.stored()


@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_a_steered_message_that_came_too_late_is_handed_back(end, stage, autojump_clock):
    """Accepted, but the turn ends before it was delivered: it stands in ``undelivered`` of event and result."""
    stage.says([TextDelta("one"), 2.0, ProviderError("no", retryable=False)])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer("a") and turn.steer("b")
        if end == "cancelled":
            turn.cancel()
        terminal = (await stage.events(turn))[-1]
        result = await turn.result()

    assert (["a", "b"], end) == (texts(terminal.undelivered), result.status)
    assert result.undelivered == terminal.undelivered
    assert ["user: go", f"assistant: one [{end}]"] == stage.stored()


async def test_steering_a_decided_turn_is_refused(stage, autojump_clock):
    """Once the outcome is decided steer() returns False and takes nothing: during TurnEnd, and after the end."""

    async def sleeps_2(_):
        await trio.sleep(2)

    stage.on(TurnEnd, sleeps_2)
    stage.says(say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert not turn.steer("too late")
        result = await turn.result()
        assert not turn.steer("far too late")

    assert () == result.undelivered
    assert ["user: go", "assistant: done"] == stage.stored()


async def test_steering_a_cancelled_turn_is_refused(stage, autojump_clock):
    """A turn that is cancelled takes no message, though its tools still run."""
    stage.tool("look", takes=2.0)
    stage.says(calls("look"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        assert not turn.steer("too late")
        assert () == (await turn.result()).undelivered


async def test_steering_a_queued_turn(stage, autojump_clock):
    """A message steered into a turn that waits goes out with its first request, or is handed back with its input."""
    stage.says([1.0, *say("one")], say("two"))
    async with stage.session() as session:
        await session.send_message("1")
        second = await session.send_message("2", queue=True)
        third = await session.send_message("3", queue=True)
        assert second.steer("2b") and third.steer("3b")
        third.cancel()
        assert ["3", "3b"] == texts((await third.result()).undelivered)
        await second.result()

    assert ["user: 1", "assistant: one", "user: 2", "user: 2b"] == stage.lines(stage.provider.requests[1].messages)


async def test_a_steered_input_is_checked(stage, autojump_clock):
    """steer() refuses what send_message would refuse."""
    stage.says([1.0, *say("one")])
    async with stage.session() as session:
        turn = await session.send_message("go")
        with pytest.raises(Exception) as caught:
            turn.steer("")
        await turn.result()

    assert ErrorCode.INVALID_INPUT == caught.value.code


@pytest.mark.parametrize("moment", [step / 4 for step in range(20)])
async def test_events_of_handed_back_turns_are_numbered_too(moment, stage, autojump_clock):
    """Whenever a queued turn is cancelled, the session's events have numbers of their own, also after a resume."""
    stage.store.delay = 1.0
    stage.says(say("one"), say("two"), say("three"))
    numbers = []
    async with stage.agent() as agent:
        session = await agent.new_session()
        turns = [await session.send_message(text, queue=True) for text in "12"]
        await trio.sleep(moment)
        turns[1].cancel()
        for turn in turns:
            numbers += [event.sequence async for event in turn]
        await session.close()
        session = await agent.resume_session(session.id)
        numbers += [event.sequence async for event in await session.send_message("3")]
        await session.close()

    assert list(range(1, len(numbers) + 1)) == sorted(numbers)

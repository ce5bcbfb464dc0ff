"""The event stream ends in time, with one terminal event, whatever stops the turn or reads it (semantics 6)."""

from __future__ import annotations

import gc

import pytest
import trio
from youyou import BeforeToolUse, Done, TextDelta, ToolCallEnd, TurnCancelled, TurnComplete, TurnEnd, TurnStatus
from youyou.testing.agents.scripted import calls, say


async def raises(_):
    raise ValueError("on purpose")


async def test_the_stream_ends_within_a_second_of_a_cancel(stage, autojump_clock):
    """A reader that waits for events when the turn is cancelled gets the terminal event at once, and the end."""
    stage.says([TextDelta("a"), 60.0, Done()])
    async with stage.session() as session, trio.open_nursery() as nursery:
        turn = await session.send_message("go")

        async def read():
            with stage.takes(1):
                events = await stage.events(turn)
            assert [TextDelta, TurnCancelled] == [type(event) for event in events]

        nursery.start_soon(read)
        await trio.sleep(1)
        turn.cancel()


@pytest.mark.parametrize("where", ["tool", "before hook", "after hook"])
async def test_the_stream_ends_when_user_code_raises(where, stage, autojump_clock):
    """A tool or a hook that raises ends nothing but itself: the stream goes on to its one terminal event."""
    stage.tool("look", does=raises if where == "tool" else None)
    if where != "tool":
        stage.on(BeforeToolUse if where == "before hook" else TurnEnd, raises)
    stage.says(calls("look"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        with stage.takes(1, at_most=True):
            events = await stage.events(turn)

    assert events[-1].status == TurnStatus.COMPLETED
    assert (where == "after hook") == next(event.success for event in events if isinstance(event, ToolCallEnd))


async def test_raising_in_the_reader_s_loop_cancels_the_turn(stage, autojump_clock):
    """An exception out of the loop inside ``async with turn`` stops the turn; what is unread ends with one terminal."""
    stage.says([TextDelta("a"), 1.0, TextDelta("b"), 60.0, Done()])
    async with stage.session() as session:
        turn = await session.send_message("go")
        with pytest.raises(ValueError, match="on purpose"), stage.takes(1):
            async with turn:
                async for event in turn:
                    if event.payload == TextDelta("b"):
                        await raises(event)
        rest = [event.payload async for event in turn]

    assert [TurnCancelled] == [type(event) for event in rest]


async def test_leaving_the_block_of_a_finished_turn_cancels_nothing(stage, autojump_clock):
    """``async with turn`` read to its end leaves a completed turn."""
    stage.says(say("done"))
    async with stage.session() as session:
        async with await session.send_message("go") as turn:
            await stage.events(turn)
        result = await turn.result()

    assert result.status == TurnStatus.COMPLETED


# readers who do not read


async def test_a_slow_reader_slows_the_turn_and_memory_stays_bounded(stage, autojump_clock):
    """One event read of 100 000: the buffer holds no more than its size; cancel and the terminal event get through."""
    taken = 0

    async def many(request):
        nonlocal taken
        for number in range(100_000):
            taken += 1
            yield TextDelta(f"{number} ")

    stage.configure(event_buffer=16)
    stage.provider.chat = many
    async with stage.agent() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        async for _ in turn:
            break
        await trio.sleep(1)
        assert (agent.statistics().peak_events <= 17, taken <= 20) == (True, True)
        turn.cancel()
        with stage.takes(0):
            rest = [event.payload async for event in turn]

    assert [TextDelta("1 "), TurnCancelled] == [rest[0], type(rest[-1])]
    kept = "".join(event.text for event in rest[:-1])
    assert rest[-1].text == "0 " + kept
    assert len(rest) <= 20


async def test_a_paused_turn_ends_when_its_session_closes(stage, autojump_clock):
    """A reader that has stopped reading holds up neither close() nor the terminal event; nothing is dropped."""
    stage.configure(event_buffer=4)
    stage.says(say(*"abcdefghij"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        with stage.takes(0):
            await session.close()
        events = await stage.events(turn)

    assert events[-1].reason == "session_closed"
    assert events[-1].text == "".join(event.text for event in events[:-1])


async def test_a_completed_turn_that_cannot_report_still_closes(stage, autojump_clock):
    """A full buffer at the time of a TurnEnd problem: the turn waits for its reader, and close() frees it."""
    stage.configure(event_buffer=1)
    stage.on(TurnEnd, raises)
    stage.says(say("a"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        with stage.takes(0):
            await session.close()
        events = await stage.events(turn)

    assert events[-1].status == TurnStatus.COMPLETED


@pytest.mark.parametrize("how", ["detached", "dropped", "awaited"])
async def test_a_turn_whose_reader_is_gone_runs_to_its_end(how, stage, autojump_clock):
    """Detached, dropped before its first event, or awaited for its result: the turn ends and leaves no task."""
    stage.configure(event_buffer=2)
    stage.says(say(*"abcdefghij"))
    async with stage.agent() as agent, await agent.new_session() as session:
        idle = str(agent.tree()).count("\n")
        turn = await session.send_message("go")
        match how:
            case "detached":
                turn.detach()
            case "dropped":
                del turn
                gc.collect()
            case "awaited":
                assert (await turn.result()).text == "abcdefghij"
        await trio.sleep(1)
        assert stage.stored() == ["user: go", "assistant: abcdefghij"]
        assert idle == str(agent.tree()).count("\n")


async def test_a_detached_turn_can_be_cancelled(stage, autojump_clock):
    """cancel() works without a reader, and result() says so."""
    stage.says([TextDelta("a"), 60.0, Done()])
    async with stage.session() as session:
        turn = await session.send_message("go")
        turn.detach()
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(0):
            result = await turn.result()

    assert (result.status, result.text) == (TurnStatus.CANCELLED, "a")


async def test_waiting_for_the_result_takes_no_event_from_another_reader(stage, autojump_clock):
    """result() in one task while another reads: the reader gets every event."""
    stage.configure(event_buffer=2)
    stage.says([TextDelta("a"), 1.0, *map(TextDelta, "bcdef"), Done()])
    seen = []
    async with stage.session() as session, trio.open_nursery() as nursery:
        turn = await session.send_message("go")

        async def read():
            seen.extend(await stage.events(turn))

        nursery.start_soon(read)
        await trio.sleep(0.5)
        assert (await turn.result()).text == "abcdef"

    assert [*map(TextDelta, "abcdef"), TurnComplete] == [*seen[:-1], type(seen[-1])]


async def test_sequence_goes_on_over_turns_and_resume(stage, autojump_clock):
    """Events are numbered without a gap within a session: over completed and cancelled turns, and after a resume."""
    stage.says(say("a"), [TextDelta("b"), 60.0], say("c"))
    numbers = []
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            numbers += [event.sequence async for event in await session.send_message("1")]
            turn = await session.send_message("2")
            await trio.sleep(1)
            turn.cancel()
            numbers += [event.sequence async for event in turn]
        async with await agent.resume_session(session.id) as session:
            numbers += [event.sequence async for event in await session.send_message("3")]

    assert numbers == [1, 2, 3, 4, 5, 6]


async def test_a_result_that_is_awaited_beside_a_reader_does_not_wait_for_it(stage, nursery, autojump_clock):
    """The reader keeps what it has not read; the turn goes on past a full buffer."""
    stage.configure(event_buffer=2)
    stage.says([*map(TextDelta, "abcdef"), Done()])
    seen = []

    async def reads(turn):
        async for event in turn:
            seen.append(event.payload)
            await trio.sleep(10)

    async with stage.session() as session:
        turn = await session.send_message("go")
        nursery.start_soon(reads, turn)
        await trio.sleep(1)
        with stage.takes(0):
            assert "abcdef" == (await turn.result()).text
        await trio.sleep(100)

    assert "abcdef" == "".join(each.text for each in seen if isinstance(each, TextDelta))

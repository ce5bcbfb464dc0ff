"""A store that fails: said aloud, nothing skipped, order kept, no tool started unstored (semantics 7)."""

from __future__ import annotations

import pytest
import trio
from youyou import ErrorEvent, Metadata, StorageError, TextDelta, TurnComplete, UserMessage
from youyou.testing.agents.scripted import call, calls, say


def check_log(stage, session):
    """The store holds what the session holds, numbered without a gap."""
    events = stage.store.events(session.id)
    assert list(range(1, len(events) + 1)) == [event.seq for event in events]
    stored = [event.payload for event in events if not isinstance(event.payload, Metadata)]
    assert sorted(map(repr, stored)) == sorted(map(repr, session.history))


@pytest.fixture
def two_writes(stage):
    """Two mutating calls in one answer."""
    stage.tool("write", mutating=True)
    stage.says(calls(call("write", id="a"), call("write", id="b"), text="I will"), say("done"))
    return stage


@pytest.mark.parametrize("how", ["raises", "loses", "hangs"])
@pytest.mark.parametrize("nth", range(1, 9))
async def test_one_failed_write_fails_the_turn_and_loses_nothing(nth, how, two_writes, errors, autojump_clock):
    """Whichever write fails, in whichever way: it is said, the next turn works, and the store has caught up with it."""
    stage = two_writes
    stage.store.how = how
    stage.store.breaks = lambda number: number == nth
    stage.provider.answer = lambda _: say("hello again")
    async with stage.session() as session:
        turns = [await stage.payloads(session) for _ in range(3)]

    said = [errors(payloads) for payloads in turns]
    assert [["STORAGE_ERROR"]] == [codes for codes in said if codes]
    assert [] == said[2]
    assert all(isinstance(payloads[-1], TurnComplete) for payloads in turns)
    assert ("completed", "hello again") == (turns[2][-1].status, turns[2][-1].text)
    check_log(stage, session)
    assert stage.runs["write"] <= len(stage.facts("tool_started", session.id))


@pytest.mark.parametrize(("nth", "ran"), [(1, 0), (2, 0), (3, 0), (4, 1)])
async def test_no_tool_runs_unless_its_call_is_stored(nth, ran, two_writes, autojump_clock):
    """From the first write that fails on, no tool starts; the turn ends as failed and its calls are skipped."""
    stage = two_writes
    stage.store.breaks, stage.loses_log = (lambda number: number >= nth), True
    with pytest.raises(StorageError):
        async with stage.session() as session:
            result = await stage.turn(session)

    assert ("failed", "STORAGE_ERROR") == (result.status, result.error.code)
    assert ran == stage.runs["write"]
    assert len(result.skipped) == (2 - ran if nth > 2 else 0)


async def test_a_store_that_always_fails_is_said_at_each_turn_and_at_the_end(stage, errors, autojump_clock):
    """Every turn tells; closing frees the slot, then raises; the body's own work is not lost to memory."""
    stage.store.breaks = lambda _: True
    stage.provider.answer = lambda _: say("hello")
    async with stage.agent() as agent:
        session = await agent.new_session()
        said = [errors(await stage.payloads(session)) for _ in range(2)]
        with pytest.raises(StorageError, match="write"):
            await session.close()
        second = await agent.new_session()
        with pytest.raises(StorageError):
            await second.close()

    assert all(codes and set(codes) == {"STORAGE_ERROR"} for codes in said)


async def test_a_store_that_hangs_fails_after_its_time(stage, autojump_clock):
    """A write that never comes back is given up after ``storage_timeout_ms``, once per try."""
    stage.configure(storage_timeout_ms=5_000)
    stage.store.how, stage.store.breaks = "hangs", lambda number: number == 1
    stage.says(say("hello"))
    async with stage.session() as session:
        start = trio.current_time()
        result = await stage.turn(session)
        took = trio.current_time() - start

    assert ("failed", 5.0) == (result.status, took)
    assert "longer than 5 s" in result.error.message
    check_log(stage, session)


async def test_a_store_that_always_hangs_does_not_keep_a_session_open(stage, autojump_clock):
    """Turn, close and leaving each end within a few time-outs; the last one says what was not stored."""
    stage.configure(storage_timeout_ms=1_000)
    stage.store.how, stage.store.breaks = "hangs", lambda _: True
    start = trio.current_time()
    with pytest.raises(StorageError):
        async with stage.session() as session:
            assert "failed" == (await stage.turn(session)).status

    assert trio.current_time() - start <= 6


async def test_the_store_catches_up_at_the_end(stage, autojump_clock):
    """A store that works again by the time of closing holds the whole session, and nothing is raised."""
    broken = True
    stage.store.breaks = lambda _: broken
    stage.provider.answer = lambda _: say("hello")
    async with stage.session() as session:
        for _ in range(3):
            assert "failed" == (await stage.turn(session)).status
        broken = False

    check_log(stage, session)
    assert ["user: go"] * 3 == stage.stored(session.id)


async def test_a_failure_outside_a_turn_is_told_by_the_next_turn(stage, errors, autojump_clock):
    """A title that could not be stored is logged, told in the next turn, and stored then."""
    stage.store.breaks = lambda number: number == 2
    stage.provider.answer = lambda _: say("hello")
    async with stage.session() as session:
        await trio.sleep(1)
        await session.set_title("mine")
        await trio.sleep(1)
        said = await stage.payloads(session)

    assert ["STORAGE_ERROR"] == errors(said)
    assert "completed" == said[-1].status
    assert ["mine"] == stage.facts("title", session.id)
    check_log(stage, session)


async def test_a_failing_write_of_the_end_is_told_and_the_outcome_stays(stage, errors, autojump_clock):
    """The turn was completed; that its end is not stored is an error event before the terminal event."""
    stage.says([TextDelta("hello"), *say("!")])
    async with stage.session() as session:
        await trio.sleep(1)
        first = len(stage.store.batches)
        stage.store.breaks = lambda number: number == first + 2
        said = await stage.payloads(session)
        result_status = said[-1].status

    assert ["STORAGE_ERROR"] == errors(said)
    assert "completed" == result_status
    check_log(stage, session)


async def test_another_session_is_not_held_up_by_one_that_cannot_be_stored(stage, autojump_clock):
    """A store that refuses one session forever stores the next one of the same agent."""
    refused = []

    async def save(session_id, events):
        if session_id in refused:
            raise OSError("this one is damaged")
        await working(session_id, events)

    working, stage.store.save_events = stage.store.save_events, save
    stage.provider.answer = lambda _: say("hello")
    async with stage.agent() as agent:
        session = await agent.new_session()
        await trio.sleep(1)
        refused.append(session.id)
        assert "failed" == (await stage.turn(session)).status
        with pytest.raises(StorageError):
            await session.close()
        async with await agent.new_session() as second:
            assert "completed" == (await stage.turn(second)).status

    assert ["user: go", "assistant: hello"] == stage.stored(second.id)


async def test_a_failing_store_is_not_asked_again_and_again(stage, autojump_clock):
    """A failed batch is tried again with the next write, not at once: with two sessions waiting, too."""
    async with stage.agent() as agent:
        session = await agent.new_session()
        await trio.sleep(1)
        stage.store.breaks = lambda _: True
        await session.set_title("one")
        with pytest.raises(StorageError):
            await session.close()
        second = await agent.new_session()
        await second.set_title("two")
        before = len(stage.store.batches)
        await trio.sleep(100)
        after = len(stage.store.batches)
        stage.store.breaks = lambda _: False
        await second.close()

    assert after - before <= 3
    assert ["one"] == stage.facts("title", session.id)
    assert ["two"] == stage.facts("title", second.id)


async def test_another_session_s_success_is_worth_one_more_try(stage, autojump_clock):
    """What a closed session could not store is stored once the storage works for the next one."""
    async with stage.agent() as agent:
        session = await agent.new_session()
        await trio.sleep(1)
        stage.store.breaks = lambda _: True
        await session.set_title("one")
        with pytest.raises(StorageError):
            await session.close()
        stage.store.breaks = lambda _: False
        async with await agent.new_session():
            await trio.sleep(1)
            assert ["one"] == stage.facts("title", session.id)


async def test_what_is_not_stored_yet_is_not_lost_by_a_resume(stage, autojump_clock):
    """A session closed unsaved and resumed by the same agent goes on with all it had; the store catches up with it.

    Not while the store fails: resuming writes before it answers.
    """
    stage.provider.answer = lambda _: say("hello")
    async with stage.agent() as agent:
        session = await agent.new_session()
        await stage.turn(session, "one")
        stage.store.breaks = lambda _: True
        await stage.turn(session, "two")
        with pytest.raises(StorageError):
            await session.close()
        with pytest.raises(StorageError):
            await agent.resume_session(session.id)
        stage.store.breaks = lambda _: False
        again = await agent.resume_session(session.id)
        assert stage.lines(session.history) == stage.lines(again.history)
        assert "completed" == (await stage.turn(again, "three")).status
        await again.close()

    assert ["user: one", "assistant: hello", "user: two", "user: three", "assistant: hello"] == stage.lines(
        again.history
    )
    check_log(stage, again)


async def test_a_store_that_fails_to_load_says_so(stage, autojump_clock):
    """A failing load is the error of ``resume_session``; the slot is free."""
    stage.says(say("hello"))
    async with stage.session() as session:
        await stage.turn(session)

    async def fail(_):
        raise OSError("no disk")

    load, stage.store.load_session = stage.store.load_session, fail
    async with stage.agent() as agent:
        with pytest.raises(StorageError, match="no disk"):
            await agent.resume_session(session.id)
        stage.store.load_session = load
        async with await agent.resume_session(session.id) as again:
            assert tuple(session.history) == tuple(again.history)


async def test_a_store_that_does_not_answer_holds_up_a_resume_for_the_storage_time_out(stage, autojump_clock):
    """The agent goes on, and may try again."""
    stage.configure(storage_timeout_ms=5_000)
    await stage.keep("s", UserMessage("hello"))
    async with stage.agent() as agent:
        stage.store.delay = 1_000
        with stage.takes(5), pytest.raises(StorageError, match="loading took longer than 5 s"):
            await agent.resume_session("s")
        stage.store.delay = 0
        async with await agent.resume_session("s") as session:
            assert ["user: hello"] == stage.lines(session.history)


async def test_a_write_that_fails_after_a_cancel_is_said_once(stage, autojump_clock):
    """The outcome is decided, so it is an event: the result of the tool that ran is not stored yet."""
    stage.tool("write", takes=2.0, mutating=True)
    stage.says(calls("write"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        following = len(stage.store.batches) + 1
        stage.store.breaks = lambda number: number == following
        events = await stage.events(turn)

    assert ["STORAGE_ERROR"] == [event.error.code for event in events if isinstance(event, ErrorEvent)]
    assert ["user: go", "call write", "ok write"] == stage.stored()[:3]

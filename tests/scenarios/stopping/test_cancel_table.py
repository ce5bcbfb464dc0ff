"""The table of semantics 6.1, row by row: what a cancel does, depending on when it comes."""

from __future__ import annotations

import attrs
import pytest
import trio
from youyou import (
    AfterToolUse,
    BeforeCompact,
    BeforeToolUse,
    Done,
    ProviderError,
    RetryScheduled,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    TurnCancelled,
    TurnEnd,
    TurnStart,
    TurnStatus,
)
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, call, calls, say

NOTE = "note: [This message was interrupted: the user cancelled]"


async def never_ends(_):
    await trio.sleep_forever()


async def sleeps_2(_):
    await trio.sleep(2)


async def cancel_after(seconds, turn):
    await trio.sleep(seconds)
    assert turn.cancel()


# a hook runs


async def test_a_turn_start_hook_finishes_and_the_input_is_kept(stage, autojump_clock):
    """Cancelled during a TurnStart hook: the hook finishes, the user message is stored, no request is sent."""
    stage.on(TurnStart, sleeps_2)
    async with stage.session() as session:
        turn = await session.send_message("go")
        await cancel_after(1, turn)
        with stage.takes(1):
            result = await turn.result()

    assert result.status == TurnStatus.CANCELLED
    assert result.undelivered == ()
    assert stage.log == ["TurnStart begins", "TurnStart ended"]
    assert stage.stored() == ["user: go"]
    assert stage.provider.requests == []


async def test_a_before_tool_hook_finishes_and_its_tool_is_skipped(stage, autojump_clock):
    """Cancelled during a BeforeToolUse hook: the hook finishes, its tool is skipped, no later hook starts."""
    write = stage.tool("write")
    stage.on(BeforeToolUse, sleeps_2)
    stage.on(BeforeToolUse)
    stage.says(calls("write"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await cancel_after(1, turn)
        with stage.takes(1):
            result = await turn.result()

    assert result.skipped == ("write",)
    assert write.runs == []
    assert stage.log == ["BeforeToolUse begins", "BeforeToolUse ended"]


async def test_a_compaction_hook_finishes_and_nothing_is_compacted(stage, autojump_clock):
    """Cancelled during a BeforeCompact hook: it finishes, history is unchanged and no summary is asked for."""
    stage.provider = StrictProvider([say("x" * 900)], models=[attrs.evolve(SCRIPTED_MODEL, context_window=300)])
    stage.on(BeforeCompact, sleeps_2)
    async with stage.session() as session:
        await (await session.send_message("first")).result()
        turn = await session.send_message("second")
        await cancel_after(1, turn)
        with stage.takes(1):
            result = await turn.result()
        history = stage.lines(session.history)

    assert result.status == TurnStatus.CANCELLED
    assert stage.log == ["BeforeCompact begins", "BeforeCompact ended"]
    assert history == ["user: first", "assistant: " + "x" * 900, "user: second"]
    assert len(stage.provider.requests) == 1


@pytest.mark.parametrize("hook", [TurnStart, BeforeToolUse, AfterToolUse, TurnEnd])
async def test_a_hook_that_never_ends_is_cut_after_its_time(hook, stage, autojump_clock):
    """A hook that runs at the cancel has ``hook_timeout_ms`` from the cancel on, then it is cut."""
    stage.tool("write")
    stage.on(hook, never_ends)
    stage.configure(hook_timeout_ms=7_000)
    stage.says(calls("write"), [9.0, Done()] if hook is not TurnEnd else say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(7):
            await turn.result()


# the model streams


async def test_a_stream_is_closed_at_once_and_its_text_kept(stage, autojump_clock):
    """Cancelled while text streams: closed at once, the text so far is kept as incomplete and noted in requests."""
    stage.says([TextDelta("half"), 9.0, TextDelta(" lost"), Done()], say("next"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(0):
            events = await stage.events(turn)
        assert stage.provider.opened == stage.provider.closed
        await (await session.send_message("again")).result()

    assert [TextDelta("half"), TurnCancelled("cancelled", "half", (await turn.result()).usage)] == events
    sent = stage.lines(stage.provider.requests[1].messages)
    assert sent == ["user: go", "assistant: half [cancelled]", NOTE, "user: again"]


async def test_complete_calls_of_a_cut_stream_are_answered_as_skipped(stage, autojump_clock):
    """Calls that had arrived when the stream was cut are kept and answered; what was still arriving is dropped."""
    write = stage.tool("write")
    stage.says([TextDelta("I will"), call("write"), 9.0, call("write", id="late"), Done()], say("next"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        events = await stage.events(turn)
        await (await session.send_message("again")).result()

    assert events[-1].skipped == ("write",)
    assert not any(isinstance(event, ToolCallStart | ToolCallEnd) for event in events)
    assert write.runs == []
    sent = stage.lines(stage.provider.requests[1].messages)
    assert sent == ["user: go", "assistant: I will [cancelled]", "call write", "skipped write", NOTE, "user: again"]


# retry wait, compaction request


async def test_a_wait_for_a_retry_ends_at_once(stage, autojump_clock):
    """Cancelled while a retry waits: stopped at once, history unchanged."""
    stage.says([ProviderError("overloaded", retryable=True, retry_after_ms=60_000)])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(0):
            events = await stage.events(turn)

    assert [RetryScheduled, TurnCancelled] == [type(event) for event in events]
    assert stage.stored() == ["user: go"]
    assert len(stage.provider.requests) == 1


async def test_a_compaction_request_ends_at_once(stage, autojump_clock):
    """Cancelled while a summary is asked for: stopped at once, history unchanged, nothing said of a compaction."""
    window = attrs.evolve(SCRIPTED_MODEL, context_window=300)
    stage.provider = StrictProvider([say("x" * 900), [60.0, TextDelta("summary"), Done()]], models=[window])
    async with stage.session() as session:
        await (await session.send_message("first")).result()
        turn = await session.send_message("second")
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(0):
            events = await stage.events(turn)
        history = stage.lines(session.history)

    assert [TurnCancelled] == [type(event) for event in events]
    assert history == ["user: first", "assistant: " + "x" * 900, "user: second"]
    assert stage.facts("compaction") == []
    assert len(stage.provider.requests) == 2


# tools


async def test_running_read_only_tools_finish_and_queued_ones_are_skipped(stage, autojump_clock):
    """Cancelled while read-only tools run: those that run finish and are recorded, those in the queue are skipped."""
    stage.configure(max_concurrent_tools=2)
    tools = [stage.tool(name, takes=2.0) for name in ("a", "b", "c", "d")]
    stage.says(calls("a", "b", "c", "d"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(1):
            events = await stage.events(turn)

    ran = {tool.name for tool in tools if tool.finished}
    assert len(ran) == 2
    assert {"a", "b", "c", "d"} - ran == set(events[-1].skipped)
    assert events[-1].interrupted == ()
    assert ran == {event.call_id for event in events if isinstance(event, ToolCallEnd) and event.success}
    outcomes = [f"{'ok' if name in ran else 'skipped'} {name}" for name in "abcd"]
    assert outcomes == stage.lines(session.history)[-4:]


async def test_the_running_tool_of_a_serial_batch_finishes_and_later_ones_are_skipped(stage, autojump_clock):
    """Cancelled during the second of three mutating calls: two results, the third is skipped and never announced."""
    stage.tool("write", takes=2.0, mutating=True)
    stage.says(calls(*[call("write", id=name) for name in "abc"]))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(3)
        turn.cancel()
        with stage.takes(1):
            events = await stage.events(turn)

    assert [event.call_id for event in events if isinstance(event, ToolCallStart)] == ["a", "b"]
    assert events[-1].skipped == ("c",)
    lines = ["user: go", "call a", "call b", "call c", "ok a", "ok b", "skipped c"]
    assert lines == stage.lines(session.history)


async def test_a_tool_that_no_worker_has_taken_is_skipped(stage, autojump_clock):
    """Cancelled after the BeforeToolUse hook, while the call waits for a worker: it is skipped, and no hook follows."""
    stage.configure(max_concurrent_tools=1)
    slow = stage.tool("slow", takes=5.0)
    stage.on(BeforeToolUse)
    stage.on(AfterToolUse)
    stage.says(calls(call("slow", id="a"), call("slow", id="b")))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await slow.started.wait()
        await trio.testing.wait_all_tasks_blocked()
        turn.cancel()
        result = await turn.result()

    assert len(result.skipped) == 1
    assert len(slow.runs) == 1
    assert stage.log.count("BeforeToolUse ended") == 2
    assert stage.log.count("AfterToolUse begins") == 1


# storage is writing


async def test_a_write_finishes(stage, autojump_clock):
    """Cancelled while the store writes: the write finishes, nothing is lost, and no hook starts after it."""
    stage.store.delay = 2.0
    stage.on(BeforeCompact)
    stage.provider = StrictProvider([], models=[attrs.evolve(SCRIPTED_MODEL, context_window=300)])
    async with stage.session() as session:
        await trio.sleep(10)
        turn = await session.send_message("x" * 900)
        await trio.sleep(1)
        turn.cancel()
        events = await stage.events(turn)

    assert [TurnCancelled] == [type(event) for event in events]
    assert stage.stored() == ["user: " + "x" * 900]
    assert stage.provider.requests == []
    assert stage.log == []


# TurnEnd and AfterToolUse hooks


async def test_an_after_tool_hook_that_runs_is_not_cut(stage, autojump_clock):
    """A turn's first cancel does not cut an AfterToolUse hook."""
    stage.tool("write")
    stage.on(AfterToolUse, sleeps_2)
    stage.says(calls("write"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await cancel_after(1, turn)
        with stage.takes(1):
            await turn.result()

    assert stage.log == ["AfterToolUse begins", "AfterToolUse ended"]


async def test_after_hooks_run_after_a_cancel(stage, autojump_clock):
    """AfterToolUse of the tool that finished and TurnEnd run after the cancel; TurnEnd is told of it."""
    told = []
    stage.tool("write", takes=2.0)
    stage.on(AfterToolUse, sleeps_2)

    async def note(event):
        told.append(event.status)

    stage.on(TurnEnd, note)
    stage.says(calls("write"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await cancel_after(1, turn)
        with stage.takes(3):
            await turn.result()

    assert told == [TurnStatus.CANCELLED]
    ran = ["AfterToolUse begins", "AfterToolUse ended", "TurnEnd begins", "TurnEnd ended"]
    assert ran == stage.log


async def test_a_turn_end_hook_of_a_completed_turn_is_not_cut(stage, autojump_clock):
    """A cancel during TurnEnd comes too late: it returns False, the hook finishes and the turn is completed."""
    stage.on(TurnEnd, sleeps_2)
    stage.says(say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert not turn.cancel()
        with stage.takes(1):
            result = await turn.result()

    assert result.status == TurnStatus.COMPLETED
    assert stage.log == ["TurnEnd begins", "TurnEnd ended"]

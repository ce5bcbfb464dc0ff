"""What history, log and next request hold after a cancelled turn (semantics 5, 6.1)."""

from __future__ import annotations

import pytest
import trio
from youyou import Done, ProviderError, ReasoningDelta, TextDelta, TurnStatus
from youyou.testing.agents.scripted import call, calls, say

NOTE = "note: [This message was interrupted: the user cancelled]"
FAILED_NOTE = "note: [This message was interrupted by an error]"


async def test_a_cancelled_call_is_answered_in_the_next_request(stage, autojump_clock):
    """Cancelled while the only tool runs: the next request holds its one result, and the text that was sent."""
    stage.tool("look", takes=2.0)
    stage.says(calls("look"), say("hello"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        result = await (await turn_after(turn, session, "hi")).result()

    assert result.text == "hello"
    sent = stage.lines(stage.provider.requests[1].messages)
    assert sent == ["user: go", "call look", "ok look", "user: hi"]


@pytest.mark.parametrize("cancel_at, outcomes", [(1, "unknown unknown"), (3, "ok unknown"), (5, "ok ok")])
async def test_two_calls_are_answered_whatever_had_finished(cancel_at, outcomes, stage, autojump_clock):
    """Cut at once when none, one or both of two tools had finished: one result each, in the model's order."""
    stage.tool("fast", takes=2.0)
    stage.tool("slow", takes=4.0)
    stage.says(calls("fast", "slow"), [9.0, Done()], say("hello"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(cancel_at)
        turn.cancel(grace=0)
        await (await turn_after(turn, session, "hi")).result()

    first, second = outcomes.split()
    sent = stage.lines(stage.provider.requests[-1].messages)
    assert ["user: go", "call fast", "call slow", f"{first} fast", f"{second} slow", "user: hi"] == sent


@pytest.mark.parametrize("grace, second", [(None, "ok"), (5.0, "ok"), (0, "unknown")])
async def test_a_serial_batch_is_answered_to_the_last_call(grace, second, stage, autojump_clock):
    """Cancelled in the second of three: real results, "skipped" for the third; cut at once the second is unknown."""
    stage.tool("write", takes=2.0, mutating=True)
    stage.says(calls(*[call("write", id=name) for name in "abc"]), say("hello"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(3)
        turn.cancel(grace=grace)
        with stage.takes(0 if grace == 0 else 1):
            result = await turn.result()
        await (await session.send_message("hi")).result()

    assert (("c",), ("b",) if grace == 0 else ()) == (result.skipped, result.interrupted)
    sent = stage.lines(stage.provider.requests[1].messages)
    assert ["user: go", "call a", "call b", "call c", "ok a", f"{second} b", "skipped c", "user: hi"] == sent


async def test_each_incomplete_message_is_noted_exactly_once(stage, autojump_clock):
    """One note per incomplete message, also after a second cancelled turn and after a resume; none is stored."""
    stage.says([TextDelta("one"), 9.0], [TextDelta("two"), 9.0], say("three"), say("four"))
    expected = ["user: a", "assistant: one [cancelled]", NOTE, "user: b", "assistant: two [cancelled]", NOTE]
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            for text in "ab":
                turn = await session.send_message(text)
                await trio.sleep(1)
                turn.cancel()
                await turn.result()
            await (await session.send_message("c")).result()
        async with await agent.resume_session(session.id) as session:
            await (await session.send_message("d")).result()

    assert [*expected, "user: c"] == stage.lines(stage.provider.requests[2].messages)
    resumed = stage.lines(stage.provider.requests[3].messages)
    assert [*expected, "user: c", "assistant: three", "user: d"] == resumed
    assert NOTE not in stage.stored()


@pytest.mark.parametrize("texts", [[" "], ["\n"], [""], [" ", "\n", "\t"], []])
async def test_blank_text_leaves_no_message(texts, stage, autojump_clock):
    """Nothing but white space before a cancel: no assistant message is kept, and the next request is as sendable."""
    stage.says([*map(TextDelta, texts), 9.0, Done()], say("hello"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        result = await (await turn_after(turn, session, "hi")).result()

    assert result.status == TurnStatus.COMPLETED
    assert stage.stored() == ["user: go", "user: hi", "assistant: hello"]


async def test_reasoning_that_was_cut_is_no_blank_message(stage, autojump_clock):
    """Only reasoning before a cancel: it is kept as an incomplete message, which is not blank, and noted."""
    stage.says([ReasoningDelta("let me see"), 9.0, Done()], say("hello"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        await (await turn_after(turn, session, "hi")).result()

    sent = stage.lines(stage.provider.requests[1].messages)
    assert sent == ["user: go", "assistant:  [cancelled]", NOTE, "user: hi"]


async def test_a_failure_before_the_first_event_keeps_the_user_message(stage, autojump_clock):
    """The provider fails before it says anything: the user message is stored, and no assistant placeholder."""
    stage.says([ProviderError("no", retryable=False)])
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()

    assert (result.status, result.error.message) == (TurnStatus.FAILED, "no")
    assert stage.stored() == ["user: go"]


async def test_a_failure_after_text_keeps_it_and_says_so(stage, autojump_clock):
    """The provider fails after it said something: the text is kept as failed, not repeated, and noted as an error."""
    stage.says([TextDelta("half"), ProviderError("no", retryable=True)], say("hello"))
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()
        await (await session.send_message("hi")).result()

    assert (result.status, result.text) == (TurnStatus.FAILED, "half")
    sent = stage.lines(stage.provider.requests[1].messages)
    assert sent == ["user: go", "assistant: half [failed]", FAILED_NOTE, "user: hi"]


async def turn_after(turn, session, text):
    await turn.result()
    return await session.send_message(text)

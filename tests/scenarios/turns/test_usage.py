"""What a turn and a session have used, counted once (semantics 4, 6)."""

from __future__ import annotations

import attrs
import trio
from youyou import (
    ContextCompacted,
    Done,
    EmptyResponse,
    ProviderError,
    TextDelta,
    TokenUsage,
    TurnStatus,
    Usage,
)
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, call, calls, say

USED = TokenUsage(10, 5, 4, 3, 2)


async def test_a_turn_adds_up_its_rounds(stage, autojump_clock):
    """Each kind of token is the sum over the turn's requests; event and result agree."""
    stage.tool("write")
    stage.says(calls("write", usage=USED), calls(call("write", id="b"), usage=USED), say("done", usage=USED))
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)

    assert events[-1].usage == (await turn.result()).usage
    assert events[-1].usage.tokens == TokenUsage(30, 15, 12, 9, 6)


async def test_a_provider_that_never_reports_uses_nothing(stage, autojump_clock):
    """``Done()`` without usage counts as zero, beside rounds that report."""
    stage.tool("write")
    stage.says(calls("write"), say("done", usage=USED))
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()

    assert result.usage.tokens == USED


async def test_usage_reported_twice_counts_once(stage, autojump_clock):
    """Only the first Done of an answer counts."""
    stage.says([TextDelta("hello"), Done(USED), Done(USED)])
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()

    assert result.usage.tokens == USED


async def test_retries_empty_answers_and_summaries_count(stage, autojump_clock):
    """A turn with an empty answer, a retry and a compaction sums what each of its requests reported."""
    window = attrs.evolve(SCRIPTED_MODEL, context_window=300)
    stage.provider = StrictProvider(
        [
            say("x" * 900, usage=TokenUsage(50, 300)),
            say("a summary", usage=TokenUsage(100, 1)),
            [ProviderError("busy", retryable=True)],
            [Done(TokenUsage(20, 0))],
            say("done", usage=TokenUsage(3, 4)),
        ],
        models=[window],
    )
    async with stage.session() as session:
        await (await session.send_message("first")).result()
        turn = await session.send_message("second")
        events = await stage.events(turn)
        result = await turn.result()
        assert session.usage.tokens == TokenUsage(50, 300) + result.usage.tokens

    assert any(isinstance(event, ContextCompacted) for event in events)
    assert result.usage.tokens == TokenUsage(123, 5)


async def test_failed_and_cancelled_turns_count_too(stage, autojump_clock):
    """What was used before a turn failed or was cancelled is in its result and in the session's sum."""
    stage.tool("write", takes=5.0)
    stage.says([Done(USED)], [Done(USED)], calls("write", usage=USED))
    async with stage.session() as session:
        failed = await (await session.send_message("one")).result()
        turn = await session.send_message("two")
        await trio.sleep(1)
        turn.cancel()
        cancelled = await turn.result()
        assert session.usage.tokens == USED + USED + USED

    assert isinstance(failed.error, EmptyResponse)
    assert (failed.usage.tokens, cancelled.usage.tokens) == (USED + USED, USED)
    assert cancelled.status is TurnStatus.CANCELLED


async def test_a_session_goes_on_counting_after_resume(stage, autojump_clock):
    """The sum of a resumed session starts from what was stored."""
    stage.says(say("one", usage=USED), say("two", usage=USED))
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            await (await session.send_message("go")).result()
        async with await agent.resume_session(session.id) as session:
            assert session.usage.tokens == USED
            await (await session.send_message("go")).result()
            assert session.usage.tokens == USED + USED

    assert [fact["usage"]["input_tokens"] for fact in stage.facts("turn_ended")] == [10, 10]


async def test_a_turn_counts_its_requests_calls_and_retries(stage, autojump_clock):
    """Each request counts, each call that was asked for, and each request that was sent again."""
    stage.tool("write")
    stage.says(
        calls("write", call("nowhere")), [ProviderError("busy", retryable=True)], [Done(USED)], say("done", usage=USED)
    )
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)
        result = await turn.result()
        assert Usage() + result.usage == session.usage

    assert (4, 2, 1) == (result.usage.requests, result.usage.tool_calls, result.usage.retries)
    assert events[-1].usage == result.usage


async def test_the_request_of_a_summary_is_counted(stage, autojump_clock):
    """A compaction costs a request, and is not a retry."""
    stage.provider = StrictProvider(
        [say("x" * 900), say("a summary"), say("done")], models=[attrs.evolve(SCRIPTED_MODEL, context_window=300)]
    )
    async with stage.session() as session:
        await (await session.send_message("first")).result()
        result = await (await session.send_message("second")).result()

        assert Usage(requests=2) == result.usage
        assert 3 == session.usage.requests


async def test_a_call_that_was_stopped_counts(stage, autojump_clock):
    """The calls of a cancelled turn were asked for, too."""
    stage.tool("write", takes=5.0, mutating=True)
    stage.says(calls("write", call("write", id="second")))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()

        assert Usage(requests=1, tool_calls=2) == (await turn.result()).usage


async def test_the_counts_of_a_session_go_on_after_a_resume(stage, autojump_clock):
    """They are stored with the end of each turn; a log of before there were counts has tokens alone."""
    stage.tool("write")
    stage.says(calls("write", usage=USED), say("one"), say("two"))
    async with stage.agent() as agent:
        async with agent.new_session() as session:
            await (await session.send_message("go")).result()
        async with agent.resume_session(session.id) as session:
            await (await session.send_message("go")).result()
            assert Usage(*attrs.astuple(USED), requests=3, tool_calls=1) == session.usage


def test_plain_tokens_can_be_added_to_counts():
    """In both orders; the counts stay, and tokens with tokens are tokens."""
    counted = Usage(1, 2, requests=3, tool_calls=4, retries=5)

    assert Usage(11, 7, 4, 3, 2, requests=3, tool_calls=4, retries=5) == counted + USED == USED + counted
    assert TokenUsage(20, 10, 8, 6, 4) == USED + USED
    assert USED == (USED + Usage()).tokens

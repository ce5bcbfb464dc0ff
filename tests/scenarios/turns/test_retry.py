"""When a request is tried again, after how long, and what the host sees of it (semantics 4, "Retry")."""

from __future__ import annotations

import pytest
import trio
from youyou import (
    ChatError,
    Done,
    ProviderError,
    ReasoningDelta,
    RetryPolicy,
    RetryScheduled,
    TextDelta,
    TurnCancelled,
    TurnStatus,
)
from youyou.testing.agents.scripted import call, calls, say

BUSY = ProviderError("busy", retryable=True)


async def told(stage):
    """One turn: its events, its result, history in short, and how long it took."""
    start = trio.current_time()
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)
        took = trio.current_time() - start
        return events, await turn.result(), stage.lines(session.history), took


def delays(events):
    return [event.delay_ms for event in events if isinstance(event, RetryScheduled)]


async def test_waits_double_up_to_a_maximum(stage, autojump_clock):
    """``base_ms`` doubles with each try up to ``max_ms``; each retry is told before its wait, with what failed."""
    stage.configure(retry=RetryPolicy(attempts=6, base_ms=500, max_ms=3_000, jitter=0.0))
    stage.says(*[[BUSY]] * 5, say("done"))
    events, result, history, took = await told(stage)

    assert delays(events) == [500, 1_000, 2_000, 3_000, 3_000]
    assert events[0] == RetryScheduled(1, 500, BUSY)
    assert [event.attempt for event in events[:5]] == [1, 2, 3, 4, 5]
    assert took == pytest.approx(9.5)
    assert result.text == "done"
    assert history == ["user: go", "assistant: done"]


async def test_all_requests_of_a_retry_are_the_same(stage, autojump_clock):
    """A retry sends what was sent before."""
    stage.says([BUSY], [BUSY], say("done"))
    await told(stage)

    first, second, third = stage.provider.requests
    assert first == second == third


async def test_attempts_count_in_total(stage, autojump_clock):
    """After ``attempts`` tries the turn fails with the last error, without another wait."""
    stage.says([BUSY], [BUSY], [ProviderError("still busy", retryable=True)])
    events, result, _, took = await told(stage)

    assert delays(events) == [500, 1_000]
    assert took == pytest.approx(1.5)
    assert result.error == ProviderError("still busy", retryable=True)
    assert len(stage.provider.requests) == 3


async def test_each_round_has_its_own_attempts(stage, autojump_clock):
    """Tries of one request do not count for the next request of the turn."""
    stage.tool("write")
    stage.says([BUSY], [BUSY], calls("write"), [BUSY], [BUSY], say("done"))
    events, result, _, _ = await told(stage)

    assert delays(events) == [500, 1_000, 500, 1_000]
    assert result.status is TurnStatus.COMPLETED


@pytest.mark.parametrize("wanted", [0, 7, 90_000])
async def test_what_the_provider_asks_for_wins(wanted, stage, autojump_clock):
    """``retry_after_ms`` of the error is the wait, shorter or longer than the policy's, jitter or not."""
    stage.configure(retry=RetryPolicy(base_ms=500, max_ms=30_000, jitter=1.0))
    stage.says([ChatError("busy", retry_after_ms=wanted)], say("done"))
    events, _, _, took = await told(stage)

    assert delays(events) == [wanted]
    assert took == pytest.approx(wanted / 1000)


@pytest.mark.parametrize("wanted", [1.5, float("nan"), float("inf"), -3, 10**30], ids=repr)
async def test_an_odd_wish_is_no_crash(wanted, stage, autojump_clock):
    """A ``retry_after_ms`` that is not a sensible number leaves the agent alive; too long a wait fails."""
    stage.says([ChatError("busy", retry_after_ms=wanted)], say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(60)
        turn.cancel()
        result = await turn.result()

    waits = (TurnStatus.COMPLETED, TurnStatus.CANCELLED)
    assert result.status in ((TurnStatus.FAILED,) if wanted == 10**30 else waits)


async def test_jitter_stays_in_its_range(stage, autojump_clock):
    """The wait differs from the policy's by at most ``jitter`` of it."""
    stage.configure(retry=RetryPolicy(attempts=20, base_ms=1_000, max_ms=1_000, jitter=0.1))
    stage.says(*[[BUSY]] * 19, say("done"))
    events, _, _, _ = await told(stage)

    assert all(900 <= delay <= 1_100 for delay in delays(events))
    assert len(set(delays(events))) > 1


@pytest.mark.parametrize(
    "shown",
    [[TextDelta("a"), TextDelta("b"), TextDelta("c")], [ReasoningDelta("hm")], [call("write")], [TextDelta(" ")]],
    ids=["text", "reasoning", "call", "white-space"],
)
async def test_nothing_is_shown_twice(shown, stage, autojump_clock):
    """After anything visible the turn fails instead of repeating it: one request, the part kept as incomplete."""
    write = stage.tool("write")
    stage.says([*shown, BUSY], say("again"))
    events, result, history, _ = await told(stage)

    assert result.error == BUSY
    assert len(stage.provider.requests) == 1
    assert delays(events) == []
    assert [event for event in events if isinstance(event, TextDelta)] == [e for e in shown if isinstance(e, TextDelta)]
    assert write.runs == []
    kept = {"a": ["assistant: abc [failed]"], "hm": ["assistant:  [failed]"], " ": []}
    first = getattr(shown[0], "text", None)
    assert history[1:] == (kept[first] if first else ["call write", "skipped write"])


async def test_empty_deltas_are_not_visible(stage, autojump_clock):
    """An attempt that streamed only empty texts showed nothing, and is tried again."""
    stage.says([TextDelta(""), ReasoningDelta(""), BUSY], say("done"))
    events, result, _, _ = await told(stage)

    assert delays(events) == [500]
    assert result.text == "done"


async def test_what_is_not_retryable_is_not_tried_again(stage, autojump_clock):
    """An error that will not go away fails the turn at once."""
    stage.says([ProviderError("bad key", retryable=False)], say("again"))
    events, result, _, took = await told(stage)

    assert (delays(events), took) == ([], 0)
    assert result.error.message == "bad key"


async def test_the_wait_is_cancellable(stage, autojump_clock):
    """A cancel ends the wait at once; no other request is sent."""
    stage.says([ChatError("busy", retry_after_ms=60_000)], say("late"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(10)
        with stage.takes(0):
            turn.cancel()
            events = await stage.events(turn)

    assert isinstance(events[-1], TurnCancelled)
    assert len(stage.provider.requests) == 1


async def test_a_slow_reader_sees_the_retry_before_its_wait(stage, autojump_clock):
    """``RetryScheduled`` is read while the wait goes on, not after it."""
    stage.says([ChatError("busy", retry_after_ms=60_000)], [TextDelta("done"), Done()])
    async with stage.session() as session:
        turn = await session.send_message("go")
        with stage.takes(0):
            assert isinstance((await anext(turn)).payload, RetryScheduled)
        await turn.result()

"""The first of completed, failed, cancelled wins, and cancel() says which (semantics 6.1)."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
import trio
from youyou import (
    AfterToolUse,
    BeforeToolUse,
    Done,
    ErrorCode,
    ProviderError,
    TextDelta,
    ToolCallEnd,
    TurnEnd,
    TurnStatus,
)
from youyou.testing.agents.scripted import StrictProvider, calls, say


async def never_ends(_):
    await trio.sleep_forever()


async def test_a_second_cancel_says_the_same(stage, autojump_clock):
    """cancel() returns True again, while the turn ends and after; the result does not change."""
    stage.tool("look", takes=2.0)
    stage.says(calls("look"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert (turn.cancel(), turn.cancel()) == (True, True)
        assert turn.status == TurnStatus.CANCELLING
        with stage.takes(1):
            result = await turn.result()
        assert turn.cancel()
        assert (TurnStatus.CANCELLED, result) == (turn.status, await turn.result())

    assert result.error.code == ErrorCode.REQUEST_CANCELLED


async def test_a_cancel_before_the_turn_has_begun_to_run(stage, autojump_clock):
    """Cancelled in the very step in which send_message returns: the input is stored, no request is sent."""
    async with stage.session() as session:
        turn = await session.send_message("go")
        assert turn.cancel()
        result = await turn.result()

    assert result.status == TurnStatus.CANCELLED
    assert stage.stored() == ["user: go"]
    assert stage.provider.requests == []


async def test_completed_is_decided_by_done(stage, autojump_clock):
    """Once the Done of a round without calls was seen the turn is completed, also while its stream is still open."""

    class SlowToClose(StrictProvider):
        @asynccontextmanager
        async def chat(self, request):
            async with super().chat(request) as stream:
                yield stream
            await trio.sleep(3)

    stage.provider = SlowToClose([say("done")])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert not turn.cancel()
        with stage.takes(0):
            result = await turn.result()

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "done")
    assert stage.stored() == ["user: go", "assistant: done"]


async def test_failed_is_not_turned_into_cancelled(stage, autojump_clock):
    """A cancel during the TurnEnd hooks of a failed turn returns False and changes nothing."""
    stage.on(TurnEnd, lambda _: trio.sleep(2))  # noqa: ASYNC105 - the runtime awaits it
    stage.says([ProviderError("no", retryable=False)])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert not turn.cancel()
        result = await turn.result()

    assert (result.status, result.error.message) == (TurnStatus.FAILED, "no")
    assert [end["status"] for end in stage.facts("turn_ended")] == ["failed"]


@pytest.mark.parametrize(
    "status, cancel", [(TurnStatus.COMPLETED, False), (TurnStatus.FAILED, False), (TurnStatus.CANCELLED, True)]
)
async def test_store_event_and_result_agree(status, cancel, stage, autojump_clock):
    """Stored state, terminal event and result say the same."""
    stage.says([TextDelta("text"), 2.0, Done()] if status != TurnStatus.FAILED else [TextDelta("text")])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        if cancel:
            turn.cancel()
        terminal = (await stage.events(turn))[-1]
        result = await turn.result()

    assert (status, "text") == (result.status, result.text)
    assert status == getattr(terminal, "status", TurnStatus.CANCELLED)
    assert [status] == [end["status"] for end in stage.facts("turn_ended")]


# grace


@pytest.mark.parametrize(
    "graces, ends_after", [([5.0], 5), ([5.0, 2.0], 2), ([2.0, 5.0], 2), ([None, 0], 0), ([0, None], 0)]
)
async def test_a_grace_only_ever_tightens(graces, ends_after, stage, autojump_clock):
    """Running tools are cut after the shortest grace that was given; their outcome is unknown."""
    look = stage.tool("look", takes=60.0)
    stage.says(calls("look"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        for grace in graces:
            turn.cancel(grace=grace)
        with stage.takes(ends_after):
            events = await stage.events(turn)

    assert events[-1].interrupted == ("look",)
    assert look.cut == 1
    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    assert (end.success, end.error.code) == (False, ErrorCode.REQUEST_CANCELLED)
    assert stage.stored() == ["user: go", "call look", "unknown look"]


async def test_a_repeated_plain_cancel_changes_nothing(stage, autojump_clock):
    """A later cancel without grace neither lengthens nor shortens."""
    stage.tool("look", takes=60.0)
    stage.says(calls("look"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=4.0)
        await trio.sleep(3)
        turn.cancel()
        with stage.takes(1):
            await turn.result()


async def test_a_before_hook_that_is_cut_counts_as_abort(stage, autojump_clock):
    """Grace cuts a BeforeToolUse hook: its tool does not run."""
    look = stage.tool("look")
    stage.on(BeforeToolUse, never_ends)
    stage.says(calls("look"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=2.0)
        with stage.takes(2):
            result = await turn.result()

    assert (look.runs, result.skipped) == ([], ("look",))


async def test_an_after_hook_that_is_cut_is_logged_and_emitted(stage, autojump_clock, caplog):
    """Grace cuts an AfterToolUse hook: the tool's result stands, the error is told."""
    stage.tool("look")
    stage.on(AfterToolUse, never_ends)
    stage.says(calls("look"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=2.0)
        with stage.takes(2):
            events = await stage.events(turn)

    assert events[-2].error.code == ErrorCode.PLUGIN_ERROR
    assert "did not finish in time" in caplog.text
    assert stage.stored() == ["user: go", "call look", "ok look"]


# the provider


async def test_a_blocking_provider_is_closed_at_once_and_the_session_lives(stage, autojump_clock):
    """A provider that blocks without yielding: cancel runs its ``finally``; two late cancels harm no later turn."""
    closed = []

    class Blocking(StrictProvider):
        async def chat(self, request):
            if len(closed):
                async with super().chat(request) as stream:
                    async for event in stream:
                        yield event
                return
            try:
                await trio.sleep_forever()
                yield
            finally:
                closed.append(trio.current_time())

    stage.provider = Blocking([say("hello")])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(0):
            await turn.result()
        assert [trio.current_time()] == closed
        assert (turn.cancel(), turn.cancel(grace=0)) == (True, True)
        result = await (await session.send_message("hi")).result()

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "hello")


async def test_nothing_of_a_tool_is_visible_after_the_terminal_event(stage, autojump_clock):
    """Of three read-only tools one cancels its own scope and raises: siblings end before the turn, progress stops."""
    reports = []

    async def cancels_itself(input):
        with trio.CancelScope() as scope:
            scope.cancel("my own affair")
            await trio.sleep(1)
        raise ValueError("after my own cancel")

    async def reports_on(input):
        reports.append(input.report)
        await trio.sleep(2)

    stage.tool("bad", does=cancels_itself)
    stage.tool("a", does=reports_on)
    stage.tool("b", does=reports_on)
    stage.says(calls("bad", "a", "b"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)
        for report in reports:
            report("still here")
        await trio.testing.wait_all_tasks_blocked()
        assert [event async for event in turn] == []

    ends = {event.call_id: event.success for event in events if isinstance(event, ToolCallEnd)}
    assert ends == {"bad": False, "a": True, "b": True}

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


async def test_a_second_cancel_says_the_same(conversation, autojump_clock):
    """cancel() returns True again, while the turn ends and after; the result does not change."""
    conversation.tool("look", takes=2.0)
    conversation.says(calls("look"))
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert (turn.cancel(), turn.cancel()) == (True, True)
        assert turn.status == TurnStatus.CANCELLING
        with conversation.takes(1):
            result = await turn.result()
        assert turn.cancel()
        assert (TurnStatus.CANCELLED, result) == (turn.status, await turn.result())

    assert result.error.code == ErrorCode.REQUEST_CANCELLED


async def test_a_cancel_before_the_turn_has_begun_to_run(conversation, autojump_clock):
    """Cancelled in the very step in which send_message returns: the input is stored, no request is sent."""
    async with conversation.session() as session:
        turn = await session.send_message("go")
        assert turn.cancel()
        result = await turn.result()

    assert result.status == TurnStatus.CANCELLED
    assert conversation.stored() == ["user: go"]
    assert conversation.provider.requests == []


async def test_completed_is_decided_by_done(conversation, autojump_clock):
    """Once the Done of a round without calls was seen the turn is completed, also while its stream is still open."""

    class SlowToClose(StrictProvider):
        @asynccontextmanager
        async def chat(self, request):
            async with super().chat(request) as stream:
                yield stream
            await trio.sleep(3)

    conversation.provider = SlowToClose([say("done")])
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert not turn.cancel()
        with conversation.takes(0):
            result = await turn.result()

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "done")
    assert conversation.stored() == ["user: go", "assistant: done"]


async def test_failed_is_not_turned_into_cancelled(conversation, autojump_clock):
    """A cancel during the TurnEnd hooks of a failed turn returns False and changes nothing."""
    conversation.on(TurnEnd, lambda _: trio.sleep(2))  # noqa: ASYNC105 - the runtime awaits it
    conversation.says([ProviderError("no", retryable=False)])
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert not turn.cancel()
        result = await turn.result()

    assert (result.status, result.error.message) == (TurnStatus.FAILED, "no")
    assert [end["status"] for end in conversation.facts("turn_ended")] == ["failed"]


@pytest.mark.parametrize(
    "status, cancel", [(TurnStatus.COMPLETED, False), (TurnStatus.FAILED, False), (TurnStatus.CANCELLED, True)]
)
async def test_store_event_and_result_agree(status, cancel, conversation, autojump_clock):
    """Stored state, terminal event and result say the same."""
    conversation.says([TextDelta("text"), 2.0, Done()] if status != TurnStatus.FAILED else [TextDelta("text")])
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        if cancel:
            turn.cancel()
        terminal = (await conversation.events(turn))[-1]
        result = await turn.result()

    assert (status, "text") == (result.status, result.text)
    assert status == getattr(terminal, "status", TurnStatus.CANCELLED)
    assert [status] == [end["status"] for end in conversation.facts("turn_ended")]


# grace


@pytest.mark.parametrize(
    "graces, ends_after", [([5.0], 5), ([5.0, 2.0], 2), ([2.0, 5.0], 2), ([None, 0], 0), ([0, None], 0)]
)
async def test_a_grace_only_ever_tightens(graces, ends_after, conversation, autojump_clock):
    """Running tools are cut after the shortest grace that was given; their outcome is unknown."""
    look = conversation.tool("look", takes=60.0)
    conversation.says(calls("look"))
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        for grace in graces:
            turn.cancel(grace=grace)
        with conversation.takes(ends_after):
            events = await conversation.events(turn)

    assert events[-1].interrupted == ("look",)
    assert look.cut == 1
    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    assert (end.success, end.error.code) == (False, ErrorCode.REQUEST_CANCELLED)
    assert conversation.stored() == ["user: go", "call look", "unknown look"]


async def test_a_repeated_plain_cancel_changes_nothing(conversation, autojump_clock):
    """A later cancel without grace neither lengthens nor shortens."""
    conversation.tool("look", takes=60.0)
    conversation.says(calls("look"))
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=4.0)
        await trio.sleep(3)
        turn.cancel()
        with conversation.takes(1):
            await turn.result()


async def test_a_before_hook_that_is_cut_counts_as_abort(conversation, autojump_clock):
    """Grace cuts a BeforeToolUse hook: its tool does not run."""
    look = conversation.tool("look")
    conversation.on(BeforeToolUse, never_ends)
    conversation.says(calls("look"))
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=2.0)
        with conversation.takes(2):
            result = await turn.result()

    assert (look.runs, result.skipped) == ([], ("look",))


async def test_an_after_hook_that_is_cut_is_logged_and_emitted(conversation, autojump_clock, caplog):
    """Grace cuts an AfterToolUse hook: the tool's result stands, the error is told."""
    conversation.tool("look")
    conversation.on(AfterToolUse, never_ends)
    conversation.says(calls("look"))
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=2.0)
        with conversation.takes(2):
            events = await conversation.events(turn)

    assert events[-2].error.code == ErrorCode.PLUGIN_ERROR
    assert "did not finish in time" in caplog.text
    assert conversation.stored() == ["user: go", "call look", "ok look"]


# the provider


async def test_a_blocking_provider_is_closed_at_once_and_the_session_lives(conversation, autojump_clock):
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

    conversation.provider = Blocking([say("hello")])
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        with conversation.takes(0):
            await turn.result()
        assert [trio.current_time()] == closed
        assert (turn.cancel(), turn.cancel(grace=0)) == (True, True)
        result = await (await session.send_message("hi")).result()

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "hello")


async def test_nothing_of_a_tool_is_visible_after_the_terminal_event(conversation, autojump_clock):
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

    conversation.tool("bad", does=cancels_itself)
    conversation.tool("a", does=reports_on)
    conversation.tool("b", does=reports_on)
    conversation.says(calls("bad", "a", "b"), say("done"))
    async with conversation.session() as session:
        turn = await session.send_message("go")
        events = await conversation.events(turn)
        for report in reports:
            report("still here")
        await trio.testing.wait_all_tasks_blocked()
        assert [event async for event in turn] == []

    ends = {event.call_id: event.success for event in events if isinstance(event, ToolCallEnd)}
    assert ends == {"bad": False, "a": True, "b": True}

"""Whatever a tool raises is its own error result and nobody else's trouble (semantics 8)."""

from __future__ import annotations

import pytest
import trio
from youyou import ErrorCode, ToolCallEnd, ToolOutput, TurnStatus
from youyou.testing.agents.scripted import call, calls, say


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")

    __repr__ = __str__


class UnprintableExit(SystemExit):
    def __str__(self):
        raise KeyError("not even this")


HOSTILE = {
    "SystemExit": lambda: SystemExit(3),
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "group": lambda: ExceptionGroup("several", [ValueError("a"), TypeError("b")]),
    "base group": lambda: BaseExceptionGroup("several", [SystemExit(1), ValueError("b")]),
    "nested group": lambda: ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError("deep")])]),
    "unprintable": Unprintable,
    "unprintable exit": UnprintableExit,
    "unprintable in a group": lambda: ExceptionGroup("several", [Unprintable()]),
    "ten megabytes": lambda: ValueError("x" * 10_000_000),
    "surrogate": lambda: ValueError("lone \ud800 surrogate"),
    "bare BaseException": lambda: BaseException("bare"),
    "too slow": lambda: trio.TooSlowError(),
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_what_it_raises_is_an_error_result(kind, stage, autojump_clock):
    """The call gets an error result, its siblings finish, the turn goes on and the next turn works."""

    async def raises(_):
        raise HOSTILE[kind]()

    stage.tool("bad", does=raises)
    good = stage.tool("good", takes=1.0)
    stage.says(calls("bad", "good"), say("done"), say("again"))
    async with stage.session() as session:
        events = await stage.events(await session.send_message("go"))
        assert "again" == (await (await session.send_message("hi")).result()).text

    (bad,) = [event for event in events if isinstance(event, ToolCallEnd) and event.call_id == "bad"]
    assert (False, ErrorCode.TOOL_EXECUTION_ERROR) == (bad.success, bad.error.code)
    assert (TurnStatus.COMPLETED, 1) == (events[-1].status, good.finished)
    assert len(bad.output.content.encode()) <= 1_048_576 + len("\n\n[output truncated at 1MB]")
    assert ["user: go", "call bad", "call good", "failed bad", "ok good"] == stage.lines(session.history)[:5]


async def test_an_old_cancellation_raised_again_is_an_error(stage, autojump_clock):
    """A tool that keeps a Cancelled of its own scope and raises it later has failed; nothing else is cancelled."""

    async def raises_an_old_one(_):
        kept = []
        with trio.CancelScope() as scope:
            scope.cancel("mine")
            try:
                await trio.sleep(1)
            except trio.Cancelled as cancelled:
                kept.append(cancelled)
                raise
        raise kept[0]

    stage.tool("bad", does=raises_an_old_one)
    stage.says(calls("bad"), say("done"))
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()

    assert TurnStatus.COMPLETED == result.status
    assert ["user: go", "call bad", "failed bad", "assistant: done"] == stage.stored()


async def test_an_error_while_being_cut_is_still_a_cut(stage, autojump_clock):
    """A tool that raises something else when it is cut: its outcome is unknown, as of any tool that was cut."""

    async def fails_in_its_finally(_):
        try:
            await trio.sleep(60)
        finally:
            raise ValueError("on my way out")

    stage.tool("bad", does=fails_in_its_finally)
    stage.says(calls("bad"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=0)
        result = await turn.result()

    assert ("bad",) == result.interrupted


async def test_finishing_though_it_was_cut_counts(stage, autojump_clock):
    """A tool that catches the cut and still returns in time has its real result."""

    async def saves_what_it_has(_):
        with trio.move_on_after(60) as scope:
            try:
                await trio.sleep(60)
            except trio.Cancelled:
                scope.shield = True
                await trio.sleep(0.1)
                return ToolOutput("saved half")

    stage.tool("careful", does=saves_what_it_has)
    stage.says(calls("careful"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(grace=0)
        with stage.takes(0.1):
            result = await turn.result()

    assert (["saved half"], ()) == ([each.content for each in result.tool_results], result.interrupted)


@pytest.mark.parametrize("value", [None, 3, "text", {"a": 1}, b"bytes", object()])
async def test_a_tool_that_returns_anything(value, stage, autojump_clock):
    """A handler that returns no ToolOutput: the call has a result, whatever it is, and the turn goes on."""

    class Loose:
        name, description, parameters, mutating = "loose", "Loose.", {"type": "object"}, False

        async def execute(self, input):
            return value

    stage.says(calls("loose"), say("done"))
    async with stage.session(Loose()) as session:
        result = await (await session.send_message("go")).result()

    assert (TurnStatus.COMPLETED, 1) == (result.status, len(result.tool_results))


async def test_a_failing_call_stops_no_serial_sibling(stage, autojump_clock):
    """In a serial batch the calls after a failing one still run, in order."""
    order = []

    async def runs(input):
        order.append(input.call_id)
        if input.call_id == "b":
            raise ValueError("on purpose")

    stage.tool("write", mutating=True, does=runs)
    stage.says(calls(*[call("write", id=name) for name in "abc"]), say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert ["a", "b", "c"] == order
    assert ["ok a", "failed b", "ok c"] == stage.stored()[4:7]

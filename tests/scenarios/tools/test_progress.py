"""What a tool reports on its way: conflated, and never in the tool's way (semantics 13)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
import youyou
from youyou import ToolCallEnd, ToolCallStart, ToolInput, ToolProgress
from youyou.testing import call, calls, say


def told(events: list[Any], call_id: str) -> list[Any]:
    """What was told of one call: its start, its progress, its end."""
    found: list[Any] = []
    for event in events:
        match event.payload:
            case ToolProgress(call_id=id, progress=progress) if id == call_id:
                found.append(progress)
            case ToolCallStart(call_id=id) | ToolCallEnd(call_id=id) if id == call_id:
                found.append(type(event.payload).__name__)
    return found


def reporting(stage: Any, name: str, *, every: float = 0.0, times: int = 3) -> None:
    """A tool that reports 1, 2, 3 and so on, every so many seconds."""

    async def execute(given: ToolInput) -> str:
        for number in range(1, times + 1):
            given.report({"done": number})
            await trio.sleep(every)
        return "ok"

    stage.tools[name] = youyou.Tool(name, "Reports.", {"type": "object"}, execute)


async def test_progress_comes_between_start_and_end(stage: Any, autojump_clock: Any) -> None:
    """A reader who keeps up sees every report."""
    reporting(stage, "work", every=1.0)
    stage.says(calls("work"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = [event async for event in turn]

    assert ["ToolCallStart", {"done": 1}, {"done": 2}, {"done": 3}, "ToolCallEnd"] == told(events, "work")


async def test_unread_progress_is_replaced_by_newer(stage: Any, autojump_clock: Any) -> None:
    """Ten thousand reports to a reader who sleeps: no tool waits, and the reader sees the newest of each call."""
    stage.configure(event_buffer=2)
    reporting(stage, "one", times=10_000)
    reporting(stage, "two", times=5_000)
    stage.says(calls("one", "two"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(5)
        events = [event async for event in turn]

    assert [{"done": 10_000}] == [each for each in told(events, "one") if isinstance(each, dict)]
    assert [{"done": 5_000}] == [each for each in told(events, "two") if isinstance(each, dict)]
    assert [0, 0] == [event.payload.duration_ms for event in events if isinstance(event.payload, ToolCallEnd)]
    numbers = [event.sequence for event in events]
    assert list(range(numbers[0], numbers[0] + len(numbers))) == numbers


async def test_a_slow_reader_sees_progress_grow(stage: Any, autojump_clock: Any) -> None:
    """Some reports are left out, none comes twice or late, and the last one before the end is never lost."""
    reporting(stage, "work", every=0.1, times=100)
    stage.says(calls("work"), say("done"))
    events: list[Any] = []
    async with stage.session() as session:
        turn = await session.send_message("go")
        async for event in turn:
            events.append(event)
            await trio.sleep(0.7)

    seen = told(events, "work")
    reports = [each["done"] for each in seen[1:-1]]
    assert sorted(set(reports)) == reports
    assert (100, True) == (reports[-1], len(reports) < 30)
    assert ("ToolCallStart", "ToolCallEnd") == (seen[0], seen[-1])


async def test_progress_without_a_reader_costs_nothing(stage: Any, autojump_clock: Any) -> None:
    """A detached turn's tool reports into the void and finishes."""
    reporting(stage, "work", times=10_000)
    stage.says(calls("work"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        turn.detach()
        result = await turn.result()
        left = [event async for event in turn]

    assert ("done", []) == (result.text, left)


async def test_a_report_after_the_end_is_not_heard(stage: Any, autojump_clock: Any) -> None:
    """A tool that let go of its input too late tells nothing of a call that is over."""
    leaked: list[ToolInput] = []

    async def execute(given: ToolInput) -> str:
        leaked.append(given)
        return "ok"

    stage.tools["work"] = youyou.Tool("work", "Leaks.", {"type": "object"}, execute)
    stage.says(calls("work"), [2.0, *say("done")])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        leaked[0].report("late")
        events = [event async for event in turn]
    leaked[0].report("later still")

    assert ["ToolCallStart", "ToolCallEnd"] == told(events, "work")


@pytest.mark.parametrize("thread", ["wait", "cooperative", "abandon"])
async def test_a_thread_reports_without_waiting(stage: Any, thread: Any) -> None:
    """From a worker thread: while nobody reads, ten thousand reports pass; the newest arrives before the end."""

    @youyou.tool(thread=thread)
    def work(given: ToolInput) -> str:
        """Reports from its thread."""
        for number in range(1, 10_001):
            given.report(number)
        return threading.current_thread().name

    stage.tools["work"] = work
    stage.says(calls("work"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = [event async for event in turn]
        result = await turn.result()

    seen = told(events, "work")
    assert ("ToolCallStart", 10_000, "ToolCallEnd") == (seen[0], seen[-2], seen[-1])
    assert sorted(set(seen[1:-1])) == seen[1:-1]
    assert threading.main_thread().name != result.tool_results[0].content


async def test_a_thread_reports_after_the_run_in_vain(stage: Any) -> None:
    """A thread that was left behind and reports when its turn is over, or Trio is, harms nobody."""
    go_on, over = threading.Event(), threading.Event()
    raised: list[Exception] = []

    @youyou.tool(thread="abandon", timeout_ms=50)
    def work(given: ToolInput) -> str:
        """Outlives its call."""
        go_on.wait(30)
        try:
            given.report("late")
        except Exception as error:
            raised.append(error)
        over.set()
        return "late"

    stage.tools["work"] = work
    stage.says(calls("work"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        result = await turn.result()
        go_on.set()
        await trio.to_thread.run_sync(over.wait)
    assert ("done", []) == (result.text, raised)


async def test_progress_is_data_at_the_time_of_the_report(stage: Any, autojump_clock: Any) -> None:
    """What a tool changes afterwards in the object that it reported does not change the event."""

    async def execute(given: ToolInput) -> str:
        state = {"parts": [1]}
        given.report(state)
        state["parts"].append(2)
        await trio.sleep(1)
        return "ok"

    stage.tools["work"] = youyou.Tool("work", "Reports.", {"type": "object"}, execute)
    stage.says(calls("work"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = [event async for event in turn]

    (report,) = told(events, "work")[1:-1]
    assert '{"parts":[1]}' == youyou.messages.codec.to_json(report)


async def test_concurrent_calls_keep_their_reports_apart(stage: Any, autojump_clock: Any) -> None:
    """Conflation is by call, not by tool."""
    reporting(stage, "work", every=1.0, times=2)
    stage.says(calls(call("work", id="a"), call("work", id="b")), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = [event async for event in turn]

    expected = ["ToolCallStart", {"done": 1}, {"done": 2}, "ToolCallEnd"]
    assert [expected, expected] == [told(events, "a"), told(events, "b")]

"""What tools hand back and report, and what they are given (semantics 8)."""

from __future__ import annotations

from contextlib import suppress

import attrs
import pytest
import trio
from youyou import ErrorCode, ToolCallEnd, ToolCallStart, ToolOutput, ToolProgress, TurnStatus, tool
from youyou.testing.agents.scripted import call, calls, say


class Unprintable:
    def __str__(self):
        raise ValueError("no text")


@attrs.define
class Returning:
    """A handler by hand that returns whatever it was given."""

    value: object
    name: str = "write"
    description: str = "Returns."
    mutating: bool = False
    parameters: dict = attrs.Factory(dict)

    async def execute(self, _):
        return self.value


async def told(stage, *tools):
    """A turn in which ``write`` is called once, and one more: the events of the first, its result."""
    stage.says(calls("write"), say("done"), say("next"))
    async with stage.session(*tools) as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)
        assert (await (await session.send_message("again")).result()).text == "next"
        return events, await turn.result()


@pytest.mark.parametrize(
    ("returned", "content"), [(None, ""), ("text", "text"), (5, "5"), ({"a": 1}, '{"a":1}')], ids=repr
)
async def test_plain_values_become_an_output(returned, content, stage, autojump_clock):
    """What `execute` returns instead of a ToolOutput becomes one, as it does for a decorated function."""
    _, result = await told(stage, Returning(returned))

    assert (result.tool_results[0].content, result.tool_results[0].is_error) == (content, False)


@pytest.mark.parametrize("content", [None, 5, b"bytes", Unprintable()], ids=lambda value: type(value).__name__)
async def test_an_output_whose_content_is_no_text(content, stage, autojump_clock):
    """Content of another type is shown as text; where it cannot be shown, that is the tool's error."""
    events, result = await told(stage, Returning(ToolOutput(content)))

    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    assert isinstance(end.output.content, str)
    assert end.success is not isinstance(content, Unprintable)
    assert result.tool_results[0].content == end.output.content


@pytest.mark.parametrize("depth", [90, 300, 450, 5_000])
async def test_deeply_nested_values_exhaust_no_stack(depth, stage, autojump_clock):
    """Metadata and progress nested beyond reason fail where they come from: no actor crashes."""
    nested = []
    for _ in range(depth):
        nested = [nested]

    async def nests(input):
        with suppress(ValueError):
            input.report(nested)
        return ToolOutput("ok", metadata={"nested": nested})

    stage.tool("write", does=nests)
    _, result = await told(stage)

    assert result.tool_results[0].is_error is (depth > 100)


@pytest.mark.parametrize("progress", [object(), {1: {2, 3}}, float("nan")], ids=lambda value: type(value).__name__)
async def test_progress_that_is_no_json_is_no_trouble(progress, stage, autojump_clock):
    """What a tool reports ends neither the tool nor the turn."""

    async def reports(input):
        input.report(progress)
        return ToolOutput("ok")

    stage.tool("write", does=reports)
    _, result = await told(stage)

    assert result.tool_results[0].content == "ok"


async def test_only_the_newest_unread_progress_is_kept(stage, autojump_clock):
    """A thousand reports are one event for a reader that was not there; a later one is another."""

    async def counts(input):
        for number in range(1_000):
            input.report(number)
        await trio.sleep(1)
        input.report("last")
        return ToolOutput("ok")

    stage.tool("write", does=counts)
    stage.says(calls("write"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(0.5)
        seen = [(await anext(turn)).payload for _ in range(2)]
        seen += [event.payload async for event in turn]

    assert [event.progress for event in seen if isinstance(event, ToolProgress)] == [999, "last"]
    assert isinstance(seen[0], ToolCallStart)


async def test_progress_after_the_end_is_not_seen(stage, autojump_clock):
    """What a tool reports once it is over, from a task it left somewhere, is never an event."""
    inputs = []

    async def keeps(input):
        inputs.append(input)
        input.report(1)
        return ToolOutput("ok")

    stage.tool("write", does=keeps)
    stage.tool("slow", takes=2.0)
    stage.says(calls("write", "slow"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        inputs[0].report(2)
        events = await stage.events(turn)
        inputs[0].report(3)

    assert [event.progress for event in events if isinstance(event, ToolProgress)] == [1]


async def test_arguments_are_the_tools_own(stage, autojump_clock):
    """A tool may change what it was given: history keeps what the model asked for."""

    async def changes(input):
        input.arguments["list"].append(4)
        input.arguments["new"] = True

    stage.tool("write", does=changes)
    stage.says(calls(call("write", {"list": [1]})), say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()
        assert session.history[1].arguments == {"list": [1]}


async def test_a_tool_that_times_out_is_answered_and_the_turn_goes_on(stage, autojump_clock):
    """The text says the limit, the error is TOOL_TIMEOUT; the clock starts with the tool, not in the queue."""
    stage.configure(max_concurrent_tools=1)
    stage.tool("slow", takes=9.0, timeout_ms=2_000)
    good = stage.tool("good", takes=1.5, timeout_ms=2_000)
    stage.says(calls("slow", "good"), say("done"))
    async with stage.session() as session:
        with stage.takes(3.5):
            events = await stage.events(await session.send_message("go"))

    (end,) = [event for event in events if isinstance(event, ToolCallEnd) and event.call_id == "slow"]
    assert end.output == ToolOutput("Tool timed out after 2000ms", is_error=True)
    assert (end.error.code, end.duration_ms) == (ErrorCode.TOOL_TIMEOUT, 2_000)
    assert good.finished == 1
    assert events[-1].status is TurnStatus.COMPLETED


async def test_what_a_plain_function_raises_in_its_thread(stage):
    """The same error result as for an async tool."""

    @tool
    def write() -> str:
        raise SystemExit("out")

    stage.says(calls("write"), say("done"))
    async with stage.builder(write).build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("go")).result()

    assert result.tool_results[0].content == "Tool failed: SystemExit: out"

"""What becomes of the calls of one response: bad arguments, unknown tools, order, limits (semantics 6, 8)."""

from __future__ import annotations

import attrs
import pytest
import trio
from youyou import (
    AfterToolUse,
    AgentProfile,
    BeforeToolUse,
    Budget,
    ErrorCode,
    ErrorEvent,
    MaxToolCallsExceeded,
    ProfileKind,
    ReAct,
    SessionConfig,
    SingleShot,
    StopReason,
    SystemMessage,
    ToolCallEnd,
    ToolCallStart,
    ToolOutput,
    TurnComplete,
    TurnStatus,
)
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, call, calls, say

SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer", "minimum": 1}},
    "required": ["x"],
    "additionalProperties": False,
}


async def told(stage, config=None):
    """One turn: its events, its result, history in short."""
    async with stage.agent() as agent, await agent.new_session(config) as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)
        return events, await turn.result(), stage.lines(session.history)


def ends(events):
    return {event.call_id: event for event in events if isinstance(event, ToolCallEnd)}


# bad arguments


@pytest.mark.parametrize(
    "bad",
    [
        call("write", {"x": "three"}),
        call("write", {"x": 0}),
        call("write", {}),
        call("write", {"x": 1, "y": 2}),
        attrs.evolve(call("write"), raw_arguments='{"x": 1'),
        attrs.evolve(call("write"), raw_arguments="[1, 2]"),
        attrs.evolve(call("write"), raw_arguments=""),
    ],
    ids=["type", "range", "missing", "unknown", "no-json", "no-object", "empty"],
)
async def test_bad_arguments_are_answered_and_not_run(bad, stage, autojump_clock):
    """An error result that says what is wrong, a Start/End pair with ``success=False``; the model may try again."""
    write = stage.tool("write", parameters=SCHEMA)
    stage.says(calls(bad), calls(call("write", {"x": 3}, id="good")), say("done"))
    events, result, history = await told(stage)

    assert write.runs == [{"x": 3}]
    assert history == ["user: go", "call write", "failed write", "call good", "ok good", "assistant: done"]
    end = ends(events)["write"]
    assert (end.success, end.duration_ms, end.error.code) == (False, 0, ErrorCode.INVALID_TOOL_ARGUMENTS)
    assert end.output.content == result.tool_results[0].content
    assert [type(event) for event in events[:2]] == [ToolCallStart, ToolCallEnd]
    assert result.status is TurnStatus.COMPLETED


async def test_raw_arguments_are_kept_for_the_provider(stage, autojump_clock):
    """What did not parse stays in history as the model wrote it."""
    stage.tool("write", parameters=SCHEMA)
    stage.says(calls(attrs.evolve(call("write"), raw_arguments='{"x": 1')), say("done"))
    await told(stage)

    assert stage.provider.requests[1].messages[1].raw_arguments == '{"x": 1'


async def test_the_same_bad_call_for_ever_ends_the_turn(stage, autojump_clock):
    """Failed validations count as calls: a model that never learns meets the limit."""
    stage.configure(max_tool_calls_per_turn=4)
    stage.tool("write", parameters=SCHEMA)
    stage.says(*[calls(call("write", {"x": 0}, id=f"c{n}")) for n in range(9)])
    _, result, _ = await told(stage)

    assert isinstance(result.error, MaxToolCallsExceeded)
    assert len(stage.provider.requests) == 5


# unknown tools


async def test_an_unknown_tool_beside_a_known_one(stage, autojump_clock):
    """The known one runs; the unknown one is answered with the list of names."""
    read = stage.tool("read")
    stage.tool("write", mutating=True)
    stage.says(calls("wrlte", "read"), say("done"))
    events, result, _ = await told(stage)

    assert read.finished == 1
    first, second = result.tool_results
    assert (first.call_id, first.is_error, second.call_id, second.is_error) == ("wrlte", True, "read", False)
    assert first.content == "unknown tool 'wrlte'; the available tools are: read, write"
    assert ends(events)["wrlte"].error.code is ErrorCode.TOOL_NOT_FOUND
    assert {event.call_id for event in events if isinstance(event, ToolCallStart)} == {"wrlte", "read"}


async def test_a_model_without_tools_gets_none_and_calls_none(stage, autojump_clock):
    """A model without ``tool_use`` gets no tools; what it calls all the same is unknown."""
    model = attrs.evolve(
        SCRIPTED_MODEL, capabilities=attrs.evolve(SCRIPTED_MODEL.capabilities, tool_use=False), id="plain"
    )
    stage.provider = StrictProvider([calls("write"), say("done")], models=[model])
    stage.configure(default_model="plain")
    write = stage.tool("write")
    _, result, _ = await told(stage)

    assert [request.tools for request in stage.provider.requests] == [(), ()]
    assert write.runs == []
    assert result.tool_results[0].content == "unknown tool 'write'; the available tools are: none"


async def test_hooks_do_not_see_calls_that_cannot_run(stage, autojump_clock):
    """An unknown tool is answered before any hook is asked, and no AfterToolUse follows a refused call."""
    stage.on(BeforeToolUse)
    stage.on(AfterToolUse)
    stage.says(calls("unknown"), say("done"))
    await told(stage)

    assert stage.log == []


# order


async def test_results_stand_in_the_order_of_the_calls(stage, autojump_clock):
    """Finished 3-1-2, the second refused by a hook at once: the next request has the order of the calls."""

    async def refuses_two(event):
        if event.call_id == "2":
            raise ValueError("no")

    stage.tool("slow", takes=2.0)
    stage.tool("fast", takes=1.0)
    stage.on(BeforeToolUse, refuses_two)
    stage.says(calls(call("slow", id="1"), call("slow", id="2"), call("fast", id="3")), say("done"))
    events, result, history = await told(stage)

    assert list(ends(events)) == ["2", "3", "1"]
    assert history[1:7] == ["call 1", "call 2", "call 3", "ok 1", "failed 2", "ok 3"]
    assert stage.lines(stage.provider.requests[1].messages) == history[:7]
    assert [answer.call_id for answer in result.tool_results] == ["1", "2", "3"]


async def test_results_are_stored_as_they_come(stage, autojump_clock):
    """The store has each result when it is there; resume puts them into the order of the calls."""
    stage.tool("slow", takes=2.0)
    stage.tool("fast", takes=1.0)
    stage.says(calls("slow", "fast"), say("done"))
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            turn = await session.send_message("go")
            await trio.sleep(1.5)
            assert stage.stored()[-1] == "ok fast"
            await turn.result()
            history = tuple(session.history)
        async with await agent.resume_session(session.id) as session:
            assert tuple(session.history) == history

    assert stage.lines(history)[3:5] == ["ok slow", "ok fast"]


async def test_read_only_calls_run_at_once_and_mutating_batches_in_order(stage, autojump_clock):
    """All read-only: together, at most ``max_concurrent_tools``. One mutating among them: one after the other."""
    stage.configure(max_concurrent_tools=2)
    stage.tool("read", takes=1.0)
    stage.tool("write", takes=1.0, mutating=True)
    three = [call("read", id=f"r{n}") for n in range(3)]
    stage.says(calls(*three), calls(call("read", id="a"), call("write", id="b"), call("read", id="c")), say("x"))
    async with stage.session() as session:
        with stage.takes(2 + 3):
            events = await stage.events(await session.send_message("go"))

    assert list(ends(events))[3:] == ["a", "b", "c"]


async def test_a_failing_call_never_stops_its_siblings(stage, autojump_clock):
    """In a serial batch the calls after a failed one run all the same."""

    async def breaks(_):
        raise ValueError("broken")

    stage.tool("breaks", mutating=True, does=breaks)
    write = stage.tool("write", mutating=True)
    stage.says(calls("breaks", "write"), say("done"))
    _, result, _ = await told(stage)

    assert write.finished == 1
    assert [answer.is_error for answer in result.tool_results] == [True, False]


# limits


@pytest.mark.parametrize("serial", [False, True], ids=["concurrent", "serial"])
@pytest.mark.parametrize(
    ("batches", "runs"), [([3], 3), ([2, 1], 3), ([4], 3), ([2, 2], 3), ([3, 1], 3), ([9], 3)], ids=repr
)
async def test_the_limit_of_calls_is_exact(batches, runs, serial, stage, autojump_clock):
    """Calls up to the limit run, the others of that batch get an error result, and the turn fails."""
    stage.configure(max_tool_calls_per_turn=3)
    write = stage.tool("write", mutating=serial)
    for index, size in enumerate(batches):
        stage.says(calls(*[call("write", id=f"{index}-{n}") for n in range(size)]))
    stage.says(say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)
        result = await turn.result()
        notes = [message.content for message in session.history if isinstance(message, SystemMessage)]
        if sum(batches) > 3:
            assert (await (await session.send_message("again")).result()).text == "done"

    assert len(write.runs) == runs
    refused = [answer for answer in result.tool_results if answer.is_error]
    assert len(refused) == sum(batches) - runs
    assert all("limit" in answer.content for answer in refused)
    if sum(batches) <= 3:
        assert (result.status, notes) == (TurnStatus.COMPLETED, [])
        return
    assert isinstance(result.error, MaxToolCallsExceeded)
    assert "max_tool_calls_per_turn" in result.error.message
    assert notes == ["[The limit of 3 tool calls per turn is reached; this turn ends]"]
    assert events[-2:] == [
        ErrorEvent(result.error),
        TurnComplete(TurnStatus.FAILED, "", result.usage, result.error, stop_reason=StopReason.TOOL_USE),
    ]


async def test_unknown_tools_and_refusals_count_as_calls(stage, autojump_clock):
    """What did not run for another reason uses up the limit as well."""
    stage.configure(max_tool_calls_per_turn=2)
    write = stage.tool("write", parameters=SCHEMA)
    stage.says(calls("unknown", call("write", {"x": 0}, id="bad"), call("write", {"x": 1}, id="late")))
    _, result, _ = await told(stage)

    assert write.runs == []
    assert [answer.call_id for answer in result.tool_results if "limit" in answer.content] == ["late"]
    assert isinstance(result.error, MaxToolCallsExceeded)


async def test_each_turn_has_the_whole_limit(stage, autojump_clock):
    """The count starts anew with each turn."""
    stage.configure(max_tool_calls_per_turn=1)
    write = stage.tool("write")
    stage.says(calls("write"), say("one"), calls("write"), say("two"))
    async with stage.session() as session:
        for text in ("first", "second"):
            assert (await (await session.send_message(text)).result()).status is TurnStatus.COMPLETED

    assert len(write.runs) == 2


def in_mode(mode=None, budget=None):
    return AgentProfile("careful", ProfileKind.SKILL, "Careful", "Works with care.", mode=mode, budget=budget)


@pytest.mark.parametrize("place", ["profile", "mode"])
async def test_a_budget_of_rounds_is_kept(place, stage, autojump_clock):
    """``max_rounds=2``: calls of the first answer run; those of the second do not, and the turn fails."""
    budget = Budget(max_rounds=2)
    profile = in_mode(budget=budget) if place == "profile" else in_mode(mode=ReAct(budget))
    write = stage.tool("write")
    stage.says(calls(call("write", id="a")), calls(call("write", id="b")), say("never"))
    builder = stage.builder().register_profile(profile)
    async with builder.build() as agent, await agent.new_session(SessionConfig(skill="careful")) as session:
        result = await (await session.send_message("go")).result()

    assert len(write.runs) == 1
    assert isinstance(result.error, MaxToolCallsExceeded)
    assert "2 rounds" in result.error.message
    assert len(stage.provider.requests) == 2


@pytest.mark.parametrize("place", ["profile", "mode"])
async def test_a_budget_of_calls_is_kept(place, stage, autojump_clock):
    """``max_tool_calls`` of a budget takes the place of the agent's limit, and its message names it."""
    budget = Budget(max_tool_calls=1)
    profile = in_mode(budget=budget) if place == "profile" else in_mode(mode=ReAct(budget))
    write = stage.tool("write")
    stage.says(calls(call("write", id="a"), call("write", id="b")))
    builder = stage.builder().register_profile(profile)
    async with builder.build() as agent, await agent.new_session(SessionConfig(skill="careful")) as session:
        result = await (await session.send_message("go")).result()

    assert len(write.runs) == 1
    assert isinstance(result.error, MaxToolCallsExceeded)
    assert "1 tool call" in result.error.message


async def test_a_single_shot_sends_one_request_without_tools(stage, autojump_clock):
    """SingleShot: no tools; calls all the same are answered, and the turn completes without another request."""
    write = stage.tool("write")
    stage.says(calls("write", text="let me see"))
    builder = stage.builder().register_profile(in_mode(mode=SingleShot()))
    async with builder.build() as agent, await agent.new_session(SessionConfig(skill="careful")) as session:
        result = await (await session.send_message("go")).result()

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "let me see")
    assert write.runs == []
    assert stage.provider.requests[0].tools == ()


async def test_an_answer_of_the_tool_itself_may_be_an_error(stage, autojump_clock):
    """``ToolOutput(is_error=True)`` is a failed result that the model sees as the tool wrote it."""

    async def fails(_):
        return ToolOutput("no such file", is_error=True)

    stage.tool("read", does=fails)
    stage.says(calls("read"), say("done"))
    events, result, _ = await told(stage)

    assert result.tool_results[0].content == "no such file"
    assert ends(events)["read"].error.code is ErrorCode.TOOL_EXECUTION_ERROR


async def test_read_only_calls_start_in_the_order_of_the_calls(stage, autojump_clock):
    """Calls that run concurrently are handed over as the model wrote them: with two workers the first two run first."""
    stage.configure(max_concurrent_tools=2)
    read = stage.tool("read", takes=1.0)
    ids = [str(n) for n in range(7)]
    stage.says(calls(*(call("read", {"x": id}, id=id) for id in ids)), say("done"))
    async with stage.session() as session:
        events = await stage.events(await session.send_message("go"))

    assert ids == [event.call_id for event in events if isinstance(event, ToolCallStart)]
    assert ids == [arguments["x"] for arguments in read.runs]


async def test_hooks_of_read_only_calls_are_asked_in_the_order_of_the_calls(stage, autojump_clock):
    """They wait concurrently, but begin as the model wrote the calls."""
    asked = []

    async def thinks(event):
        asked.append(event.call_id)
        await trio.sleep(1)

    stage.on(BeforeToolUse, thinks)
    stage.tool("read")
    ids = [str(n) for n in range(8)]
    stage.says(calls(*(call("read", id=id) for id in ids)), say("done"))
    async with stage.session() as session:
        with stage.takes(1):
            await stage.turn(session)

    assert ids == asked


async def test_a_call_that_was_held_up_by_its_hook_takes_its_place_among_those_that_wait(stage, autojump_clock):
    """It comes behind what has started meanwhile, and before the calls that the model wrote after it."""

    async def thinks(event):
        if event.call_id == "0":
            await trio.sleep(1)

    stage.configure(max_concurrent_tools=1)
    stage.on(BeforeToolUse, thinks)
    stage.tool("read", takes=3.0)
    stage.says(calls(*(call("read", id=str(n)) for n in range(4))), say("done"))
    async with stage.session() as session:
        events = await stage.payloads(session)

    assert ["1", "0", "2", "3"] == [event.call_id for event in events if isinstance(event, ToolCallStart)]


async def test_a_call_whose_hook_thinks_holds_up_nobody(stage, autojump_clock):
    """The first call waits for its hook; the others start at once, and it starts when it may."""

    async def thinks(event):
        if event.call_id == "0":
            await trio.sleep(5)

    stage.on(BeforeToolUse, thinks)
    stage.tool("read", takes=1.0)
    stage.says(calls(*(call("read", id=str(n)) for n in range(3))), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        with stage.takes(6):
            events = await stage.events(turn)

    assert ["1", "2", "0"] == [event.call_id for event in events if isinstance(event, ToolCallStart)]

"""Tools that will not stop: reported on time, their slot given back, named in the statistics (semantics 6.1, 8)."""

from __future__ import annotations

import pytest
import trio
from youyou import AgentClosed, ErrorCode, ToolCallEnd, TurnStatus
from youyou.testing.agents.scripted import call, calls, say


async def shields(_):
    with trio.CancelScope(shield=True):
        await trio.sleep(100)


async def swallows(_):
    """Begins anew at each cancellation, until a hundred seconds have passed."""
    end = trio.current_time() + 100
    while trio.current_time() < end:
        try:
            await trio.sleep(end - trio.current_time())
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)


@pytest.fixture
def stuck(stage):
    """A conversation with one stubborn tool and room for one tool at a time."""
    stage.configure(tool_timeout_ms=10_000, tool_patience_ms=500, max_concurrent_tools=1)
    stage.tool("stubborn", does=shields)
    stage.tool("look")
    return stage


@pytest.mark.parametrize("does", [shields, swallows])
async def test_it_is_reported_as_timed_out(does, stuck, autojump_clock):
    """At time-out + patience its result is a time-out, the turn goes on, and the next tool gets its slot."""
    stuck.tools["stubborn"].does = does
    stuck.says(calls("stubborn"), calls("look"), say("done"))
    with pytest.warns(RuntimeWarning, match="stubborn"), stuck.takes(100):
        async with stuck.agent() as agent, await agent.new_session() as session:
            with stuck.takes(10.5):
                events = await stuck.events(await session.send_message("go"))
            assert ((), ("stubborn",)) == (agent.statistics().running, agent.statistics().stuck)

    first, second = [event for event in events if isinstance(event, ToolCallEnd)]
    assert (ErrorCode.TOOL_TIMEOUT, "Tool timed out after 10000ms") == (first.error.code, first.output.content)
    assert (True, TurnStatus.COMPLETED) == (second.success, events[-1].status)


async def test_it_is_forgotten_once_it_ends(stuck, autojump_clock, recwarn):
    """When a stuck tool ends after all, it is stuck no more, and leaving the agent warns of nothing."""
    stuck.says(calls("stubborn"), say("done"))
    async with stuck.agent() as agent, await agent.new_session() as session:
        await stuck.events(await session.send_message("go"))
        await trio.sleep(90)
        assert () == agent.statistics().stuck

    assert [] == list(recwarn)


async def test_two_sessions_may_have_stuck_calls_of_one_id(stuck, autojump_clock):
    """Ids of calls are unique within a session only: stuck calls of two sessions are two stuck calls."""
    stuck.says(calls("stubborn"), say("done"), calls("stubborn"), say("done"))
    async with stuck.agent() as agent:
        for _ in range(2):
            async with await agent.new_session() as session:
                await stuck.events(await session.send_message("go"))
        assert ("stubborn", "stubborn") == agent.statistics().stuck
        await trio.sleep(85)
        assert ("stubborn",) == agent.statistics().stuck
        await trio.sleep(15)
        assert () == agent.statistics().stuck


@pytest.mark.parametrize("grace, after", [(0, 0.5), (3.0, 3.5)])
async def test_a_cancel_with_grace_waits_no_longer_than_patience(grace, after, stuck, autojump_clock):
    """Cut by a grace it has ``tool_patience_ms`` to stop; then its outcome is unknown and the turn ends."""
    stuck.says(calls("stubborn"))
    with pytest.warns(RuntimeWarning, match="stubborn"):
        async with stuck.agent() as agent, await agent.new_session() as session:
            turn = await session.send_message("go")
            await trio.sleep(1)
            turn.cancel(grace=grace)
            with stuck.takes(after):
                events = await stuck.events(turn)
            assert ("stubborn",) == agent.statistics().stuck

    assert (("stubborn",), ()) == (events[-1].interrupted, events[-1].skipped)


async def test_the_host_s_cancel_does_not_wait_for_it_before_plugins(stuck, autojump_clock):
    """Cancelled by the host: the turn and the plugins end within the bound, the block waits for the tool."""
    ended = []

    async def notes_the_time():
        ended.append(trio.current_time())

    stuck.configure(tool_timeout_ms=60_000)
    stuck.plugin("plugin", stopping=notes_the_time)
    stuck.says(calls("stubborn"))
    with pytest.warns(RuntimeWarning, match="stubborn"), stuck.takes(100), trio.move_on_after(1) as host:
        async with stuck.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert host.cancelled_caught
    assert [6.0] == ended
    assert ["user: go", "call stubborn", "unknown stubborn"] == stuck.stored()


@pytest.mark.parametrize(("takes", "accused"), [(0.05, 0), (0.4, 0), (0.6, 1)])
async def test_cleaning_up_for_a_moment_is_not_an_accusation(takes, accused, stuck, recwarn, autojump_clock):
    """After the host's cancel a tool has its patience, counted from its cut, before a warning names it."""

    async def cleans_up(_):
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(takes)

    stuck.configure(shutdown_grace_ms=100)
    stuck.tools["stubborn"].does = cleans_up
    stuck.says(calls("stubborn"))
    with trio.move_on_after(1), stuck.takes(1.1 + takes):
        async with stuck.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert accused == len(recwarn)


async def test_nothing_it_does_later_is_visible(stuck, autojump_clock):
    """What a stuck tool reports or returns after it was given up does not reach anybody."""

    async def reports_late(input):
        await shields(input)
        input.report("late")

    stuck.tools["stubborn"].does = reports_late
    stuck.says(calls("stubborn"), [60.0, *say("done")], say("again"))
    async with stuck.agent() as agent, await agent.new_session() as session:
        events = await stuck.events(await session.send_message("go"))
        await trio.sleep(60)
        more = await stuck.events(await session.send_message("go"))
        assert () == agent.statistics().stuck

    names = ["ToolCallStart", "ToolCallEnd", "TextDelta", "TurnComplete", "TextDelta", "TurnComplete"]
    assert names == [type(event).__name__ for event in (*events, *more)]
    assert 1 == stuck.stored().count("failed stubborn")


async def test_a_tool_waits_for_the_slot_of_another(stuck, autojump_clock):
    """With one slot, a second call of the batch starts when the first was given up, and its clock starts then."""
    stuck.tool("slow", takes=9.0)
    stuck.says(calls(call("stubborn", id="a"), call("slow", id="b"), call("slow", id="c")), say("done"))
    with pytest.warns(RuntimeWarning, match="stubborn"):
        async with stuck.session() as session:
            with stuck.takes(10.5 + 9 + 9):
                events = await stuck.events(await session.send_message("go"))

    ends = {event.call_id: event for event in events if isinstance(event, ToolCallEnd)}
    assert {"a": False, "b": True, "c": True} == {call_id: end.success for call_id, end in ends.items()}
    assert [10_500, 9_000, 9_000] == [ends[call_id].duration_ms for call_id in "abc"]


async def test_an_agent_that_still_waits_is_closed(stuck, autojump_clock):
    """While the very end waits for a stuck tool, the agent is closed already."""
    stuck.says(calls("stubborn"), say("done"))
    with pytest.warns(RuntimeWarning, match="stubborn"):
        async with stuck.agent() as agent:
            session = await agent.new_session()
            await stuck.events(await session.send_message("go"))
            with stuck.takes(0):
                await agent.shutdown()
            with pytest.raises(AgentClosed):
                await agent.new_session()

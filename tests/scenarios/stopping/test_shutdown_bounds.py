"""Things that never return, one at a time: the agent is left within the bound that is stated (semantics 6.1 to 6.4)."""

from __future__ import annotations

import pytest
import trio
from youyou import AfterToolUse, BeforeToolUse, Done, SessionEnd, TextDelta, TurnEnd, TurnStart
from youyou.testing import FaultPlan
from youyou.testing.agents.scripted import StrictProvider, calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage, InMemorySessionStorage

BOUNDS = {
    "tool_timeout_ms": 20_000,
    "tool_patience_ms": 500,
    "hook_timeout_ms": 7_000,
    "storage_timeout_ms": 6_000,
    "memory_timeout_ms": 9_000,
    "plugin_timeout_ms": 5_000,
    "stream_idle_timeout_ms": 40_000,
}


async def never_ends(*_):
    await trio.sleep_forever()


@pytest.fixture
def bounded(stage):
    """A conversation with short bounds, and a plugin before and one after whatever a test adds."""
    stage.configure(**BOUNDS)
    stage.plugin("first")
    yield stage
    assert ["last ends", "last ended", "first ends", "first ended"] == [
        line for line in stage.log if line in ("last ends", "last ended", "first ends", "first ended")
    ]


async def leaves_within(stage, seconds, *, idle=1.0):
    """Send a message, let a second pass, and leave: that takes exactly so long."""
    stage.plugin("last")
    async with stage.agent() as agent:
        session = await agent.new_session()
        turn = await session.send_message("go")
        turn.detach()
        await trio.sleep(idle)
        with stage.takes(seconds):
            await agent.shutdown()


async def test_a_provider_that_never_yields(bounded, autojump_clock):
    """A stream that says nothing is closed at once."""
    bounded.says([1_000.0, Done()])
    await leaves_within(bounded, 0)


@pytest.mark.parametrize("said", [[TextDelta("a")], [TextDelta("a"), Done()]], ids=["cut", "whole"])
async def test_a_provider_whose_stream_never_closes(said, bounded, autojump_clock):
    """A stream whose closing hangs is left at once, whether it had said all or not."""

    class NeverCloses(StrictProvider):
        async def chat(self, request):
            try:
                for event in said:
                    yield event
                await trio.sleep_forever()
            finally:
                if len(said) == 2:
                    await trio.sleep_forever()

    bounded.provider = NeverCloses([])
    await leaves_within(bounded, 0)


async def test_a_tool(bounded, autojump_clock):
    """A tool is cut at its own time-out."""
    bounded.tool("look", does=never_ends)
    bounded.says(calls("look"))
    await leaves_within(bounded, 19)


@pytest.mark.parametrize("hook", [TurnStart, BeforeToolUse, AfterToolUse, TurnEnd])
async def test_a_hook_of_a_turn(hook, bounded, autojump_clock):
    """A hook that runs when the agent is left has ``hook_timeout_ms``."""
    bounded.tool("look")
    bounded.on(hook, never_ends)
    bounded.says(calls("look") if hook is not TurnEnd else say("done"))
    await leaves_within(bounded, 7)


async def test_a_session_end_hook(bounded, autojump_clock):
    """A SessionEnd hook has ``hook_timeout_ms``."""
    bounded.on(SessionEnd, never_ends)
    bounded.says(say("done"))
    await leaves_within(bounded, 7)


async def test_an_extraction(bounded, autojump_clock):
    """The last extraction has ``memory_timeout_ms``, whether its model or its storage hangs."""
    bounded.memories = InMemoryMemoryStorage()
    bounded.says(say("done"))
    bounded.extracts([1_000.0, Done()])
    await leaves_within(bounded, 9)


@pytest.mark.parametrize("method, call", [("search", 2), ("save", 1)])
async def test_a_memory_storage(method, call, bounded, autojump_clock):
    """A memory storage that hangs in the last extraction is left after ``memory_timeout_ms``."""
    plan = FaultPlan().at("memories", method, call=call, mode="hang")
    bounded.ports["memories"] = plan.wrap("memories", InMemoryMemoryStorage())
    bounded.says(say("done"))
    bounded.extracts(say('[{"content": "likes tea"}]'))
    await leaves_within(bounded, 9)


async def test_a_plugin(bounded, autojump_clock):
    """A plugin whose shutdown hangs has ``plugin_timeout_ms``; those before it are shut down after it."""
    bounded.plugin("bad", stopping=never_ends)
    bounded.says(say("done"))
    await leaves_within(bounded, 5)
    assert "bad ended" not in bounded.log


class Hanging(InMemorySessionStorage):
    """A store that never answers a write."""

    async def save_events(self, session_id, events):
        await trio.sleep_forever()


async def test_a_session_storage(bounded, autojump_clock):
    """A store that hangs for good: a try is given up after ``storage_timeout_ms``, and there are at most four.

    The write under way, and one more try at the end of the turn, of the session and of the agent.
    """
    bounded.loses_log = True
    bounded.ports["store"] = Hanging()
    await leaves_within(bounded, 4 * 6 - 1)


async def test_a_session_storage_that_hangs_on_the_host_s_cancel(bounded, autojump_clock):
    """With a store that hangs, a forced shutdown ends within grace + closing, and both plugins have their share."""
    bounded.loses_log = True
    bounded.plugin("last")
    bounded.ports["store"] = Hanging()
    with bounded.takes(1 + 7, at_most=True), trio.move_on_after(1):
        async with bounded.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()


async def test_several_plugins_that_hang_are_each_bounded(bounded, autojump_clock):
    """Two plugins that hang take twice ``plugin_timeout_ms``."""
    bounded.plugin("bad", stopping=never_ends)
    bounded.plugin("worse", stopping=never_ends)
    bounded.says(say("done"))
    await leaves_within(bounded, 10)


# what shields itself


async def shields(*_):
    with trio.CancelScope(shield=True):
        await trio.sleep(100)


async def test_a_plugin_that_shields_holds_up_only_the_very_end(bounded, autojump_clock):
    """A shutdown that cannot be cut: the others are shut down on time, leaving the agent waits for it."""
    bounded.plugin("bad", stopping=shields)
    bounded.says(say("done"))
    with bounded.takes(1 + 100):
        await leaves_within(bounded, 5.5)


async def test_a_tool_that_shields_holds_up_only_the_very_end(bounded, autojump_clock):
    """A tool that cannot be cut: the turn ends at time-out + patience, plugins on time, and a warning names it."""
    bounded.tool("look", does=shields)
    bounded.says(calls("look"))
    with pytest.warns(RuntimeWarning, match="look"), bounded.takes(100):
        await leaves_within(bounded, 19.5)


async def test_a_plugin_that_does_not_end_in_time_is_named(bounded, caplog, autojump_clock):
    """In the log, once; one that ends is not."""
    bounded.plugin("slow", stopping=never_ends)
    bounded.plugin("last")
    async with bounded.agent():
        pass
    assert ["plugin slow did not end in time"] == [
        record.getMessage().replace("'", "") for record in caplog.records if "end in time" in record.getMessage()
    ]

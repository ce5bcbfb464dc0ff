"""Context variables of the task that asked are there in all that works for them (semantics 1.1; tracing spans nest)."""

from __future__ import annotations

from contextvars import ContextVar

import pytest
import trio
from youyou import (
    AfterToolUse,
    BeforeToolUse,
    SessionEnd,
    SessionStart,
    TurnEnd,
    TurnStart,
    tool,
)
from youyou.testing.agents.scripted import StrictProvider, call, calls, say

span = ContextVar("span", default="none")


@pytest.fixture
def seen():
    """Where each part wrote down the span it ran in."""
    return {}


def noting(seen, name):
    async def note(_):
        seen[name] = span.get()

    return note


async def test_a_turn_and_its_tools_run_in_the_context_of_the_message(stage, seen, autojump_clock):
    """Hooks, provider and tools of a turn see the variables as they were at `send_message`."""

    class Noting(StrictProvider):
        def chat(self, request):
            seen["provider"] = span.get()
            return super().chat(request)

    stage.provider = Noting([calls("write"), say("done")])
    stage.tool("write", does=noting(seen, "tool"))
    for hook in (SessionStart, TurnStart, BeforeToolUse, AfterToolUse, TurnEnd):
        stage.on(hook, noting(seen, hook.__name__))
    async with stage.agent() as agent:
        span.set("opening")
        async with await agent.new_session() as session:
            span.set("message")
            turn = await session.send_message("go")
            span.set("later")
            await turn.result()

    names = ["TurnStart", "BeforeToolUse", "AfterToolUse", "TurnEnd", "provider", "tool"]
    assert seen == {"SessionStart": "opening", **dict.fromkeys(names, "message")}


async def test_each_message_brings_its_own(stage, seen, autojump_clock):
    """A queued message runs in its own context, not in that of the turn before it."""
    stage.tool("write", takes=1.0, does=noting(seen, "tool"))
    stage.says(calls("write"), say("one"), calls("write"), say("two"))
    async with stage.session() as session:
        span.set("first")
        one = await session.send_message("one")
        span.set("second")
        two = await session.send_message("two", queue=True)
        await one.result()
        assert seen == {"tool": "first"}
        await two.result()

    assert seen == {"tool": "second"}


async def test_what_a_hook_sets_reaches_its_tool_and_no_other(stage, seen, autojump_clock):
    """A BeforeToolUse hook may open a span for one call: the calls beside it do not see it."""

    async def opens(event):
        span.set(f"call {event.call_id}")

    async def notes(input):
        await trio.sleep(1)
        seen[input.call_id] = span.get()
        span.set("mine")

    stage.tool("read", does=notes)
    stage.on(BeforeToolUse, opens)
    stage.on(AfterToolUse, noting(seen, "after"))
    stage.says(calls(call("read", id="a"), call("read", id="b")), say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert seen["a"] == "call a"
    assert seen["b"] == "call b"
    assert seen["after"] in ("call a", "call b")


async def test_nothing_leaks_into_the_hosts_context(stage, autojump_clock):
    """What hooks and tools set stays with them."""

    async def sets(_):
        span.set("inside")
        return

    stage.tool("write", does=sets)
    for hook in (SessionStart, TurnStart, TurnEnd, SessionEnd):
        stage.on(hook, sets)
    stage.says(calls("write"), say("done"))
    span.set("host")
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert span.get() == "host"


async def test_a_tool_in_a_thread_sees_them_too(stage):
    """A plain function runs in its thread with the context of the message."""
    seen = []

    @tool
    def write() -> None:
        seen.append(span.get())

    stage.says(calls("write"), say("done"))
    async with stage.builder(write).build() as agent, await agent.new_session() as session:
        span.set("message")
        await (await session.send_message("go")).result()

    assert seen == ["message"]


async def test_two_sessions_do_not_share_them(stage, seen, autojump_clock):
    """The next session starts from the context of the task that opens it."""
    stage.on(SessionStart, noting(seen, "start"))
    async with stage.agent() as agent:
        for name in ("one", "two"):
            span.set(name)
            async with await agent.new_session():
                assert seen["start"] == name

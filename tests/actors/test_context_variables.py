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


async def test_a_turn_and_its_tools_run_in_the_context_of_the_message(conversation, seen, autojump_clock):
    """Hooks, provider and tools of a turn see the variables as they were at `send_message`."""

    class Noting(StrictProvider):
        def chat(self, request):
            seen["provider"] = span.get()
            return super().chat(request)

    conversation.provider = Noting([calls("write"), say("done")])
    conversation.tool("write", does=noting(seen, "tool"))
    for hook in (SessionStart, TurnStart, BeforeToolUse, AfterToolUse, TurnEnd):
        conversation.on(hook, noting(seen, hook.__name__))
    async with conversation.agent() as agent:
        span.set("opening")
        async with await agent.new_session() as session:
            span.set("message")
            turn = await session.send_message("go")
            span.set("later")
            await turn.result()

    names = ["TurnStart", "BeforeToolUse", "AfterToolUse", "TurnEnd", "provider", "tool"]
    assert seen == {"SessionStart": "opening", **dict.fromkeys(names, "message")}


async def test_each_message_brings_its_own(conversation, seen, autojump_clock):
    """A queued message runs in its own context, not in that of the turn before it."""
    conversation.tool("write", takes=1.0, does=noting(seen, "tool"))
    conversation.says(calls("write"), say("one"), calls("write"), say("two"))
    async with conversation.session() as session:
        span.set("first")
        one = await session.send_message("one")
        span.set("second")
        two = await session.send_message("two", queue=True)
        await one.result()
        assert seen == {"tool": "first"}
        await two.result()

    assert seen == {"tool": "second"}


async def test_what_a_hook_sets_reaches_its_tool_and_no_other(conversation, seen, autojump_clock):
    """A BeforeToolUse hook may open a span for one call: the calls beside it do not see it."""

    async def opens(event):
        span.set(f"call {event.call_id}")

    async def notes(input):
        await trio.sleep(1)
        seen[input.call_id] = span.get()
        span.set("mine")

    conversation.tool("read", does=notes)
    conversation.on(BeforeToolUse, opens)
    conversation.on(AfterToolUse, noting(seen, "after"))
    conversation.says(calls(call("read", id="a"), call("read", id="b")), say("done"))
    async with conversation.session() as session:
        await (await session.send_message("go")).result()

    assert seen["a"] == "call a"
    assert seen["b"] == "call b"
    assert seen["after"] in ("call a", "call b")


async def test_nothing_leaks_into_the_hosts_context(conversation, autojump_clock):
    """What hooks and tools set stays with them."""

    async def sets(_):
        span.set("inside")
        return

    conversation.tool("write", does=sets)
    for hook in (SessionStart, TurnStart, TurnEnd, SessionEnd):
        conversation.on(hook, sets)
    conversation.says(calls("write"), say("done"))
    span.set("host")
    async with conversation.session() as session:
        await (await session.send_message("go")).result()

    assert span.get() == "host"


async def test_a_tool_in_a_thread_sees_them_too(conversation):
    """A plain function runs in its thread with the context of the message."""
    seen = []

    @tool
    def write() -> None:
        seen.append(span.get())

    conversation.says(calls("write"), say("done"))
    async with conversation.builder(write).build() as agent, await agent.new_session() as session:
        span.set("message")
        await (await session.send_message("go")).result()

    assert seen == ["message"]


async def test_two_sessions_do_not_share_them(conversation, seen, autojump_clock):
    """The next session starts from the context of the task that opens it."""
    conversation.on(SessionStart, noting(seen, "start"))
    async with conversation.agent() as agent:
        for name in ("one", "two"):
            span.set(name)
            async with await agent.new_session():
                assert seen["start"] == name

"""Ctrl-C and SystemExit, wherever they come from, stop hard and reach the host bare (semantics 3, 6.2)."""

from __future__ import annotations

import signal
from contextlib import asynccontextmanager

import pytest
import trio
from youyou import (
    AfterToolUse,
    BeforeToolUse,
    Done,
    SessionEnd,
    SessionStart,
    TextDelta,
    TurnEnd,
    TurnStart,
    TurnStatus,
)
from youyou.testing.agents.scripted import StrictProvider, calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage, InMemorySessionStorage

INTERRUPTS = [KeyboardInterrupt, SystemExit]
HOOKS = [SessionStart, TurnStart, BeforeToolUse, AfterToolUse, TurnEnd, SessionEnd]


def raiser(interrupt):
    async def raises(*_):
        raise interrupt("on purpose")

    return raises


@pytest.mark.parametrize("interrupt", INTERRUPTS)
async def test_out_of_the_body(interrupt, stage, autojump_clock):
    """The body is left by an interrupt: tools get the grace, no SessionEnd hook runs, and it arrives as it was."""
    write = stage.tool("write", takes=3.0)
    stage.on(SessionEnd)
    stage.plugin("plugin")
    stage.says(calls("write"))
    mine = interrupt("on purpose")
    with stage.takes(3), pytest.raises(interrupt) as caught:
        async with stage.session() as session:
            await session.send_message("go")
            await trio.sleep(1)
            raise mine

    assert mine is caught.value
    assert write.finished == 1
    assert stage.log == ["plugin begins", "plugin ends", "plugin ended"]
    assert [end["status"] for end in stage.facts("turn_ended")] == ["cancelled"]


@pytest.mark.parametrize("interrupt", INTERRUPTS)
async def test_out_of_a_task_of_the_body(interrupt, stage, autojump_clock):
    """Also out of a group that the body's own nursery made of it, the interrupt arrives bare."""
    with pytest.raises(interrupt):
        async with stage.session(), trio.open_nursery() as nursery:
            nursery.start_soon(raiser(interrupt))
            await trio.sleep_forever()


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("hook", HOOKS)
async def test_out_of_a_hook(hook, interrupt, stage, autojump_clock):
    """Raised in any hook, it ends a body that would never end by itself."""
    stage.tool("look")
    stage.on(hook, raiser(interrupt))
    stage.says(calls("look"), say("done"))
    with stage.takes(0), pytest.raises(interrupt, match="on purpose"):
        async with stage.session() as session:
            turn = await session.send_message("go")
            if hook is SessionEnd:
                await turn.result()
                await session.close()
            await trio.sleep_forever()


async def test_out_of_a_tool(stage, autojump_clock):
    """Ctrl-C in a tool: its siblings get the grace, the tool's outcome is unknown, the host gets the Ctrl-C."""
    stage.tool("bad", takes=1.0, does=raiser(KeyboardInterrupt))
    stage.tool("good", takes=3.0)
    stage.says(calls("bad", "good"))
    with stage.takes(3), pytest.raises(KeyboardInterrupt, match="on purpose"):
        async with stage.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert stage.stored() == ["user: go", "call bad", "call good", "unknown bad", "ok good"]


async def test_system_exit_out_of_a_tool_is_an_error_result(stage, autojump_clock):
    """A tool that calls sys.exit() has failed; nothing else ends."""
    stage.tool("bad", does=raiser(SystemExit))
    stage.says(calls("bad"), say("done"))
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "done")
    assert stage.stored() == ["user: go", "call bad", "failed bad", "assistant: done"]


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("where", ["call", "enter", "stream", "leave"])
async def test_out_of_a_provider(where, interrupt, stage, autojump_clock):
    """Raised when a stream is asked for, entered, read or left, it reaches the host."""

    class Bad(StrictProvider):
        def chat(self, request):
            if where == "call":
                raise interrupt("on purpose")
            return self.stream(super().chat(request))

        @asynccontextmanager
        async def stream(self, inner):
            if where == "enter":
                raise interrupt("on purpose")
            async with inner as events:
                yield events
            raise interrupt("on purpose")

    stage.provider = Bad([[TextDelta("a"), *([interrupt("on purpose")] if where == "stream" else []), Done()]])
    with stage.takes(0), pytest.raises(interrupt, match="on purpose"):
        async with stage.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("method", ["save_events", "load_session"])
async def test_out_of_a_session_storage(method, interrupt, stage, autojump_clock):
    """Raised while a session is stored or loaded, it reaches the host."""
    stage.ports["store"] = Port(InMemorySessionStorage(), method, interrupt)
    with stage.takes(0), pytest.raises(interrupt, match="on purpose"):
        async with stage.agent() as agent:
            opens = agent.new_session() if method == "save_events" else agent.resume_session("s")
            session = await opens
            await trio.sleep_forever()
            await session.close()


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("method", ["search", "save"])
async def test_out_of_a_memory_storage(method, interrupt, stage, autojump_clock):
    """Raised while memories are searched or saved, it reaches the host."""
    stage.ports["memories"] = Port(InMemoryMemoryStorage(), method, interrupt)
    stage.says(say("hello"))
    stage.extracts(say('[{"content": "likes tea"}]'))
    with stage.takes(0), pytest.raises(interrupt, match="on purpose"):
        async with stage.session() as session:
            await (await session.send_message("go")).result()
            await session.close()
            await trio.sleep_forever()


class Port:
    """A storage one of whose methods raises an interrupt."""

    def __init__(self, inner, method, interrupt):
        self.inner = inner
        setattr(self, method, raiser(interrupt))

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.mark.parametrize("interrupt", INTERRUPTS)
@pytest.mark.parametrize("phase", ["starting", "stopping"])
async def test_out_of_a_plugin(phase, interrupt, stage, autojump_clock):
    """Raised while a plugin is initialised or shut down, it reaches the host, and the others are shut down."""
    stage.plugin("first")
    stage.plugin("bad", **{phase: raiser(interrupt)})
    with stage.takes(0), pytest.raises(interrupt, match="on purpose"):
        async with stage.session():
            pass

    assert stage.log[-2:] == ["first ends", "first ended"]


@pytest.mark.parametrize("interrupt", INTERRUPTS)
async def test_out_of_apply(interrupt, stage, autojump_clock):
    """Raised in a plugin's ``apply``, it reaches the host, and the plugins are shut down."""
    stage.plugin("first")
    bad = stage.plugin("bad")
    bad.taps = Raising(interrupt)
    with pytest.raises(interrupt, match="on purpose"):
        async with stage.session():
            pass

    assert stage.log[-4:] == ["bad ends", "bad ended", "first ends", "first ended"]


class Raising:
    """Something that cannot be iterated over."""

    def __init__(self, interrupt):
        self.interrupt = interrupt

    def __iter__(self):
        raise self.interrupt("on purpose")


@pytest.mark.usefixtures("sigint_as_in_a_terminal")
async def test_a_real_ctrl_c_in_a_tool(stage, autojump_clock):
    """A SIGINT that arrives while a tool's code runs is raised there, and reaches the host bare."""

    async def presses_ctrl_c(_):
        signal.raise_signal(signal.SIGINT)

    stage.tool("bad", does=presses_ctrl_c)
    stage.says(calls("bad"))
    with stage.takes(0), pytest.raises(KeyboardInterrupt):
        async with stage.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert stage.stored() == ["user: go", "call bad", "unknown bad"]


async def test_a_body_that_catches_its_cancellation_still_gets_the_interrupt(stage, autojump_clock):
    """An interrupt out of a hook ends the body by cancelling it; what the body does then hides nothing."""
    stage.on(TurnStart, raiser(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt, match="on purpose"):
        async with stage.session() as session:
            await session.send_message("go")
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("in my finally")


async def test_the_agent_in_a_task_of_its_own(stage, autojump_clock):
    """With ``nursery.start(builder.serve)`` an interrupt out of a tool ends the nursery."""
    stage.tool("bad", does=raiser(KeyboardInterrupt))
    stage.says(calls("bad"))
    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            agent = await nursery.start(stage.builder().serve)
            session = await agent.new_session()
            await session.send_message("go")
            await trio.sleep_forever()

    assert None is caught.value.split(KeyboardInterrupt)[1]

"""The host's own cancellation in every phase of a turn (semantics 6.2)."""

from __future__ import annotations

import attrs
import pytest
import trio
from youyou import (
    AfterToolUse,
    BeforeCompact,
    BeforeToolUse,
    Done,
    ProviderError,
    SessionEnd,
    TextDelta,
    ToolOutput,
    TurnEnd,
    TurnStart,
)
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, call, calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage

LONG = 60.0


async def lasts(_=None):
    await trio.sleep(LONG)


def hook(event_class, *rounds):
    def resolve_setup(talk):
        talk.tool("look")
        talk.on(event_class, lasts)
        talk.says(*rounds)

    return resolve_setup


def streaming(talk):
    talk.says([TextDelta("half"), LONG, Done()])


def silent(talk):
    talk.says([LONG, Done()])


def retry_wait(talk):
    talk.says([ProviderError("no", retryable=True, retry_after_ms=60_000)])


def summary(talk):
    rounds = [calls("big"), [LONG, Done()]]
    talk.provider = StrictProvider(rounds, models=[attrs.evolve(SCRIPTED_MODEL, context_window=400)])
    talk.tool("big", takes=0.5, does=says_much)


async def says_much(_):
    return ToolOutput("x" * 2_000)


def read_only_tools(talk):
    talk.tool("look", takes=LONG)
    talk.says(calls(call("look", id="a"), call("look", id="b")))


def serial_batch(talk):
    talk.tool("write", takes=LONG, mutating=True)
    talk.says(calls(call("write", id="a"), call("write", id="b")))


def recall(talk):
    class Slow(InMemoryMemoryStorage):
        async def search(self, namespace, query, limit):
            await lasts()

    talk.ports["memories"] = Slow()


PHASES = {
    "TurnStart": hook(TurnStart),
    "BeforeToolUse": hook(BeforeToolUse, calls("look")),
    "AfterToolUse": hook(AfterToolUse, calls("look")),
    "TurnEnd": hook(TurnEnd, say("done")),
    "streaming": streaming,
    "silent": silent,
    "retry wait": retry_wait,
    "summary": summary,
    "read-only tools": read_only_tools,
    "serial batch": serial_batch,
    "recall": recall,
}
AT_ONCE = {"streaming", "silent", "retry wait", "summary", "recall"}
"""Phases in which nothing is given any grace: they end at the cancel itself."""


@pytest.mark.parametrize("grace", [0, 5])
@pytest.mark.parametrize("phase", PHASES)
async def test_cancelled_in_a_phase_of_a_turn(phase, grace, stage, autojump_clock):
    """Cancelled propagates after the grace, given once; the log is whole and resumes; SessionEnd does not run."""
    PHASES[phase](stage)
    stage.configure(shutdown_grace_ms=grace * 1000)
    stage.on(SessionEnd)
    stage.plugin("first")
    stage.plugin("second")
    with stage.takes(1 + (0 if phase in AT_ONCE else grace)):
        with trio.move_on_after(1) as host:
            async with stage.session() as session:
                turn = await session.send_message("go")
                await turn.result()

    assert host.cancelled_caught
    assert "SessionEnd begins" not in stage.log
    assert stage.log[-4:] == ["second ends", "second ended", "first ends", "first ended"]
    assert [session.id] == list(stage.store._sessions)
    await resume_and_talk(stage, session.id)


async def resume_and_talk(stage, session_id):
    stage.provider = StrictProvider([say("hello again")])
    stage.ports.clear()
    stage.plugins.clear()
    async with stage.agent() as agent, await agent.resume_session(session_id) as session:
        assert (await (await session.send_message("hi")).result()).text == "hello again"


@pytest.mark.parametrize("hook_class", [BeforeCompact, AfterToolUse])
async def test_a_hook_that_ends_in_time_ends(hook_class, stage, autojump_clock):
    """A hook that needs less than the grace finishes after the host's cancel."""
    summary(stage)

    async def sleeps_2(_):
        await trio.sleep(2)

    stage.on(hook_class, sleeps_2)
    with trio.move_on_after(1):
        async with stage.session() as session:
            await (await session.send_message("go")).result()

    name = hook_class.__name__
    assert [f"{name} begins", f"{name} ended"] == stage.log

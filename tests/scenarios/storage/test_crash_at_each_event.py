"""The process dies at any event, at any step: what is stored resumes, and nothing is done twice (semantics 7)."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
import trio
from youyou import AgentBuilder, AgentConfig, Metadata, Notices, Tool, ToolCall, ToolOutput, ToolResult, UserMessage
from youyou.core.randomness import randomness
from youyou.messages.content import text_of
from youyou.testing import InMemorySessionStorage, sweep
from youyou.testing.agents.scripted import call, calls, say

LONG = "word " * 200


@attrs.define(eq=False, slots=False)
class Dying(InMemorySessionStorage):
    """Keeps ``lives`` events and then never answers again. ``torn``: of the batch that is one too many, too."""

    lives: int = 10_000
    torn: bool = False
    dead: trio.Event = attrs.Factory(trio.Event)

    async def save_events(self, session_id, events):
        room = self.lives - len(self.events(session_id))
        if len(events) <= room:
            await super().save_events(session_id, events)
        else:
            if self.torn:
                await super().save_events(session_id, events[:room])
            self.dead.set()
            await trio.sleep_forever()


def answer(request):
    """Two mutating calls for "work", words for anything else."""
    newest = request.messages[-1]
    if isinstance(newest, UserMessage) and text_of(newest.content) == "work":
        return calls(call("write", {"what": "a"}, id="a"), call("write", {"what": "b"}, id="b"), text="I will. " + LONG)
    return say("done " + LONG)


def agent_on(model, store, world):
    """An agent whose tool leaves its mark in the ``world``, in an answer too long for two of them."""

    async def write(given):
        world[given.arguments["what"]] += 1
        await trio.sleep(1)
        return ToolOutput(given.arguments["what"] * 3_000)

    config = AgentConfig("scripted", notices=Notices.english(), shutdown_grace_ms=0, closing_ms=1)
    builder = AgentBuilder(config).register_model_provider(model).register_session_storage(store)
    return builder.register_tool(Tool("write", "Writes.", {"type": "object"}, write, mutating=True)).build()


async def talk(agent, opened):
    """A turn to begin with, and one with two mutating calls and a compaction."""
    async with await agent.new_session() as session:
        opened.append(session.id)
        for text in ("hello " + LONG, "work"):
            await (await session.send_message(text)).result()


async def goes_on(model, store, world, session_id):
    """What must hold of a session whose process has died: nothing is run again, and it takes the next message."""
    before = Counter(world)
    log = [event.payload for event in store.events(session_id)]
    started = [fact.value["call_id"] for fact in log if isinstance(fact, Metadata) and fact.key == "tool_started"]
    answered = [message.call_id for message in log if isinstance(message, ToolResult)]
    called = [message.call_id for message in log if isinstance(message, ToolCall)]
    async with agent_on(model, store, world) as agent, await agent.resume_session(session_id) as session:
        outcomes = {m.call_id: str(m.outcome) for m in session.history if isinstance(m, ToolResult)}
        result = await (await session.send_message("and now?")).result()

    assert ("completed", before) == (result.status, Counter(world))
    assert max(world.values(), default=0) <= 1
    assert set(world) <= set(started) <= set(called)
    assert [] == model.violations
    expected = {c: "ok" if c in answered else "unknown" if c in started else "skipped" for c in called}
    compacted = any(isinstance(fact, Metadata) and fact.key == "compaction" for fact in log)
    assert compacted or expected == outcomes
    results = [event.payload for event in store.events(session_id) if isinstance(event.payload, ToolResult)]
    assert sorted(called) == sorted(result.call_id for result in results)


@pytest.fixture
def model(stage):
    """Answers by what it is asked, so that it serves before and after a death."""
    stage.window(2_000)
    stage.provider.answer = answer
    return stage.provider


async def whole_log(model):
    """The events of the talk, when nobody dies."""
    store, opened = InMemorySessionStorage(), []
    async with agent_on(model, store, Counter()) as agent:
        await talk(agent, opened)
    return [event.payload for event in store.events(opened[0])]


async def test_a_store_that_stops_after_any_event_leaves_a_session_that_goes_on(model, autojump_clock):
    """For each event, with the batch it was in refused and torn: resumed, sendable, each tool run once at most."""
    log = await whole_log(model)
    kinds = Counter(fact.key for fact in log if isinstance(fact, Metadata))
    assert (2, 1) == (kinds["tool_started"], kinds["compaction"])

    for torn in (False, True):
        for lives in range(1, len(log) + 1):
            store, world, opened = Dying(lives=lives, torn=torn), Counter(), []
            with trio.CancelScope() as process:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_die_with, store, process)
                    async with agent_on(model, store, world) as agent:
                        await talk(agent, opened)
                        process.cancel("the process ends by itself")
            left = InMemorySessionStorage()
            if events := store.events(opened[0]):
                await left.save_events(opened[0], events)
                await goes_on(model, left, world, opened[0])


async def _die_with(store, process):
    await store.dead.wait()
    await trio.sleep(0.5)  # what does not wait for the store goes on for a while
    process.cancel("the process dies")


@attrs.define(eq=False)
class World:
    """What outlives a crash, beside the store: what the tools did, and the session's id as the user noted it."""

    done: Counter = attrs.Factory(Counter)
    opened: list = attrs.Factory(list)


def crash_sweep(make_model, points):
    """The talk, crashed at so many steps, and a recovery from what each crash left."""

    def parts(sim):
        randomness.set(sim.random)
        return sim.durable("store", InMemorySessionStorage(delay=0.5)), sim.durable("world", World())

    async def scenario(sim):
        store, world = parts(sim)
        async with agent_on(make_model(), sim.port("store", store), world.done) as agent:
            await talk(agent, world.opened)

    async def recovery(sim):
        store, world = parts(sim)
        for session_id in world.opened:
            if store.events(session_id):
                await goes_on(make_model(), store, world.done, session_id)

    return sweep(scenario, cancel=None, crash=recovery, points=points)


@pytest.fixture
def make_model(stage):
    """A new model for each process."""

    def make():
        stage.window(2_000)
        stage.provider.answer = answer
        return stage.provider

    return make


def test_a_crash_at_some_steps_is_recovered_from(make_model):
    """A sample of all steps, the store as it was at that step."""
    report = crash_sweep(make_model, 25)

    report.assert_ok()
    assert report.runs >= 40


@pytest.mark.long
def test_a_crash_at_any_step_is_recovered_from(make_model):
    """Every step of every task."""
    report = crash_sweep(make_model, "every-step")

    report.assert_ok()
    assert report.runs >= 2 * report.planned

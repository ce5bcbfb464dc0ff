"""What an extraction may answer and how it may fail: never in the way, nothing foreign touched (semantics 12)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
import trio
from youyou import Memory, TextDelta
from youyou.messages.content import text_of
from youyou.testing import InMemoryMemoryStorage
from youyou.testing.agents.scripted import say

OLD = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def remembering(stage):
    """An agent with two namespaces of memories, whose model answers everything."""
    stage.memories = InMemoryMemoryStorage()
    stage.provider.answer = lambda _: say("I see")
    return stage


def contents(stage, namespace="default"):
    """What is remembered in a namespace."""
    return sorted(memory.content for memory in stage.memories.memories(namespace))


async def one_session(stage, *answers):
    """A session of one turn, extracted at its end with these answers."""
    stage.provider.notes.extend(answers)
    async with stage.session() as session:
        await stage.turn(session, "my tea")
    return session


def note(content, **more):
    return json.dumps([{"content": content, **more}])


ANSWERS = {
    "nothing": ("[]", []),
    "plain": (note("likes tea"), ["likes tea"]),
    "prose around it": (f"Here you are:\n```json\n{note('likes tea')}\n```\nAnything else?", ["likes tea"]),
    "broken": ('[{"content": "likes', []),
    "prose alone": ("There is nothing to keep.", []),
    "five hundred": (
        json.dumps([{"content": f"fact {n:03}"} for n in range(500)]),
        [f"fact {n:03}" for n in range(50)],
    ),
    "some that are none": ('[{"content": "likes tea"}, 7, {"content": ""}, {"note": "x"}]', ["likes tea"]),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
async def test_whatever_the_model_answers_closing_is_fine(answer, expected, remembering, autojump_clock):
    """Each usable note becomes a memory of this namespace; the rest is nothing, and no error of the session."""
    await one_session(remembering, say(answer))

    assert expected == contents(remembering)


async def test_a_memory_that_was_shown_is_updated(remembering, autojump_clock):
    """Its id is offered by the model: the content is replaced, and when it was created is kept."""
    await remembering.memories.save(Memory("m1", "default", "likes black tea", created_at=OLD, updated_at=OLD))
    await one_session(remembering, say(note("likes green tea", id="m1")))

    (memory,) = remembering.memories.memories("default")
    assert ("m1", "likes green tea", OLD) == (memory.id, memory.content, memory.created_at)
    assert memory.updated_at > OLD


@pytest.mark.parametrize("known", ["of another namespace", "not shown", "not there"])
async def test_an_id_that_was_not_shown_is_not_trusted(known, remembering, autojump_clock):
    """The memory is new, with an id of the runtime's; whatever has that id is left as it was."""
    if known == "of another namespace":
        await remembering.memories.save(Memory("m1", "other", "likes coffee and tea"))
    if known == "not shown":
        await remembering.memories.save(Memory("m1", "default", "owns a boat"))
    before = contents(remembering), contents(remembering, "other")
    await one_session(remembering, say(note("likes tea", id="m1")))

    assert (sorted([*before[0], "likes tea"]), before[1]) == (contents(remembering), contents(remembering, "other"))
    assert "m1" not in [m.id for m in remembering.memories.memories("default") if m.content == "likes tea"]


async def test_known_content_is_not_saved_twice(remembering, autojump_clock):
    """Two sessions that say the same leave one memory."""
    await one_session(remembering, say(note("likes tea")))
    await one_session(remembering, say(note("likes tea")))

    assert ["likes tea"] == contents(remembering)


async def test_a_namespace_of_ones_own(remembering, autojump_clock):
    """What is extracted goes where the agent is told to keep it."""
    remembering.configure(memory_namespace="mine")
    await one_session(remembering, say(note("likes tea")))

    assert ([], ["likes tea"]) == (contents(remembering), contents(remembering, "mine"))


class Failing(InMemoryMemoryStorage):
    """A memory storage whose ``method`` raises or hangs."""

    method, how = "search", "raises"

    async def search(self, namespace, query, limit):
        return await self._maybe("search", super().search, namespace, query, limit)

    async def save(self, memory):
        return await self._maybe("save", super().save, memory)

    async def _maybe(self, method, does, *args):
        if self.method != method:
            return await does(*args)
        if self.how == "hangs":
            await trio.sleep_forever()
        raise OSError(f"no {method}")


@pytest.mark.parametrize("how", ["raises", "hangs"])
async def test_a_search_that_fails_is_told_and_the_turn_goes_on(how, remembering, errors, autojump_clock):
    """``MEMORY_ERROR``, within ``memory_timeout_ms``, and an answer without memories."""
    remembering.memories = Failing()
    remembering.memories.how = how
    remembering.configure(memory_timeout_ms=2_000)
    async with remembering.session() as session:
        start = trio.current_time()
        payloads = await remembering.payloads(session, "my tea")
        took = trio.current_time() - start

    assert ["MEMORY_ERROR"] == errors(payloads)
    assert "completed" == payloads[-1].status
    assert {"raises": 0, "hangs": 2}[how] == took


FAILURES = {
    "an answer that is broken": ([1.0, *say("[")], "MEMORY_ERROR"),
    "an error of the model": ([1.0, OSError("gone")], "PROVIDER_ERROR"),
    "a model that hangs": ([TextDelta("["), 100_000.0], "MEMORY_ERROR"),
}


@pytest.mark.parametrize(("failure", "code"), FAILURES.values(), ids=FAILURES)
async def test_a_checkpoint_that_fails_is_emitted_and_made_good(failure, code, remembering, errors, autojump_clock):
    """The running turn tells; the next extraction takes the same messages with the new ones, each once in the end."""
    remembering.configure(memory_checkpoint_interval=1, memory_timeout_ms=5_000)
    remembering.provider.notes.append(failure)
    async with remembering.session() as session:
        await remembering.turn(session, "message 0.")
        remembering.says([50.0, *say("late")])
        payloads = await remembering.payloads(session, "message 1.")
        await trio.sleep(1)
        marks = [fact["seq"] for fact in remembering.facts("memory_mark", session.id)]

    assert [code] == errors(payloads)
    assert "late" == payloads[-1].text
    assert 1 == len(marks)
    second = text_of(remembering.provider.extracted[1].messages[0].content)
    assert [1, 1] == [second.count(f"message {number}.") for number in range(2)]


@pytest.mark.parametrize("method", ["search", "save"])
@pytest.mark.parametrize("how", ["raises", "hangs"])
async def test_an_extraction_that_fails_at_the_end_is_no_error_of_closing(method, how, remembering, autojump_clock):
    """Logged, bounded by ``memory_timeout_ms``, and tried again after a resume."""
    working = remembering.memories
    remembering.memories = Failing()
    remembering.memories.method, remembering.memories.how = method, how
    remembering.configure(memory_timeout_ms=2_000)
    start = trio.current_time()
    session = await one_session(remembering, say(note("likes tea")))
    took = trio.current_time() - start
    remembering.memories = working
    remembering.provider.notes.append(say(note("likes tea")))
    async with remembering.resumed(session.id):
        pass

    assert took <= 2 * (2 if method == "search" else 1)
    assert ["likes tea"] == contents(remembering)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("way", ["close", "shutdown"])
async def test_an_extraction_that_never_ends_is_bounded(way, checkpoint, remembering, autojump_clock):
    """Closing, and leaving the agent after it, take ``memory_timeout_ms`` at most, checkpoint under way or not."""
    remembering.configure(memory_timeout_ms=10_000, memory_checkpoint_interval=1 if checkpoint else 10)
    remembering.provider.notes.extend([[100_000.0]] * 3)
    async with remembering.agent() as agent:
        session = await agent.new_session()
        await remembering.turn(session, "message 0.")
        await trio.sleep(1)
        start = trio.current_time()
        await (session.close() if way == "close" else agent.shutdown())
        closed = trio.current_time() - start

    assert closed <= 10
    assert trio.current_time() - start <= 10


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("way", ["close", "shutdown"])
async def test_a_grace_cuts_the_extraction_too(way, checkpoint, remembering, autojump_clock):
    """Asked to end within two seconds, session and agent do; what was said is extracted after a resume."""
    remembering.configure(memory_checkpoint_interval=1 if checkpoint else 10)
    remembering.provider.notes.extend([[100_000.0]] * (2 if checkpoint else 1))
    async with remembering.agent() as agent:
        session = await agent.new_session()
        await remembering.turn(session, "message 0.")
        start = trio.current_time()
        await (session.close(grace=2) if way == "close" else agent.shutdown(grace=2))
        assert trio.current_time() - start <= 2
    assert trio.current_time() - start <= 2

    remembering.provider.notes.clear()
    async with remembering.resumed(session.id):
        pass
    assert "message 0." in text_of(remembering.provider.extracted[-1].messages[0].content)
    assert 1 == len(remembering.facts("memory_mark", session.id))

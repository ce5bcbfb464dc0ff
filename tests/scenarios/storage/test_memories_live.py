"""Memory while an agent runs: searched each turn, extracted once, never in the way (semantics 12)."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import trio
from youyou import Memory, ModelInfo, TextDelta
from youyou.messages.content import text_of
from youyou.testing import InMemoryMemoryStorage
from youyou.testing.agents.scripted import say

LONG = "word " * 100


@pytest.fixture
def remembering(stage):
    """An agent with a memory storage, whose model answers everything."""
    stage.memories = InMemoryMemoryStorage()
    stage.provider.answer = lambda _: say("I see")
    return stage


def extracted(stage):
    """How often each numbered message was given to the model to extract from."""
    texts = [text_of(message.content) for request in stage.provider.extracted for message in request.messages]
    return Counter(int(number) for text in texts for number in re.findall(r"message (\d+)", text))


async def talk(stage, session, numbers):
    for number in numbers:
        await stage.turn(session, f"message {number}.")


async def test_each_turn_searches_with_what_the_user_says(remembering, autojump_clock):
    """Matching memories stand in the dynamic prompt of that turn alone, the stable part does not change."""
    await remembering.memories.save(Memory("1", "default", "The user's boat is called Skuld."))
    await remembering.memories.save(Memory("2", "other", "The user's boat is a secret."))
    async with remembering.session() as session:
        for text in ("What about my boat?", "Fine, thanks!", "My boat again"):
            await remembering.turn(session, text)

    shown = ["Skuld" in request.system.dynamic for request in remembering.provider.asked]
    assert [True, False, True] == shown
    assert not any("secret" in request.system.dynamic for request in remembering.provider.asked)
    assert 1 == len({request.system.stable for request in remembering.provider.asked})


async def test_a_memory_saved_meanwhile_is_seen_by_the_next_turn_and_by_a_resume(remembering, autojump_clock):
    """Nothing about memories is cached with a session."""
    async with remembering.session() as session:
        await remembering.turn(session, "my boat")
        await remembering.memories.save(Memory("1", "default", "The boat is blue."))
        await remembering.turn(session, "my boat")
    await remembering.memories.delete("default", "1")
    async with remembering.resumed(session.id) as session:
        await remembering.turn(session, "my boat")

    assert [False, True, False] == ["blue" in request.system.dynamic for request in remembering.provider.asked]


async def test_at_most_so_many_memories_are_shown(remembering, autojump_clock):
    """``memory_max_items``, also where a storage gives more than it was asked for."""

    class Generous(InMemoryMemoryStorage):
        async def search(self, namespace, query, limit):
            return await super().search(namespace, query, 100)

    remembering.memories = Generous()
    remembering.configure(memory_max_items=3)
    for number in range(10):
        await remembering.memories.save(Memory(str(number), "default", f"boat {number}"))
    async with remembering.session() as session:
        await remembering.turn(session, "boat")

    assert 3 == remembering.provider.asked[0].system.dynamic.count("</memory>")


@pytest.mark.parametrize("turns", [3, 10, 25])
async def test_every_message_is_extracted_once(turns, remembering, autojump_clock):
    """With a checkpoint every ten turns and one at the end, nothing is left out and nothing comes twice."""
    async with remembering.session() as session:
        for number in range(turns):
            await talk(remembering, session, [number])
            await trio.sleep(1)

    assert Counter(range(turns)) == extracted(remembering)
    assert {3: 1, 10: 1, 25: 3}[turns] == len(remembering.provider.extracted)
    last = max(event.seq for event in remembering.store.events(session.id) if "Message" in type(event.payload).__name__)
    assert last == remembering.facts("memory_mark", session.id)[-1]["seq"]


@pytest.mark.parametrize("turns", [3, 10, 25])
async def test_every_message_is_extracted_once_across_resumes(turns, remembering, autojump_clock):
    """A resumed session reads the raw log after the mark, and keeps the beat of the checkpoints."""
    session_id = None
    for number in range(turns):
        with trio.CancelScope() as scope:
            async with remembering.session_of(session_id) as session:
                session_id = session.id
                await talk(remembering, session, [number])
                await trio.sleep(1)
                scope.cancel("the host leaves at once: no extraction at the end")
                await trio.lowlevel.checkpoint()
    assert turns // 10 == len(remembering.provider.extracted)
    async with remembering.resumed(session_id):
        pass

    assert Counter(range(turns)) == extracted(remembering)


async def test_a_turn_does_not_wait_for_its_checkpoint(remembering, autojump_clock):
    """The extraction of a checkpoint goes on while the next turns run."""
    remembering.configure(memory_checkpoint_interval=1)
    remembering.provider.notes.append([20.0, *say('[{"content": "likes tea"}]')])
    async with remembering.session() as session:
        start = trio.current_time()
        await talk(remembering, session, range(3))
        assert start == trio.current_time()
        assert () == remembering.memories.memories("default")
        await trio.sleep(21)
        assert ["likes tea"] == [memory.content for memory in remembering.memories.memories("default")]


async def test_compaction_takes_nothing_away_from_extraction(stage, autojump_clock):
    """What was compacted before the checkpoint is extracted all the same, word for word, live and after a resume."""
    stage.window(2_000)
    stage.memories = InMemoryMemoryStorage()
    stage.provider._models = (*stage.provider._models, ModelInfo("large", "Large", 100_000))
    stage.configure(memory_model="large")
    stage.provider.answer = lambda _: say(LONG)
    with trio.CancelScope() as scope:
        async with stage.session() as session:
            for number in range(9):
                await stage.turn(session, f"message {number}. {LONG}")
            assert stage.facts("compaction", session.id)
            scope.cancel("the host leaves at once")
            await trio.lowlevel.checkpoint()
    assert [] == stage.provider.extracted
    async with stage.resumed(session.id) as session:
        await stage.turn(session, "message 9.")

    assert Counter(range(10)) == extracted(stage)


@pytest.mark.parametrize(
    ("memory_model", "compact_model", "expected"),
    [("a", "b", "a"), (None, "b", "b"), (None, None, "scripted")],
)
async def test_which_model_extracts(memory_model, compact_model, expected, remembering, autojump_clock):
    """The memory model, else the compaction's, else the session's own."""
    remembering.provider._models = (
        *remembering.provider._models,
        ModelInfo("a", "A", 9_000),
        ModelInfo("b", "B", 9_000),
    )
    remembering.configure(memory_model=memory_model, compact_model=compact_model)
    async with remembering.session() as session:
        await talk(remembering, session, [0])

    assert [expected] == [request.model_id for request in remembering.provider.extracted]


@pytest.mark.parametrize(("way", "expected"), [("close", 1), ("shutdown", 1), ("error", 1), ("cancel", 0), ("drop", 0)])
async def test_which_endings_extract(way, expected, remembering, autojump_clock):
    """The orderly ones do, the others do not."""
    with trio.CancelScope() as scope:
        try:
            async with remembering.agent() as agent:
                session = await agent.new_session()
                await talk(remembering, session, [0])
                match way:
                    case "close":
                        await session.close()
                    case "shutdown":
                        await agent.shutdown()
                    case "error":
                        async with session:
                            raise ZeroDivisionError
                    case "cancel":
                        async with session:
                            scope.cancel("the host leaves")
                            await trio.sleep_forever()
                    case "drop":
                        session._drop()
        except ZeroDivisionError:
            pass

    assert expected == len(remembering.provider.extracted)


async def test_a_session_without_a_memory_storage_extracts_nothing(stage, autojump_clock):
    """No storage, no requests, no mark."""
    stage.configure(memory_checkpoint_interval=1)
    stage.provider.answer = lambda _: [TextDelta("I see"), *say(".")]
    async with stage.session() as session:
        await talk(stage, session, range(3))

    assert [] == stage.provider.extracted == stage.facts("memory_mark", session.id)


async def test_a_cancelled_turn_is_not_a_checkpoint(remembering, autojump_clock):
    """The user took the input back; the next turn that is answered is one, and what was said before is in it."""
    remembering.configure(memory_checkpoint_interval=1)
    remembering.says([TextDelta("half"), 60.0, *say("an answer")])
    async with remembering.session() as session:
        turn = await session.send_message("message 1")
        await trio.sleep(1)
        turn.cancel()
        await turn.result()
        await trio.sleep(100)
        assert [] == remembering.provider.extracted
        await remembering.turn(session, "message 2")
        await trio.sleep(100)
        assert {1: 1, 2: 1} == extracted(remembering)

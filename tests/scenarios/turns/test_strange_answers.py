"""Storages are code of others: what they answer is judged before an actor trusts it (semantics 7, 12)."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from youyou import ErrorCode, ErrorEvent, Memory, SessionEvent, SessionNotFound, StorageError, TurnStatus
from youyou.testing.agents.scripted import say
from youyou.testing.agents.stores import InMemoryMemoryStorage, InMemorySessionStorage


class Raising:
    """A collection that fails half way."""

    def __iter__(self) -> Iterator[object]:
        yield from ()
        raise OSError("row 7 is damaged")


ANSWERS = pytest.mark.parametrize(
    "answer", [None, 5, "abc", [5], [None], {"a": 1}, Raising()], ids=lambda value: repr(value).split(" object")[0]
)


@attrs.define(eq=False)
class StrangeMemories(InMemoryMemoryStorage):
    answer: object = None

    async def search(self, namespace, query, limit):
        return self.answer


@attrs.define(eq=False)
class StrangeSessions(InMemorySessionStorage):
    answer: object = None

    async def load_session(self, session_id):
        return self.answer


@ANSWERS
async def test_a_search_that_answers_no_memories(answer, stage, autojump_clock, caplog):
    """MEMORY_ERROR at the start of the turn, logged at the session's end; the turn completes all the same."""
    stage.memories = StrangeMemories(answer=answer)
    stage.says(say("fine"), say("[]"))
    async with stage.session() as session:
        events = await stage.events(await session.send_message("go"))

    assert [event.error.code for event in events if isinstance(event, ErrorEvent)] == [ErrorCode.MEMORY_ERROR]
    assert events[-1].status is TurnStatus.COMPLETED
    assert f"memories of session {session.id}: [MEMORY_ERROR]" in caplog.text


async def test_more_memories_than_asked_for_are_cut(stage, autojump_clock):
    """A search that ignores its limit gives the model no more than ``memory_max_items``; any iterable will do."""
    stage.configure(memory_max_items=2)
    stage.memories = StrangeMemories(answer=(Memory(f"m{n}", "default", f"tea {n}") for n in range(9)))
    stage.says(say("fine"), say("[]"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert stage.provider.requests[0].system.dynamic.count("tea ") == 2


@ANSWERS
async def test_a_session_that_is_none(answer, stage, autojump_clock):
    """None is an unknown session; anything that is not a sequence of events is STORAGE_ERROR; another session opens."""
    stage.store = StrangeSessions(answer=answer)
    stage.says(say("fine"))
    async with stage.agent() as agent:
        with pytest.raises(SessionNotFound if answer is None else StorageError) as caught:
            await agent.resume_session("s")
        async with await agent.new_session() as session:
            assert (await (await session.send_message("go")).result()).text == "fine"

    if answer is not None and not isinstance(answer, Raising):
        assert f"return a sequence of {SessionEvent.__name__}" in caught.value.message

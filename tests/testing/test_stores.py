"""The storages in memory keep the contract, take virtual time, and do nothing when cancelled."""

import attrs
import pytest
import trio
import trio.testing
from youyou.messages.errors import StorageError
from youyou.messages.history import UserMessage
from youyou.messages.records import Memory, SessionEvent
from youyou.testing import InMemoryMemoryStorage, InMemorySessionStorage
from youyou.testing.agents.conformance_memory import check_memory_storage
from youyou.testing.agents.conformance_storage import check_session_storage
from youyou.testing.agents.conformance_support import moment


@pytest.mark.parametrize("delay", [0.0, 1.0])
async def test_sessions_in_memory_conform(delay, autojump_clock):
    """The session storage in memory passes the suite, at once or slowly."""
    await check_session_storage(lambda: InMemorySessionStorage(delay=delay))


@pytest.mark.parametrize("delay", [0.0, 1.0])
async def test_memories_in_memory_conform(delay, autojump_clock):
    """The memory storage in memory passes the suite, at once or slowly."""
    await check_memory_storage(lambda: InMemoryMemoryStorage(delay=delay))


async def test_a_call_takes_its_delay_and_a_cancelled_one_did_not_happen(autojump_clock):
    """A call has its effect after ``delay`` seconds of Trio's clock; cancelled before that, it did nothing."""
    storage = InMemorySessionStorage(delay=2.0)
    event = SessionEvent(1, moment(1), UserMessage("hi"))
    with trio.move_on_after(1.9):
        await storage.save_events("s", [event])
    assert storage.events("s") == ()

    start = trio.current_time()
    await storage.save_events("s", [event])

    assert trio.current_time() - start == 2.0
    assert (event,) == storage.events("s")


async def test_every_call_is_a_checkpoint():
    """Each coroutine of both storages lets others run, whatever it has to do."""
    sessions, memories = InMemorySessionStorage(), InMemoryMemoryStorage()
    for call in (
        lambda: sessions.save_events("s", []),
        lambda: sessions.load_session("s"),
        sessions.list_sessions,
        lambda: sessions.find_session("s"),
        lambda: sessions.delete_session("s"),
        lambda: memories.search("n", "", 0),
        lambda: memories.save(Memory("m", "n", "c")),
        lambda: memories.delete("n", "m"),
    ):
        with trio.testing.assert_checkpoints():
            await call()


async def test_a_cursor_of_another_kind_is_refused():
    """A cursor that no page gave is an error that says what a cursor is."""
    with pytest.raises(StorageError, match="pass the next_cursor of a page"):
        await InMemorySessionStorage().list_sessions("page 2")


async def test_memories_of_a_namespace_are_seen_without_a_checkpoint():
    """``memories`` gives a namespace's memories, the newest first."""
    storage = InMemoryMemoryStorage()
    old = Memory("a", "n", "old", created_at=moment(1), updated_at=moment(1))
    new = attrs.evolve(old, id="b", updated_at=moment(2))
    for memory in (old, new, attrs.evolve(old, namespace="other")):
        await storage.save(memory)

    assert (new, old) == storage.memories("n")

"""Many sessions in one process (semantics 16): who shares what, what stays open, what is closed, and who waits."""

from __future__ import annotations

import pytest
import trio
import trio.lowlevel
import trio.testing
import youyou
from youyou.hosting import SessionHost
from youyou.messages.errors import (
    AgentClosed,
    InvalidConfig,
    InvalidInput,
    PluginInitFailed,
    SessionClosed,
    SessionNotFound,
    SessionTaken,
    StorageError,
    WouldDeadlock,
)
from youyou.testing import InMemoryClaimedStorage


async def new_ids(host, count, say):
    """The ids of so many new sessions, each with one turn."""
    ids = []
    for _ in range(count):
        async with host.open() as session:
            await say(session)
            ids.append(session.id)
    return ids


async def test_sessions_are_open_side_by_side(house, autojump_clock, say):
    """Two sessions have turns at the same time, and each has its own history."""
    async with house.host() as host, host.open() as one, host.open() as two:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(say, one, "to one")
            nursery.start_soon(say, two, "to two")
        assert 1 == trio.current_time() - began
        assert [["to one", "answer 1"], ["to two", "answer 1"]] == [
            [message.content[0].text for message in session.history] for session in (one, two)
        ]


async def test_one_id_is_one_session(house, autojump_clock, say):
    """Anyone who opens an id that is open has the same session, also when all of them come at once."""
    async with house.host() as host:
        (id,) = await new_ids(host, 1, say)
        async with host.open(id) as first, host.open(id) as second:
            assert first is second
    got = []

    async def use(host):
        async with host.open(id) as session:
            got.append(session)
            await trio.sleep(1)

    before = len(house.ears)
    async with house.host() as host:
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(use, host)
        assert 20 == len(got) and 1 == len(set(map(id_of, got)))
        assert before + 1 == len(house.ears)


def id_of(session):
    """The identity of the handle."""
    return id(session)


async def test_an_idle_session_is_closed_and_resumed_on_demand(house, autojump_clock, say):
    """After ``idle_ms`` without use its agent is left; the next use resumes it from the storage, history and all."""
    async with house.host(idle_ms=60_000) as host:
        (id,) = await new_ids(host, 1, say)
        await trio.sleep(59)
        assert (1, 1) == (host.statistics().open, host.statistics().idle)
        await trio.sleep(2)
        assert 0 == host.statistics().open
        assert f"end of {id}" in house.log
        async with host.open(id) as session:
            assert "answer 2" == await say(session)


async def test_use_keeps_a_session_open(house, autojump_clock, say):
    """It is not closed while a block is open, and the time begins anew with each use."""
    async with house.host(idle_ms=1_000) as host:
        async with host.open() as session:
            await trio.sleep(10)
            assert session.is_open
        for _ in range(5):
            await trio.sleep(0.9)
            async with host.open(session.id) as again:
                assert again is session
        await trio.sleep(1.1)
        assert not session.is_open


async def test_a_turn_that_runs_on_keeps_its_session_open(house, autojump_clock):
    """A turn whose block was left without it is not idle time: it ends, then the time begins."""
    house.seconds = 30.0
    async with house.host(idle_ms=1_000) as host:
        async with host.open() as session:
            turn = await session.send_message("hi")
            turn.detach()
        await trio.sleep(29)
        assert session.is_open and 1 == host.statistics().running_turns
        assert youyou.TurnStatus.COMPLETED is (await turn.result()).status
        await trio.sleep(0.5)
        assert session.is_open
        await trio.sleep(1)
        assert not session.is_open


async def test_the_longest_idle_session_makes_room(house, autojump_clock, say):
    """At ``max_open`` the session that was idle longest is closed for the next one."""
    async with house.host(max_open=3) as host:
        ids = []
        for _ in range(3):
            ids += await new_ids(host, 1, say)
        async with host.open(ids[0]):  # now ids[1] is idle longest
            pass
        async with host.open() as session:
            await say(session)
            assert {ids[0], ids[2], session.id} == set(host.statistics().sessions)


async def test_who_finds_no_room_waits_in_line(house, autojump_clock, say):
    """When every session is in use, those who come wait, first come first served, and are told nothing else."""
    order = []

    async def use(host, name):
        async with host.open() as session:
            order.append((name, trio.current_time() - began))
            await say(session)

    async with house.host(max_open=1) as host:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(use, host, name)
                await trio.testing.wait_all_tasks_blocked()
            assert 2 == host.statistics().waiting
        assert [("a", 0), ("b", 1), ("c", 2)] == order


async def test_a_turn_that_ends_makes_room(house, autojump_clock):
    """A session that became idle because its turn ended is closed for somebody who waits already."""
    house.seconds = 5.0
    async with house.host(max_open=1) as host:
        began = trio.current_time()
        async with host.open() as session:
            (await session.send_message("hi")).detach()
        async with host.open():
            assert 5 == trio.current_time() - began


async def test_providers_and_storages_are_entered_once(house, autojump_clock, say):
    """The first builder's provider serves all sessions; it is entered before them and left after them. Plugins are each
    session's own.
    """
    async with house.host() as host:
        await new_ids(host, 3, say)
        assert ["provider enters", *["plugin begins"] * 3] == house.log
    assert [(1, 1), (0, 0), (0, 0), (0, 0)] == [(p.entered, p.left) for p in house.providers]
    assert 3 == len(set(map(id_of, house.ears)))
    assert "provider leaves" == house.log[-1] and 3 == house.log.count("plugin ends")


async def test_memories_are_kept_apart_by_namespace(house, autojump_clock):
    """Each session searches the namespace it was opened with, and nobody gets it with another one."""
    asked = []

    async def search(namespace, query, limit):
        await trio.lowlevel.checkpoint()
        asked.append(namespace)
        return ()

    house.memory = _Memory(search)
    async with (
        house.host() as host,
        host.open(memory_namespace="ann") as one,
        host.open(memory_namespace="bob") as two,
    ):
        await (await one.send_message("hi")).result()
        await (await two.send_message("hi")).result()
        with pytest.raises(InvalidInput, match="another memory namespace"):
            async with host.open(one.id, memory_namespace="bob"):
                pass
        assert ["ann", "bob"] == asked


class _Memory:
    """A memory storage that only searches."""

    def __init__(self, search):
        self.search = search

    async def save(self, memory):
        await trio.lowlevel.checkpoint()

    async def delete(self, namespace, id):
        await trio.lowlevel.checkpoint()


async def test_a_cancelled_open_leaves_no_session(house, autojump_clock, say):
    """If `Cancelled` comes out of opening, no session is open for it; others who wait for the same one get it."""
    async with house.host() as host:
        (id,) = await new_ids(host, 1, say)
    house.storage.delay = 5.0
    async with house.host() as host:
        with trio.move_on_after(1):
            async with host.open(id):
                raise AssertionError("opened")
        await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        assert (0, 0) == (host.statistics().open, host.statistics().opened)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_give_up, host, id, 1)
            await trio.sleep(0.5)
            async with host.open(id) as session:
                assert session.is_open
        with trio.move_on_after(0) as scope:
            async with host.open():
                raise AssertionError("opened")
        assert scope.cancelled_caught


async def _give_up(host, id, seconds):
    with trio.move_on_after(seconds):
        async with host.open(id):
            raise AssertionError("opened")


async def test_what_cannot_be_opened_fails_alone(house, autojump_clock, say):
    """An unknown id, a plugin or a factory that raises: anyone who opens is told, bare, and the host goes on."""
    async with house.host() as host:
        with pytest.raises(SessionNotFound):
            async with host.open("nobody"):
                pass
        house.breaks.append(OSError("no disk"))
        with pytest.raises(PluginInitFailed, match="no disk"):
            async with host.open():
                pass
        real, house.tools = house.tools, None
        with pytest.raises(TypeError):
            async with host.open():
                pass
        house.tools = real
        assert 0 == host.statistics().open
        assert 1 == len(await new_ids(host, 1, say))


async def test_everybody_who_waits_for_a_failed_opening_is_told(house, autojump_clock):
    """Each has an exception of its own."""
    house.storage.delay = 1.0
    errors = []

    async def use(host):
        with pytest.raises(SessionNotFound) as caught:
            async with host.open("nobody"):
                pass
        errors.append(caught.value)

    async with house.host() as host, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(use, host)
    assert 3 == len(set(map(id_of, errors))) and errors[0] == errors[1]


async def test_a_session_that_was_closed_by_its_user_is_opened_again(house, autojump_clock, say):
    """``session.close()`` ends it for all; the next `open` resumes it, while the old block is still open, too."""
    async with house.host() as host, host.open() as session:
        await say(session)
        await session.close()
        async with host.open(session.id) as again:
            assert again is not session
            assert "answer 2" == await say(again)


class _Failing:
    """A storage that fails while ``broken``."""

    def __init__(self, real):
        self.real, self.broken = real, False

    def __getattr__(self, name):
        return getattr(self.real, name)

    async def save_events(self, session_id, events):
        await trio.lowlevel.checkpoint()
        if self.broken:
            raise StorageError("no room")
        await self.real.save_events(session_id, events)


async def test_a_session_that_is_not_stored_is_not_closed_as_idle(house, autojump_clock, say):
    """What the storage refused exists here alone: the session stays, is tried again each ``idle_ms``, and then goes."""
    house.storage = _Failing(house.storage)
    async with house.host(idle_ms=1_000) as host:
        async with host.open() as session:
            await say(session)
            house.storage.broken = True
            await (await session.send_message("hi")).result()
        await trio.sleep(10)
        assert session.is_open
        assert 0 == host.statistics().idle and 0 < host.statistics().unsaved_events
        house.storage.broken = False
        await trio.sleep(2.5)
        assert not session.is_open
        assert 2 == sum(isinstance(e.payload, youyou.UserMessage) for e in house.storage.events(session.id))


async def test_draining_lets_turns_end(house, autojump_clock):
    """`drain` refuses the next session, closes idle ones at once, waits for turns, and tells nobody of an error."""
    house.seconds = 20.0
    async with house.host() as host:
        async with host.open() as session:
            turn = await session.send_message("hi")
            turn.detach()
        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            nursery.start_soon(host.drain)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(AgentClosed, match="draining"):
                async with host.open(session.id):
                    pass
        assert 20 == trio.current_time() - began
        assert youyou.TurnStatus.COMPLETED is (await turn.result()).status
        assert (0, True) == (host.statistics().open, host.statistics().draining)


async def test_draining_cuts_turns_at_the_grace(house, autojump_clock):
    """With a grace the turns that still run then are cut; a second call tightens it."""
    house.seconds = 1000.0
    async with house.host() as host:
        async with host.open() as session:
            turn = await session.send_message("hi")
            turn.detach()
        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            nursery.start_soon(host.drain)
            await trio.sleep(3)
            await host.drain(grace=2)
            assert 5 == trio.current_time() - began
        assert youyou.TurnStatus.CANCELLED is (await turn.result()).status


async def test_draining_refuses_those_who_wait_for_room(house, autojump_clock):
    """Anyone who waits in line when the host drains is told so."""
    refused = []

    async def wait(host):
        with pytest.raises(AgentClosed, match="draining"):
            async with host.open():
                pass
        refused.append(True)

    async with house.host(max_open=1) as host, trio.open_nursery() as nursery, host.open():
        nursery.start_soon(wait, host)
        await trio.testing.wait_all_tasks_blocked()
        await host.drain(grace=1)
    assert [True] == refused


async def test_a_tool_cannot_drain_its_own_host(house, autojump_clock):
    """It would wait for itself."""
    seen = []

    async def execute(given):
        for wait in (lambda: host.drain(), session.wait_idle):
            with pytest.raises(WouldDeadlock):
                await wait()
            seen.append("refused")
        return youyou.ToolOutput("done")

    house.tools = [youyou.Tool("stop", "Stops.", {"type": "object"}, execute)]
    async with house.host() as host, host.open() as session:
        result = await (await session.send_message("call stop")).result()
        assert youyou.TurnStatus.COMPLETED is result.status, result.error
    assert ["refused", "refused"] == seen


async def test_leaving_closes_sessions_in_the_orderly_way(house, autojump_clock, say):
    """By an ordinary exception as by the end of the block: SessionEnd hooks run, and the exception comes out bare."""
    with pytest.raises(ValueError, match="mine"):
        async with house.host() as host:
            ids = await new_ids(host, 3, say)
            raise ValueError("mine")
    assert {f"end of {id}" for id in ids} <= set(house.log)


async def test_a_cancelled_host_stops_all_at_once(house, autojump_clock):
    """All sessions stop concurrently, within the bound of one, and the storages are left after them."""
    house.config = {"shutdown_grace_ms": 3_000, "closing_ms": 1_000}
    cut = []

    async def execute(given):
        try:
            await trio.sleep_forever()
        finally:
            cut.append(trio.current_time())

    house.tools = [youyou.Tool("hang", "Hangs.", {"type": "object"}, execute)]
    with trio.move_on_after(10):
        async with house.host() as host, trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(_hang, host)
    ended = trio.current_time() - min(cut) + 3
    assert 10 == len(cut) and 1 == len(set(cut))
    assert 4 >= ended
    assert "provider leaves" == house.log[-1]


async def _hang(host):
    async with host.open() as session:
        await (await session.send_message("call hang")).result()


async def test_ctrl_c_comes_out_bare(house, autojump_clock):
    """Raised in the body or by a plugin, it ends the host and reaches its owner as it is."""
    with pytest.raises(KeyboardInterrupt):
        async with house.host() as host, host.open():
            raise KeyboardInterrupt
    house.breaks.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        async with house.host() as host, host.open():
            pass
    assert 2 == house.log.count("provider leaves")


async def test_one_picture_of_all(house, autojump_clock):
    """The numbers are sums over the sessions, and the tree shows each session's tasks once."""
    house.seconds = 5.0
    async with house.host() as host, host.open() as one, host.open() as two:
        for session in (one, two):
            (await session.send_message("hi")).detach()
        await trio.sleep(1)
        numbers = host.statistics()
        assert (2, 2, 0, 2, 2) == (numbers.open, numbers.in_use, numbers.idle, numbers.running_turns, numbers.opened)
        assert {one.id, two.id} == set(numbers.sessions)
        drawn = str(host.tree())
        assert drawn.startswith("session host") and 2 == drawn.count("turn 1 (session ")


@pytest.mark.parametrize(
    ("options", "word"),
    [({"max_open": 0}, "max_open"), ({"max_open": True}, "max_open"), ({"idle_ms": -1}, "idle_ms")],
)
async def test_odd_numbers_are_refused(house, options, word):
    """When the host is made, with what to pass instead."""
    with pytest.raises(InvalidConfig, match=f"{word} is .*pass"):
        house.host(**options)
    with pytest.raises(InvalidConfig, match="return an AgentBuilder"):
        async with SessionHost(lambda: None):
            pass


async def test_a_host_that_is_not_entered_says_so(house):
    """Before and after its block, and when it is entered twice."""
    host = house.host()
    with pytest.raises(AgentClosed, match="not entered"):
        async with host.open():
            pass
    async with host:
        for odd in ({"session_id": 3}, {"memory_namespace": 3}, {"session_id": "s", "config": youyou.SessionConfig()}):
            with pytest.raises(InvalidInput):
                async with host.open(**odd):
                    pass
    with pytest.raises(AgentClosed):
        async with host.open():
            pass
    with pytest.raises(InvalidConfig, match="another SessionHost"):
        async with host:
            pass


async def test_a_session_of_another_process_is_told_or_waited_for(house, autojump_clock, say):
    """Without ``wait`` the opener learns where it is; with it, the session is opened as soon as it is released."""
    house.storage = InMemoryClaimedStorage()
    house.config = {"address": "host-1:8000"}
    async with house.host() as one, house.host() as two:
        async with one.open() as session:
            await say(session)
            with pytest.raises(SessionTaken) as caught:
                async with two.open(session.id):
                    pass
            assert ("host-1:8000", True) == (caught.value.address, caught.value.retryable)
            assert 0 < caught.value.retry_after_ms <= 15_000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_close_later, one)
            async with two.open(session.id, wait=True) as again:
                assert "answer 2" == await say(again)
        assert 4 <= trio.current_time() < 8


async def _close_later(host):
    await trio.sleep(3)
    await host.drain()


async def test_a_session_is_taken_over_on_demand(house, autojump_clock, say):
    """With ``steal`` it moves; the one who had it is told at the next turn, and its session ends."""
    house.storage = InMemoryClaimedStorage()
    async with house.host() as one, house.host() as two, one.open() as session:
        await say(session)
        async with two.open(session.id, steal=True) as again:
            assert "answer 2" == await say(again)
            with pytest.raises((SessionTaken, SessionClosed)):
                result = await (await session.send_message("hi")).result()
                raise result.error

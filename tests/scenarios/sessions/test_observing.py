"""What a host can see of an agent's inside: the tree of tasks, and numbers (semantics 1.1)."""

from __future__ import annotations

import attrs
import pytest
import trio
from youyou import AgentClosed, Done, SessionStart, TextDelta
from youyou.actors.session.requests import Extracted
from youyou.testing import InMemoryMemoryStorage
from youyou.testing.agents.scripted import call, calls, say


def names(node):
    return [node.name, *(name for child in node.children for name in names(child))]


def find(node, start):
    """The first node below ``node`` whose name starts so."""
    found = [item for item in walk(node) if item.name.startswith(start)]
    assert found, f"no task {start!r} in\n{node}"
    return found[0]


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)


async def test_the_tree_names_the_actors_and_what_they_work_for(stage, autojump_clock):
    """Guard, session, turn (by number and session), tool and recorder stand in the tree, each in its place."""
    stage.memories = InMemoryMemoryStorage()
    stage.tool("write", takes=5.0)
    stage.says(say("one"), calls("write"), say("two"))
    async with stage.agent() as agent, await agent.new_session() as session:
        await (await session.send_message("first")).result()
        turn = await session.send_message("second")
        await trio.sleep(1)
        node = agent.tree()
        await turn.result()

    guard = find(node, "guard")
    running = find(guard, "turn 2 (session ")
    assert running.name == f"turn 2 (session {session.id[:8]})"
    assert find(node, "tool write (write)") not in list(walk(guard))
    assert {"recorder", "tool pool", "memory extractor"} <= set(names(node))
    # Nurseries hold sets: without an order of its own each drawing would be another one.
    assert all(names_ == sorted(names_) for each in walk(node) if (names_ := [child.name for child in each.children]))


async def test_the_tree_says_where_each_task_waits(stage, autojump_clock):
    """Each line holds function, file and line of the innermost frame that is not Trio's own."""

    async def waits_for_the_sun(_):
        await trio.sleep(5)

    stage.tool("write", does=waits_for_the_sun)
    stage.says(calls("write"), say("two"))
    async with stage.agent() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        node = agent.tree()
        await turn.result()

    place = find(node, "tool write").waits_at
    assert "waits_for_the_sun at test_observing.py:" in place
    assert all(item.waits_at for item in walk(node))
    drawn = str(node)
    assert drawn.count("\n") == len(names(node)) - 1
    assert "└─ " in drawn
    assert f"({place})" in drawn


async def test_an_idle_agent_has_its_actors_and_no_session(stage, autojump_clock):
    """Before a session is opened nothing of one is there."""
    stage.memories = InMemoryMemoryStorage()
    async with stage.agent() as agent:
        await trio.testing.wait_all_tasks_blocked()
        node, seen = agent.tree(), agent.statistics()

    assert sorted(names(node)) == ["agent", "guard", "memory extractor", "recorder", "tool pool"]
    assert (seen.running, seen.stuck, seen.peak_tools, seen.unsaved_events) == ((), (), 0, 0)
    assert set(seen.mailboxes) == {"guard", "memory extractor"}
    assert {name: box.receivers_waiting for name, box in seen.mailboxes.items()} == dict.fromkeys(seen.mailboxes, 1)


async def test_an_agent_without_storages_has_no_actors_for_them(stage, autojump_clock):
    """Nothing is started that could never have anything to do."""
    stage.store = stage.memories = None
    async with stage.agent() as agent:
        await trio.testing.wait_all_tasks_blocked()
        node, seen = agent.tree(), agent.statistics()

    assert sorted(names(node)) == ["agent", "guard", "tool pool"]
    assert set(seen.mailboxes) == {"guard"}


async def test_statistics_count_tools(stage, autojump_clock):
    """Names of those that run, one for each call; the peak stays when they are done."""
    stage.tool("read", takes=2.0)
    stage.says(calls(call("read", id="a"), call("read", id="b"), call("read", id="c")), say("done"))
    async with stage.agent() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        during = agent.statistics()
        await turn.result()
        after = agent.statistics()

    assert (during.running, during.peak_tools) == (("read",) * 3, 3)
    assert (after.running, after.peak_tools) == ((), 3)


async def test_statistics_count_what_waits_for_a_reader(stage, autojump_clock):
    """Unread events of the running turn up to the buffer, the most there were, and those no reader was there for."""
    stage.configure(event_buffer=4)
    stage.says([*[TextDelta("x")] * 10, 5.0, TextDelta("y"), Done()])
    async with stage.agent() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        full = agent.statistics()
        turn.detach()
        await trio.sleep(1)
        detached = agent.statistics()
        await turn.result()

    assert (full.events_waiting, full.peak_events, full.dropped_events) == (4, 4, 0)
    assert (detached.events_waiting, detached.peak_events, detached.dropped_events) == (0, 4, 10)


async def test_statistics_count_mailboxes(stage, autojump_clock):
    """The depth of a mailbox is what its actor has not taken yet; a session's is there while it is open."""
    async with stage.agent() as agent, await agent.new_session() as session:
        await trio.testing.wait_all_tasks_blocked()
        quiet = agent.statistics().mailboxes["session"]
        for _ in range(3):
            session._opened.mailbox.send_nowait(Extracted(None, None))
        waiting = agent.statistics().mailboxes["session"].depth
        await session.set_title("done")
        done = agent.statistics().mailboxes["session"].depth

    assert (quiet.depth, quiet.senders_waiting, quiet.receivers_waiting) == (0, 0, 1)
    assert (waiting, done) == (2, 0)  # the first is in the hands of the actor that waited for it


async def test_statistics_count_what_is_not_saved(stage, autojump_clock):
    """Events that the store has not acknowledged, the most there were, and writes that failed."""
    stage.store.delay = 2.0
    stage.says(say("done"))
    async with stage.agent() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        during = agent.statistics()
        await turn.result()
        after = agent.statistics()

    assert during.unsaved_events > 0
    assert (after.unsaved_events, after.storage_failures) == (0, 0)
    assert after.peak_unsaved_events >= during.unsaved_events


async def test_looking_changes_nothing(stage, autojump_clock):
    """Looking at every step of a turn leaves its events as they are, and both looks are frozen values."""
    stage.tool("write", takes=1.0)
    stage.says(calls("write"), say("done"))
    async with stage.agent() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        events = []
        async for event in turn:
            agent.tree()
            events.append(event.payload)
            seen = agent.statistics()
        assert len(events) == 4
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            seen.peak_tools = 7


async def test_a_hook_that_opens_is_named(stage, autojump_clock):
    """A session that is still opening is in the tree, with the hook that it waits in."""

    async def slow(_):
        await trio.sleep(5)

    stage.on(SessionStart, slow)
    async with stage.agent() as agent, trio.open_nursery() as nursery:
        nursery.start_soon(agent.new_session)
        await trio.sleep(1)
        assert "slow at test_observing.py" in find(agent.tree(), "session").waits_at
        nursery.cancel_scope.cancel()


async def test_a_closed_agent_has_nothing_to_show(stage, autojump_clock):
    """After the agent was left, looking still answers: nothing runs."""
    async with stage.agent() as agent:
        pass

    assert agent.statistics().running == ()
    assert agent.tree().children == ()
    with pytest.raises(AgentClosed):
        await agent.new_session()

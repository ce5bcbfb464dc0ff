"""Sessions on real host processes that a real Ray started (semantics 17)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio
import youyou

from . import app

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("ray")]
SECONDS = 120.0


def cluster(storage, **options):
    """A small one."""
    from youyou.adapters.ray import Cluster

    return Cluster(app.make_builder, storage=storage, **{"hosts": 2, "spares": 0, "patience_ms": 5_000, **options})


async def read(turn):
    """All events of a turn."""
    return [event async for event in turn]


def texts(events):
    """The pieces of text among events."""
    return [event.payload.text for event in events if isinstance(event.payload, youyou.TextDelta)]


async def wait_for_line(path):
    """Until a tool has left its note."""
    with trio.fail_after(SECONDS):
        while not path.exists():  # noqa: ASYNC110  another process writes it
            await trio.sleep(0.02)


async def test_a_session_is_used_like_one_of_this_process(storage):
    """Events in order, the result, history, usage, a title, and a second turn."""
    with trio.fail_after(SECONDS):
        async with cluster(storage) as c, await c.new_session() as session:
            first = await session.send_message("say 3")
            events = await read(first)
            second = await session.send_message("say 2")
            result = await second.result()
            await session.set_title("numbers")
            seen = (
                texts(events),
                isinstance(events[-1].payload, youyou.TurnComplete),
                result.text,
                [type(message).__name__ for message in await session.history()],
                (await session.usage()).input_tokens,
                [n.open for n in (await c.statistics()).values()].count(1),
            )
    assert (["0 ", "1 ", "2 "], True, "0 1 ", ["UserMessage", "AssistantMessage"] * 2, 0, 1) == seen


async def test_a_reader_that_was_cut_off_goes_on_after_the_last_event_that_it_has(storage):
    """Another handle, made from the ids and the number, reads the rest; nothing is missing and nothing comes twice."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as c:
            session = await c.new_session()
            turn = await session.send_message("slow 20")
            begun = [await anext(turn) for _ in range(4)]
            with trio.move_on_after(0.01):
                await anext(turn)
            again = (await c.resume_session(session.id)).turn(turn.turn_id, after=begun[-1].sequence)
            rest = await read(again)
    sequence = [event.sequence for event in begun + rest]
    assert ([f"{n} " for n in range(20)], [*range(sequence[0], sequence[0] + 21)]) == (texts(begun + rest), sequence)


async def test_a_cancel_reaches_the_turn_and_ends_it(storage):
    """The terminal event says so, too."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as c:
            turn = await (await c.new_session()).send_message("slow 5000")
            await anext(turn)
            answers = [await turn.cancel(), (await turn.result()).status, await turn.status()]
            last = (await read(turn))[-1].payload
    assert ([True, "cancelled", "cancelled"], True) == (answers, isinstance(last, youyou.TurnCancelled))


async def test_a_block_that_is_left_leaves_no_turn(storage):
    """Normally, and by a cancellation."""
    statuses = []
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as c:
            session = await c.new_session()
            async with await session.send_message("slow 5000") as turn:
                await anext(turn)
            statuses.append(await turn.status())
            with trio.move_on_after(0.2) as scope:
                async with await session.send_message("slow 5000") as turn:
                    await read(turn)
            statuses += [scope.cancelled_caught, await turn.status()]
            await session.wait_idle()
    assert ["cancelled", True, "cancelled"] == statuses


async def test_a_message_whose_sender_was_cancelled_leaves_no_turn(storage):
    """Cancelled at any time after the call was made: the session is idle soon, and takes the next message."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as c:
            session = await c.new_session()
            for pause in (0, *(number / 4_000 for number in range(1, 60))):
                with trio.move_on_after(pause) as scope:
                    turn = await session.send_message("slow 5000")
                if not scope.cancelled_caught:
                    await turn.cancel()
                await session.wait_idle()
            result = await (await session.send_message("say 1")).result()
    assert "completed" == result.status


async def test_errors_arrive_bare(storage):
    """As the methods of this process raise them, and nothing of Ray's around them."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as c:
            with pytest.raises(youyou.SessionNotFound, match="missing"):
                await c.resume_session("missing")
            session = await c.new_session()
            with pytest.raises(youyou.InvalidInput):
                await session.send_message("")
            turn = await session.send_message("slow 5000")
            with pytest.raises(youyou.TurnBusy):
                await session.send_message("say 1")
            with pytest.raises(youyou.InvalidInput, match="let go"):
                await turn.cancel()
                last = (await read(turn))[-1].sequence
                await session.turn(turn.turn_id, after=last - 1).__anext__()
            with pytest.raises(youyou.SessionClosed, match="not on this host"):
                await session.turn("nobody").status()


async def test_a_builder_that_fails_fails_the_cluster(storage):
    """With the error of the host, when it is entered."""

    def broken():
        raise youyou.InvalidConfig("no key")

    from youyou.adapters.ray import Cluster

    with trio.fail_after(SECONDS), pytest.raises(youyou.InvalidConfig, match="no key"):
        async with Cluster(broken, storage=storage, hosts=1, spares=0):
            pass


async def test_a_session_goes_on_elsewhere_when_its_host_is_killed(storage, strike, tmp_path):
    """Reading raises once; the tool that ran is unknown and is not run again; what was acknowledged is there."""
    note = tmp_path / "note"
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=2) as c:
            session = await c.new_session()
            await (await session.send_message("say 1")).result()
            turn = await session.send_message(f"tool {note} 60")
            seen = [await anext(turn)]
            await wait_for_line(note)
            await strike(session, signal.SIGKILL)
            with pytest.raises(youyou.HostLost) as lost:
                async for event in turn:
                    seen.append(event)  # noqa: PERF401  those before the error count
            after = [event async for event in turn]
            again = await c.resume_session(session.id)
            history = await again.history()
            result = await (await again.send_message("say 2")).result()
    outcomes = [m.outcome for m in history if isinstance(m, youyou.ToolResult)]
    assert (session.id, seen[-1].sequence, []) == (lost.value.session_id, lost.value.after, after)
    assert (["unknown"], "started\n", "0 1 ") == (outcomes, note.read_text(), result.text)
    assert again.host != session.host


async def test_a_host_that_died_is_replaced(storage, strike):
    """By another process; as many as before have sessions."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as c:
            session = await c.new_session()
            await (await session.send_message("say 1")).result()
            await strike(session, signal.SIGKILL)
            while True:
                try:
                    again = await c.resume_session(session.id)
                    break
                except youyou.HostLost:
                    await trio.sleep(0.05)  # a real process starts
            assert 1 == len(await c.statistics())
            assert "0 " == (await (await again.send_message("say 1")).result()).text


async def test_a_host_that_was_frozen_writes_nothing_when_it_wakes(storage, strike):
    """Its claim runs out, the session is opened elsewhere, and the log has one writer from then on."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, patience_ms=1_000) as c:
            session = await c.new_session()
            turn = await session.send_message("slow 100000")
            await anext(turn)
            pid = await strike(session, signal.SIGSTOP)
            with pytest.raises(youyou.HostLost, match="did not answer"):
                await read(turn)
            again = await c.resume_session(session.id)
            await (await again.send_message("say 1")).result()
            os.kill(pid, signal.SIGCONT)
            await (await again.send_message("say 2")).result()
            await again.close()
    async with storage:
        events = await storage.load_session(session.id)
    epochs = [e.payload.value["epoch"] for e in events if getattr(e.payload, "key", "") == "session_opened"]
    said = [
        youyou.messages.content.text_of(e.payload.content) for e in events if isinstance(e.payload, youyou.UserMessage)
    ]
    assert ([*range(1, len(events) + 1)], sorted(set(epochs))) == ([e.seq for e in events], epochs)
    assert ["slow 100000", "say 1", "say 2"] == said


async def test_two_clusters_over_one_storage_find_each_others_sessions(storage):
    """The claim says where a session is: the second cluster reads and stops what the first began."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as one, cluster(storage, hosts=1) as two:
            session = await one.new_session()
            turn = await session.send_message("slow 5000")
            other = await two.resume_session(session.id)
            stopped = await other.turn(turn.turn_id).cancel(grace=0)
            result = await turn.result()
    assert (session.host, True, "cancelled") == (other.host, stopped, result.status)


async def test_a_drained_cluster_has_ended_its_turns_and_takes_no_more(storage):
    """Turns that run when the grace is over are cut."""
    with trio.fail_after(SECONDS):
        async with cluster(storage, hosts=1) as c:
            session = await c.new_session()
            turn = await session.send_message("slow 100000")
            await c.drain(grace=0.2)
            with pytest.raises(youyou.AgentClosed, match="drain"):
                await c.resume_session(session.id)
            del turn
    async with storage:
        events = await storage.load_session(session.id)
    assert "turn_ended" in [getattr(event.payload, "key", "") for event in events]


async def test_leaving_by_a_cancellation_ends_the_hosts(storage):
    """No process of the cluster is left."""
    from youyou.adapters.ray.engine import result_of

    pids = []
    with trio.fail_after(SECONDS), trio.CancelScope() as scope:
        async with cluster(storage, hosts=2) as c:
            pids += [await result_of(host.actor.pid.remote()) for host in c._hosts]
            scope.cancel()
            await trio.sleep_forever()
    with trio.fail_after(SECONDS):
        while any(Path(f"/proc/{pid}").exists() for pid in pids):  # noqa: ASYNC110, ASYNC240  Ray ends real processes
            await trio.sleep(0.02)
    assert 2 == len(pids)

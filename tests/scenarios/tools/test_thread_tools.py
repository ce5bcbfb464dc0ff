"""Plain functions in worker threads, each with its declared way to stop (semantics 8). Twenty times real time."""

from __future__ import annotations

import threading
import time

import pytest
import trio
from youyou import ErrorCode, ToolCallEnd, ToolInput, ToolProgress, TurnStatus, WouldDeadlock, WrongTrioRun, tool
from youyou.testing.agents.scripted import call, calls, say


class Release(threading.Event):
    """What lets the threads of a test go on, and whether one has begun to wait for it."""

    def __init__(self):
        super().__init__()
        self.begun = threading.Event()


@pytest.fixture
def release():
    """A `Release`, set at the end of its test in any case."""
    event = Release()
    yield event
    event.set()


def waiting(release, thread, *, name="sync", timeout_ms=None):
    """A sync tool that waits for ``release`` in its thread."""

    @tool(name=name, thread=thread, timeout_ms=timeout_ms)
    def sync() -> str:
        """Waits."""
        release.begun.set()
        if thread == "cooperative":
            while not release.wait(0.005):
                trio.from_thread.check_cancelled()
        else:
            release.wait(5)
        return "released"

    return sync


async def eventually(check):
    """Wait in real time until ``check`` holds, four seconds at most."""
    for _ in range(200):
        if check():
            return
        await trio.sleep(0.1)
    raise AssertionError("it never came true")


@pytest.mark.parametrize("thread", ["wait", "abandon", "cooperative"])
async def test_a_plain_cancel_lets_it_finish(thread, stage, steady_clock, release):
    """Whatever a sync tool declares, a cancel without grace waits for it."""
    stage.says(calls("sync"))
    async with stage.session(waiting(release, thread)) as session:
        turn = await session.send_message("go")
        await eventually(release.begun.is_set)
        turn.cancel()
        await trio.sleep(0.5)
        assert TurnStatus.CANCELLING == turn.status
        release.set()
        result = await turn.result()

    assert ["released"] == [each.content for each in result.tool_results]


async def test_abandon_is_left_behind_at_once(stage, steady_clock, release):
    """``abandon``: cut by a grace, the turn ends; another thread is lent until the abandoned one has ended."""
    stage.says(calls("sync"))
    async with stage.agent(waiting(release, "abandon")) as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await eventually(release.begun.is_set)
        turn.cancel(grace=0)
        with stage.takes(20, at_most=True):
            result = await turn.result()
        assert (("sync",), ()) == (result.interrupted, agent.statistics().stuck)
        assert 1 == agent.statistics().extra_threads
        release.set()
        await eventually(lambda: agent.statistics().extra_threads == 0)


async def test_cooperative_stops_when_asked(stage, steady_clock, release):
    """``cooperative``: cut by a grace, the thread learns of it and ends; nothing is left behind."""
    stage.configure(tool_patience_ms=60_000)  # a busy machine may be slow to ask the thread
    stage.says(calls("sync"))
    async with stage.agent(waiting(release, "cooperative")) as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await eventually(release.begun.is_set)
        turn.cancel(grace=0)
        result = await turn.result()
        assert (("sync",), (), 0) == (result.interrupted, agent.statistics().stuck, agent.statistics().extra_threads)


async def test_wait_is_not_abandoned_by_a_cut(stage, steady_clock, release):
    """``wait``: the turn ends after patience, the thread is stuck, not left behind, and its slot is lent."""
    stage.says(calls("sync"))
    async with stage.agent(waiting(release, "wait")) as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await eventually(release.begun.is_set)
        turn.cancel(grace=0)
        result = await turn.result()
        assert (("sync",), ("sync",)) == (result.interrupted, agent.statistics().stuck)
        assert 1 == agent.statistics().extra_threads
        release.set()
        await eventually(lambda: agent.statistics().stuck == ())
        assert 0 == agent.statistics().extra_threads


@pytest.mark.parametrize("thread", ["wait", "abandon"])
async def test_a_timed_out_thread_gives_its_slot_back(thread, stage, steady_clock, release):
    """With one slot: a thread that runs over its time is reported, and the next call of a sync tool can run."""
    stage.configure(max_concurrent_tools=1)
    slow = waiting(release, thread, name="slow", timeout_ms=500)

    @tool
    def quick() -> str:
        """Quick."""
        return "quick"

    stage.says(calls("slow"), calls("quick"), say("done"))
    async with stage.session(slow, quick) as session:
        events = await stage.events(await session.send_message("go"))
        release.set()

    first, second = [event for event in events if isinstance(event, ToolCallEnd)]
    assert (ErrorCode.TOOL_TIMEOUT, "quick") == (first.error.code, second.output.content)


async def test_leaving_waits_for_a_thread_and_says_so(stage, steady_clock, release):
    """``wait``: a graceful shutdown waits for the thread at its very end, with a warning that names the tool."""
    stage.says(calls("slow"), say("done"))
    left = []

    async def releases_later():
        await trio.sleep(2)
        left.append("released")
        release.set()

    async with trio.open_nursery() as nursery:
        with pytest.warns(RuntimeWarning, match="slow"):
            async with stage.session(waiting(release, "wait", name="slow", timeout_ms=200)) as session:
                await stage.events(await session.send_message("go"))
                nursery.start_soon(releases_later)
        assert ["released"] == left


async def test_the_final_deadline_leaves_a_thread_behind(stage, steady_clock, release):
    """``wait``: at the host's cancel the thread is left behind at the runtime's own deadline, not before."""
    stage.configure(shutdown_grace_ms=500, closing_ms=2_000)
    stage.says(calls("sync"))
    start = trio.current_time()
    with trio.move_on_after(1):
        async with stage.session(waiting(release, "wait")) as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert 2.4 < trio.current_time() - start < 20
    assert ["user: go", "call sync", "unknown sync"] == stage.stored()


@pytest.mark.parametrize("thread", ["wait", "abandon", "cooperative"])
async def test_one_that_is_cut_before_it_began(thread, stage, steady_clock, release):
    """Cut in the step in which a worker took it: nothing is left behind, and no thread stays lent."""
    release.set()
    stage.says(calls("sync"), say("done"))
    async with stage.agent(waiting(release, thread)) as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        async for _ in turn:
            turn.cancel(grace=0)
        await eventually(lambda: agent.statistics().extra_threads == 0)
        assert () == agent.statistics().stuck


async def test_progress_and_cancel_from_a_thread(stage, steady_clock):
    """A thread reports progress as it is, and cancels its turn through Trio."""
    handles = {}

    @tool
    def sync(input: ToolInput) -> str:
        """Reports."""
        input.report({"done": 1})
        trio.from_thread.run_sync(handles["turn"].cancel)
        return "ok"

    stage.says(calls("sync"))
    async with stage.session(sync) as session:
        handles["turn"] = await session.send_message("go")
        events = await stage.events(handles["turn"])

    assert ToolProgress("sync", {"done": 1}) in events
    assert "cancelled" == events[-1].reason


@pytest.mark.parametrize("thread", ["wait", "abandon", "cooperative"])
async def test_a_thread_may_not_wait_for_its_own_turn(thread, stage, steady_clock):
    """A sync tool that awaits its own turn through Trio gets WOULD_DEADLOCK, however it is declared."""
    handles = {}

    @tool(thread=thread, timeout_ms=20_000)
    def sync() -> str:
        """Waits for itself."""
        try:
            trio.from_thread.run(handles["turn"].result)
        except WouldDeadlock as error:
            return error.code
        return "waited"

    stage.says(calls("sync"), say("done"))
    async with stage.session(sync) as session:
        handles["turn"] = await session.send_message("go")
        result = await handles["turn"].result()

    assert ["WOULD_DEADLOCK"] == [each.content for each in result.tool_results]


@pytest.mark.parametrize("error", [ValueError, SystemExit, GeneratorExit])
async def test_what_a_thread_raises_is_an_error_result(error, stage, steady_clock):
    """Whatever a thread raises is the tool's error, and the turn goes on."""

    @tool
    def sync() -> str:
        """Raises."""
        raise error("on purpose")

    stage.says(calls("sync"), say("done"))
    async with stage.session(sync) as session:
        result = await (await session.send_message("go")).result()

    assert TurnStatus.COMPLETED == result.status
    assert "on purpose" in result.tool_results[0].content


async def test_threads_run_at_once_up_to_the_limit(stage, steady_clock):
    """Read-only sync tools run concurrently, as many as ``max_concurrent_tools``."""
    stage.configure(max_concurrent_tools=2)
    barrier = threading.Barrier(2, timeout=2)

    @tool
    def meet() -> str:
        """Meets another."""
        barrier.wait()
        time.sleep(0.001)
        return "met"

    stage.says(calls(*[call("meet", id=name) for name in "abcd"]), say("done"))
    async with stage.agent(meet) as agent, await agent.new_session() as session:
        result = await (await session.send_message("go")).result()
        assert 2 == agent.statistics().peak_tools

    assert ["met"] * 4 == [each.content for each in result.tool_results]


async def test_a_thread_of_the_host_calls_through_trio(stage, steady_clock):
    """In a thread cancel() raises WRONG_TRIO_RUN and says how to call it; through from_thread it works."""
    stage.says([20.0, *say("done")])
    async with stage.session() as session:
        turn = await session.send_message("go")

        def in_thread():
            with pytest.raises(WrongTrioRun, match=r"trio\.from_thread\.run"):
                turn.cancel()
            return trio.from_thread.run_sync(turn.cancel)

        assert await trio.to_thread.run_sync(in_thread)
        assert TurnStatus.CANCELLED == (await turn.result()).status


async def test_a_task_that_a_thread_starts_for_the_host_may_wait(stage, steady_clock):
    """A thread may have a task of the host's wait for its turn: that one does not wait for itself."""
    seen = []

    async def waits(turn):
        seen.append((await turn.result()).status)

    async with trio.open_nursery() as host:

        @tool
        def sync() -> str:
            """Delegates."""
            trio.from_thread.run_sync(host.start_soon, waits, handles["turn"])
            return "ok"

        handles = {}
        stage.says([0.5, *calls("sync")], say("done"))
        async with stage.session(sync) as session:
            handles["turn"] = await session.send_message("go")
            await handles["turn"].result()

    assert [TurnStatus.COMPLETED] == seen

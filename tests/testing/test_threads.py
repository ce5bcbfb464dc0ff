"""Threads run for real, one at a time, so that runs repeat; and what hangs is told."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
import time
from typing import Any

import pytest
import trio
from youyou.testing import Simulation, explore, sweep
from youyou.testing.process import threads

in_thread = trio.to_thread.run_sync


async def calls_back(sim: Simulation) -> None:
    """Asks Trio for something from its thread."""

    def work() -> float:
        trio.from_thread.run(trio.sleep, 1)
        return trio.from_thread.run_sync(trio.current_time)

    began = trio.current_time()
    assert await in_thread(work) - began == 1


async def waits_for_a_task(sim: Simulation) -> None:
    """Its thread goes on when a task says so."""
    go = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_thread, go.wait)
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
            go.set()


async def consumes_a_queue(sim: Simulation) -> None:
    """Its thread takes what tasks put."""
    items: queue.Queue[int | None] = queue.Queue()
    got: list[int] = []
    sim.at_end(lambda: got == list(range(len(got))), "in order")

    def consume() -> None:
        while (item := items.get()) is not None:
            got.append(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_thread, consume)
        try:
            for number in range(3):
                await trio.sleep(1)
                items.put(number)
        finally:
            items.put(None)


async def waits_for_a_future(sim: Simulation) -> None:
    """One thread waits for what another makes."""
    future: concurrent.futures.Future[int] = concurrent.futures.Future()

    def make() -> None:
        time.sleep(5)
        future.set_result(7)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_thread, make)
        assert await in_thread(future.result) == 7
        assert sim.now == 5


async def waits_with_a_time_out(sim: Simulation) -> None:
    """Of virtual time."""
    began = sim.now
    assert not await in_thread(threading.Event().wait, 3600)
    assert sim.now - began == 3600


async def is_abandoned(sim: Simulation) -> None:
    """The task goes on, the thread later."""
    done: list[float] = []

    def work() -> None:
        time.sleep(5)
        done.append(sim.now)

    with trio.move_on_after(2) as scope:
        await in_thread(work, abandon_on_cancel=True)
    assert (scope.cancelled_caught, sim.now, done) == (True, 2, [])
    await trio.sleep(10)
    assert done == [5]


async def sees_its_cancel(sim: Simulation) -> None:
    """A thread may ask whether it was cancelled."""

    def work() -> None:
        while True:
            time.sleep(1)
            trio.from_thread.check_cancelled()

    with trio.move_on_after(3.5) as scope:
        await in_thread(work)
    assert (scope.cancelled_caught, sim.now) == (True, 4)


PROGRAMS = (
    calls_back,
    waits_for_a_task,
    consumes_a_queue,
    waits_for_a_future,
    waits_with_a_time_out,
    is_abandoned,
    sees_its_cancel,
)


@pytest.mark.parametrize("scenario", PROGRAMS)
def test_a_program_with_threads_is_tried_in_every_order(scenario):
    """As in plain Trio, and the same in each run."""
    report = explore(scenario, schedules=20)

    assert report.ok, str(report)


@pytest.mark.parametrize("scenario", [calls_back, waits_for_a_task, consumes_a_queue, sees_its_cancel])
def test_a_program_with_threads_is_cancelled_at_every_step(scenario):
    """A thread that Trio has to wait for ends all the same."""
    report = sweep(scenario)

    assert report.ok, str(report)
    assert 0 < report.delivered


def test_a_thread_that_a_cancelled_task_never_wakes_is_a_deadlock():
    """Which would hang a plain program forever; the thread is named with its place, and ended."""

    async def scenario(sim: Simulation) -> None:
        go = threading.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_thread, go.wait)
            await trio.sleep(1)
            go.set()

    alive = threading.active_count()
    report = sweep(scenario)

    assert ["deadlock"] == [failure.kind for failure in report.failures]
    assert "thread wait from trio.to_thread.run_sync waits at threading.py:" in report.failures[0].message
    # Trio keeps idle threads for a while.
    assert threading.active_count() <= alive + 8


def test_threads_take_turns():
    """Never two at once, nor one beside the loop."""
    inside: list[int] = []
    worst: list[int] = []

    async def scenario(sim: Simulation) -> None:
        def work() -> None:
            for _ in range(20):
                inside.append(1)
                worst.append(len(inside))
                inside.pop()
                time.sleep(0.1)

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(in_thread, work)

    sweep(scenario, cancel=None).assert_ok()

    assert {1} == set(worst)


def test_a_thread_that_does_not_come_back_is_told_with_its_stack(monkeypatch):
    """Instead of a silence forever."""
    monkeypatch.setattr(threads, "PATIENCE", 0.2)
    go: Any = None

    async def scenario(sim: Simulation) -> None:
        nonlocal go
        go = threading.Lock()
        go.acquire()
        await in_thread(go.acquire, abandon_on_cancel=True)

    report = sweep(scenario, cancel=None)
    go.release()

    assert "stuck" == report.failures[0].kind
    assert "has not come back for 0.2 s of real time" in report.failures[0].message


def test_a_thread_of_the_programs_own_may_wake_it():
    """Nobody says that nothing can happen any more while it runs."""

    async def scenario(sim: Simulation) -> None:
        token, done = trio.lowlevel.current_trio_token(), trio.Event()

        def work() -> None:
            time.sleep(0.05)
            token.run_sync_soon(done.set)

        threading.Thread(target=work).start()
        await done.wait()

    assert [] == [failure.message for failure in sweep(scenario, cancel=None).failures]


def test_a_thread_of_the_programs_own_that_never_wakes_it_is_named(monkeypatch):
    """What is said of the loop is not said of the whole process."""
    from youyou.testing.engine import control

    monkeypatch.setattr(control, "_STRANGERS", 3)
    over = threading.Event()

    async def scenario(sim: Simulation) -> None:
        threading.Thread(target=over.wait, name="Stranger", daemon=True).start()
        await trio.Event().wait()

    try:
        message = sweep(scenario, cancel=None).failures[0].message
    finally:
        over.set()

    assert "unless a thread wakes it: Stranger has been running for " in message

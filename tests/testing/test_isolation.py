"""A simulation is alone in its thread: other loops go on as ever, threads and sockets are kept out."""

from __future__ import annotations

import ast
import random
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
import trio
import trio._core._run as trio_run
from trio.testing import MockClock
from youyou.core.randomness import new_id
from youyou.testing import Simulation, TrioMoved, explore, replay, self_test, sweep
from youyou.testing.process import trio_internals


async def two(sim: Simulation) -> None:
    """A little work."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        nursery.start_soon(trio.sleep, 1)


async def test_a_sweep_works_inside_a_running_test_and_in_a_thread_of_it():
    """Both as a plain call, whose loop waits, and through Trio's own thread helper, whose loop goes on."""
    ticks = []

    async def tick() -> None:
        while True:
            ticks.append(1)
            await trio.sleep(0.001)

    here = sweep(two)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        there = await trio.to_thread.run_sync(lambda: sweep(two, schedules=5))
        nursery.cancel_scope.cancel(reason="done")

    here.assert_ok()
    there.assert_ok()
    assert len(ticks) > 1


def test_a_simulation_inside_a_simulated_scenario_has_its_own_world():
    """Even that works; the outer run is as deterministic as before."""

    async def outer(sim: Simulation) -> None:
        await trio.sleep(1)
        assert explore(two, schedules=3).ok
        await trio.sleep(1)

    sweep(outer).assert_ok()


def test_loops_outside_of_simulations_keep_their_coin():
    """The order of tasks in an ordinary run comes from Trio's own random source, before, during and after a sweep."""

    def orders() -> list[list[int]]:
        async def program() -> list[int]:
            seen: list[int] = []

            async def mark(number: int) -> None:
                seen.append(number)

            async with trio.open_nursery() as nursery:
                for number in range(5):
                    nursery.start_soon(mark, number)
            return seen

        trio_run._r.seed(5)
        return [trio.run(program) for _ in range(20)]

    during: list[list[list[int]]] = []

    async def scenario(sim: Simulation) -> None:
        thread = threading.Thread(target=lambda: during.append(orders()))
        thread.start()
        thread.join()
        await trio.sleep(1)

    before = orders()
    sweep(scenario, cancel=None)

    assert [before] * 3 == during
    assert before == orders()
    assert len({tuple(order) for order in before}) > 1


def test_loops_outside_of_simulations_flip_their_coin_where_they_did(monkeypatch):
    """Without Hypothesis Trio runs tasks as they came or the other way round; that is not changed by a simulation."""
    trio_internals.install()
    monkeypatch.setattr(trio_run._ALLOW_DETERMINISTIC_SCHEDULING, "before", False)

    async def program() -> str:
        seen: list[str] = []

        async def mark(name: str) -> None:
            seen.append(name)

        async with trio.open_nursery() as nursery:
            for name in "abcde":
                nursery.start_soon(mark, name)
        return "".join(seen)

    assert {"abcde", "edcba"} == {trio.run(program) for _ in range(40)}


def test_threads_run_one_at_a_time_and_always_in_the_same_order():
    """No clock jump while a thread works, and no second order of events; a cancel meanwhile loses the answer only."""

    async def scenario(sim: Simulation) -> None:
        done: list[str] = []

        async def work(name: str) -> None:
            with trio.fail_after(1):
                done.append(await trio.to_thread.run_sync(lambda: name))

        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(work, name)
        assert (["a", "b", "c"], 0) == (done, sim.now)

    report = sweep(scenario)

    report.assert_ok()
    assert report.delivered > 0


@pytest.mark.parametrize(
    ("touch", "arguments"),
    [
        (trio.open_tcp_stream, ("127.0.0.1", 9)),
        (trio.open_tcp_listeners, (0,)),
        (trio.lowlevel.wait_readable, (0,)),
        (trio.socket.getaddrinfo, ("example.org", 80)),
    ],
)
def test_real_sockets_are_refused_with_a_way_out(touch, arguments):
    """Nothing real is opened, and the message says what to do."""

    async def scenario(sim: Simulation) -> None:
        await touch(*arguments)

    report = sweep(scenario, cancel=None)

    assert "RealIORefused" in report.failures[0].message
    assert "sim.port" in report.failures[0].message


@pytest.mark.parametrize(
    ("touch", "arguments"),
    [(subprocess.run, (["true"],)), (socket.create_connection, (("127.0.0.1", 9),))],
)
def test_blocking_clients_and_processes_in_threads_are_refused_too(touch, arguments):
    """A thread that runs inline must not wait for the real world."""

    async def scenario(sim: Simulation) -> None:
        await trio.to_thread.run_sync(touch, *arguments)

    report = sweep(scenario, cancel=None)

    assert "RealIORefused" in report.failures[0].message


@pytest.mark.usefixtures("sigint_as_in_a_terminal")
def test_a_real_ctrl_c_ends_the_sweep():
    """The person at the keyboard is obeyed; only an injected Ctrl-C belongs to the program under test."""

    async def scenario(sim: Simulation) -> None:
        signal.raise_signal(signal.SIGINT)
        await trio.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        sweep(scenario)


def test_ordinary_runs_in_the_same_thread_may_use_sockets_afterwards():
    """The refusal ends with the simulation."""
    sweep(two).assert_ok()

    async def program() -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        await listener.aclose()

    trio.run(program)


def test_the_self_test_passes_with_this_trio():
    """What the simulation relies on is there."""
    self_test.__wrapped__()


@pytest.mark.parametrize(("owner", "name"), trio_internals.NEEDED)
def test_a_trio_without_what_is_needed_is_refused_by_name(monkeypatch, owner, name):
    """Whatever is missing is named by every way into the kit, before anything is run."""
    without = [(o, n if (o, n) != (owner, name) else f"{n}_moved") for o, n in trio_internals.NEEDED]
    monkeypatch.setattr(trio_internals, "NEEDED", without)
    for run in (sweep, explore, lambda scenario: replay(scenario, "yy1-a1")):
        with pytest.raises(TrioMoved, match=re.escape(f"{owner}.{name}_moved; ")):
            run(never_run)


async def never_run(sim: Simulation) -> None:
    """A scenario that must not be reached."""
    raise AssertionError


def test_a_trio_older_than_a_public_name_is_refused_by_that_name(monkeypatch):
    """Not with an AttributeError from inside the kit."""
    monkeypatch.delattr(trio.lowlevel, "in_trio_run")
    with pytest.raises(TrioMoved, match=r"has no lowlevel\.in_trio_run"):
        sweep(never_run)


def test_every_private_name_of_trio_in_use_is_checked():
    """Each attribute with an underscore that the one module reads, and each field of the run loop."""
    tree = ast.parse(Path(trio_internals.__file__).read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    loop = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "loop"}
    private = {name for name in used if name.startswith("_") and not name.startswith("__")} - OF_THE_MODULE
    assert (private | loop) - {name for _, name in trio_internals.NEEDED} == set()


OF_THE_MODULE = {
    "_real_clock",
    "_core",
    "_run",
    "_threads",
    "_getframe",
    "_listener",
    "_originals",
    "_sending",
    "_receiving",
}
"""Modules of Trio, which the import checks, and attributes of the module's own classes."""


def test_a_trio_that_no_longer_asks_for_an_order_is_refused(monkeypatch):
    """The internals are all there and do nothing: the known program takes another course."""
    monkeypatch.setattr(trio_internals.DispatchingRandom, "shuffle", lambda self, batch: None)
    with pytest.raises(TrioMoved, match="no longer holds"):
        self_test.__wrapped__()


def test_a_trio_that_wakes_tasks_in_another_way_is_refused(monkeypatch):
    """If a cancel can no longer be seen to arrive, every result would be 'unresolved'."""
    monkeypatch.setattr(trio_internals, "thrown_into", lambda task: None)
    with pytest.raises(TrioMoved, match="cancel"):
        self_test.__wrapped__()


def test_hypothesis_can_register_the_random_source():
    """Its plugin for Trio registers the module's random source, ours or not, and may seed it."""
    assert isinstance(trio_run._r, random.Random)
    state = trio_run._r.getstate()
    trio_run._r.setstate(state)
    assert state == trio_run._r.getstate()


def test_the_virtual_clock_of_an_ordinary_run_is_left_alone():
    """A mock clock outside of a simulation works as ever."""

    async def program() -> float:
        await trio.sleep(1000)
        return trio.current_time()

    assert 1000 == trio.run(program, clock=MockClock(autojump_threshold=0))


def test_the_runs_of_an_agent_are_equal_without_the_scenarios_help():
    """Ids of sessions are random and stand in the names of tasks; the kit seeds them, so that an agent can be swept."""
    ids = []

    async def scenario(sim):
        ids.append(new_id())
        await trio.sleep(1)

    sweep(scenario, points=1)
    first, *others = ids
    assert [first] * len(others) == others
    assert new_id() != new_id() != first

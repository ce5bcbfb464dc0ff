"""Explorations find what only some orders show, and shrink it."""

from __future__ import annotations

import itertools

import pytest
import trio
from youyou.testing import Simulation, explore, replay
from youyou.testing.engine.schedule import Priorities
from youyou.testing.report.tokens import bare


async def lost_update(sim: Simulation) -> None:
    """Two tasks read, pause for different times and write."""
    total = [0]
    sim.at_end(lambda: total[0] == 2, "both counted")

    async def add(pause: int) -> None:
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        seen = total[0]
        if sim.choose(2):
            await trio.lowlevel.checkpoint()
        total[0] = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add, 1)
        nursery.start_soon(add, 1)


async def wrong_order(sim: Simulation) -> None:
    """Right only if the first of two equal sleepers wakes first."""
    woken: list[int] = []
    sim.at_end(lambda: woken == sorted(woken), "in order")

    async def sleeper(number: int) -> None:
        await trio.sleep(1)
        woken.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(sleeper, number)


async def slow_start(sim: Simulation) -> None:
    """Wrong only if one task takes twelve steps before the other's second: no order of Trio's does that."""
    done: list[str] = []
    sim.at_end(lambda: "".join(done) != "longshort", "short one first")

    async def run(name: str, steps: int) -> None:
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        done.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "short", 2)
        nursery.start_soon(run, "long", 12)


@pytest.mark.parametrize("strategy", ["walk", "pct2", "pct3"])
@pytest.mark.parametrize("scenario", [wrong_order, lost_update])
def test_a_bug_of_order_is_found_and_shrunk(scenario, strategy):
    """Few schedules are enough, and at most two decisions remain; the plain order hides it."""
    report = explore(scenario, strategy=strategy, schedules=60)

    assert [] == report.baseline.violations
    assert "at_end" == report.failures[0].kind
    assert 1 <= len(report.failures[0].attempt.order.deviations) <= 2
    assert not replay(scenario, report.failures[0].token).ok


def test_of_many_decisions_only_the_one_that_matters_is_kept():
    """Twenty decisions were taken; the report names one."""

    async def scenario(sim: Simulation) -> None:
        taken = [sim.choose(2) for _ in range(20)]
        assert not taken[7]

    report = explore(scenario, strategy="walk", schedules=40)

    assert ["yy2-d7.1"] == [bare(f.token) for f in report.failures]
    assert report.note.endswith("shrunk to 1 decision")


def test_priorities_change_as_often_as_the_depth_says():
    """The same task goes first until a change point; with depth 3 that happens twice, or once if points coincide."""

    def switches(seed: int, depth: int) -> int:
        source = Priorities(seed, depth, 50)
        first = [source.pick(number, 2, [0, 1]) for number in range(50)]
        return sum(a != b for a, b in itertools.pairwise(first))

    assert {0, 1} >= {switches(seed, 2) for seed in range(30)}
    assert {0, 1, 2} == {switches(seed, 3) for seed in range(60)}
    assert {0} == {switches(seed, 1) for seed in range(10)}


def test_orders_that_trio_cannot_produce_are_left_alone_unless_asked_for():
    """Arbitrary delay is an opt-in, and marked in the token."""
    assert explore(slow_start, schedules=150).ok
    unfair = explore(slow_start, schedules=150, fairness="none")

    assert not unfair.ok
    assert bare(unfair.failures[0].token).endswith("-u")
    assert not replay(slow_start, unfair.failures[0].token).ok


def test_the_same_seed_explores_the_same_and_another_does_not():
    """Every run follows from the seed."""

    def found(seed: int) -> tuple[int, str]:
        report = explore(lost_update, strategy="walk", seed=seed)
        return report.runs, report.failures[0].message

    assert found(1) == found(1)
    assert len({found(seed) for seed in range(8)}) > 1


def test_late_ports_bring_out_what_order_alone_cannot():
    """With latency an answer may take longer than its asker waits."""

    class Clock:
        async def read(self) -> float:
            await trio.lowlevel.checkpoint()
            return 1.0

    async def scenario(sim: Simulation) -> None:
        clock = sim.port("clock", Clock())
        with trio.move_on_after(10):
            sim.note(f"read {await clock.read()}")
            return
        raise TimeoutError("no answer")

    assert explore(scenario, schedules=30).ok
    report = explore(scenario, schedules=60, latency=True)

    assert "TimeoutError" in report.failures[0].message
    assert "-l" in report.failures[0].token
    assert not replay(scenario, report.failures[0].token).ok


def test_a_failure_that_needs_many_decisions_has_a_short_token_too():
    """If the decisions do not fit, the seed and how far it reaches take their place."""

    async def scenario(sim: Simulation) -> None:
        total = 0
        for _ in range(60):
            total += sim.choose(9)
        assert total < 60

    report = explore(scenario, strategy="walk", schedules=60)

    token = report.failures[0].token
    assert len(token) < 100
    assert not replay(scenario, token).ok


def test_a_decision_may_fall_on_a_task_of_trio_itself():
    """What runs for `TrioToken.run_sync_soon` is not a task of the program, and still one that an order chooses."""

    async def scenario(sim: Simulation) -> None:
        token, called = trio.lowlevel.current_trio_token(), trio.Event()

        async def busy() -> None:
            for _ in range(5):
                token.run_sync_soon(called.set)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy)
            nursery.start_soon(busy)
            await called.wait()

    for number, option in itertools.product(range(1, 15), (1, 2)):
        report = replay(scenario, f"yy1-d{number}.{option}")
        assert [] == [str(failure) for failure in report.failures]

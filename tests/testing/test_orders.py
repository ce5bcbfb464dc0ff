"""An exploration counts orders, not efforts; tries all of them where it can; and proves what it tried."""

from __future__ import annotations

import pytest
import trio
import trio.lowlevel
from youyou.testing import Simulation, explore, replay
from youyou.testing.campaigns.orders import Frontier, Sampler
from youyou.testing.engine.attempt import Order


def steps_of(tasks: int, steps: int, seen: set[tuple[int, ...]]):
    """Tasks that take steps concurrently, and note the order."""

    async def scenario(sim: Simulation) -> None:
        order: list[int] = []

        async def work(name: int) -> None:
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
                order.append(name)

        async with trio.open_nursery() as nursery:
            for number in range(tasks):
                nursery.start_soon(work, number)
        seen.add(tuple(order))

    return scenario


@pytest.mark.parametrize(("tasks", "steps", "orders"), [(1, 5, 1), (2, 1, 4), (2, 2, 8), (2, 3, 16)])
def test_a_small_program_is_tried_in_every_order_and_then_the_search_stops(tasks, steps, orders):
    """Each run a new order, and the report says that none is left. (A task's first step is one more to order.)"""
    seen: set[tuple[int, ...]] = set()
    report = explore(steps_of(tasks, steps, seen), schedules=200)

    # The plain order is run twice, to see that it is the same.
    assert (orders, orders + 1) == (report.distinct, report.runs)
    assert ("every order", None) == (report.exhausted, report.unseen)
    words = f"{orders} distinct order{'s' * (orders != 1)}, every order: none left"
    assert words in report.summary()


def test_a_larger_program_says_how_much_is_left():
    """Distinct orders are counted, and the probability of a new one is estimated."""
    report = explore(steps_of(4, 4, set()), schedules=100)

    assert (102, "") == (report.runs, report.exhausted)
    assert 2 < report.distinct <= 101
    assert report.unseen is not None and report.unseen > 0.5
    assert f"{report.distinct} distinct orders, of further ones about" in report.summary()


def test_the_estimate_falls_as_orders_come_again():
    """What chance keeps drawing again is nearly all there is."""
    report = explore(steps_of(2, 2, set()), strategy="walk", schedules=200)

    assert (8, "") == (report.distinct, report.exhausted)
    assert 0.0 == report.unseen


def test_a_bound_limits_the_deviations():
    """Every order with at most so many, no other, and the words that prove it."""
    seen: set[tuple[int, ...]] = set()
    scenario = steps_of(2, 3, seen)

    found = [explore(scenario, bound=bound) for bound in range(5)]

    # Four passes with two tasks each: so many ways to turn none, one, two, three, four of them round.
    assert [1, 1 + 4, 1 + 4 + 6, 1 + 4 + 6 + 4, 16] == [report.distinct for report in found]
    assert "every order with at most 1 deviation" == found[1].exhausted
    assert "every order with at most 4 deviations" == found[4].exhausted
    assert all(report.ok for report in found)


def test_every_cancel_in_every_order_is_tried():
    """A bug that needs an order and a cancel is found, with both in its token; the twin is proved."""

    def handing_over(safe: bool):
        async def scenario(sim: Simulation) -> None:
            box = ["item"]
            sim.at_end(lambda: box == ["item"], "the item is in the box")

            async def take() -> None:
                if box:
                    item = box.pop()
                    try:
                        await trio.sleep(1)
                    finally:
                        if safe or not sim.first:  # type: ignore[attr-defined]
                            box.append(item)

            async def other() -> None:
                sim.first = bool(box)  # type: ignore[attr-defined]
                await trio.sleep(1)

            sim.first = False  # type: ignore[attr-defined]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take)
                nursery.start_soon(other)

        return scenario

    assert explore(handing_over(False), bound=0, cancel="root").ok
    bad = explore(handing_over(False), bound=1, cancel="root")
    good = explore(handing_over(True), bound=1, cancel="root")

    assert ["at_end"] == [failure.kind for failure in bad.failures]
    assert not replay(handing_over(False), bad.failures[0].token).ok
    assert "every order with at most 1 deviation, and in each every cancel of root" == good.exhausted
    assert good.ok
    assert good.planned == good.delivered + good.not_reached + good.without_effect


def test_a_target_that_is_not_there_is_told():
    """In an exploration as in a sweep."""
    report = explore(steps_of(2, 1, set()), bound=1, cancel="nobody")

    assert (False, 1) == (report.ok, len(report.missed))


@pytest.mark.parametrize("strategy", ["walk", "pos", "pct2", "pct5", "guided", "systematic", ("systematic", "guided")])
def test_each_strategy_finds_two_tasks_in_the_wrong_order(strategy):
    """Whatever the way of choosing."""

    async def scenario(sim: Simulation) -> None:
        said: list[int] = []

        async def say(number: int) -> None:
            await trio.sleep(1)
            said.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(say, 1)
            nursery.start_soon(say, 2)
        assert said == [1, 2]

    report = explore(scenario, strategy=strategy, schedules=40)

    assert "shrunk to 1 decision" in report.note
    assert not replay(scenario, report.failures[0].token).ok


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_bug_that_needs_several_inversions_is_found_systematically(depth):
    """In rounds of two tasks, each of which must come the other way round."""

    async def scenario(sim: Simulation) -> None:
        hits = []
        for _ in range(depth):
            order: list[int] = []

            async def say(number: int, order: list[int] = order) -> None:
                order.append(number)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(say, 0)
                nursery.start_soon(say, 1)
            hits.append(order == [1, 0])
        assert not all(hits)

    assert explore(scenario, bound=depth - 1).ok
    report = explore(scenario, bound=depth)
    assert [depth] == [len(failure.attempt.order.deviations) for failure in report.failures]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bound": -1}, "bound=-1; write how many deviations"),
        ({"strategy": "pct1"}, "unknown strategy 'pct1'; choose"),
        ({"strategy": "luck"}, "unknown strategy 'luck'; choose"),
        ({"strategy": ()}, "name at least one"),
        ({"swallowed": "never"}, "choose 'note' or 'failure'"),
    ],
)
def test_a_wrong_option_is_refused_in_words(options, says):
    """What was wrong, and what to write instead."""
    with pytest.raises(ValueError, match=says):
        explore(steps_of(1, 1, set()), **options)


def test_the_frontier_goes_by_the_number_of_deviations():
    """All with one before any with two, and none twice."""
    frontier = Frontier(2)
    frontier.expand((), [2, 3])
    found = []
    while (deviations := frontier.next()) is not None:
        found.append(deviations)
        frontier.expand(deviations, [2, 3])

    assert [((0, 1),), ((1, 1),), ((1, 2),), ((0, 1), (1, 1)), ((0, 1), (1, 2))] == found


def test_the_sampler_draws_other_orders_for_another_seed():
    """And the same for the same."""

    def drawn(seed: int) -> list[Order]:
        sampler = Sampler(("walk", "pct2"), seed, 10)
        return [sampler.next() for _ in range(100)]

    assert drawn(1) == drawn(1)
    assert set() == {order.seed for order in drawn(1)} & {order.seed for order in drawn(2)}

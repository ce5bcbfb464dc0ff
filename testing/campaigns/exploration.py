"""Run a scenario under many orders of its tasks, and with late and failing ports, to find what only some orders show.

    report = explore(scenario, schedules=500)
    report = explore(scenario, bound=2, cancel="root")         # every order with two deviations, each cancel in each
    report = explore(scenario, latency=True)                   # ports answer late, at random
    report = explore(scenario, chaos=Chaos(heal=60))           # ports fail for a minute; after that all must finish

Orders are those that Trio itself can produce: no runnable task runs twice before another runs once.
``fairness="none"`` lifts that, and may report what no Trio program can meet today. A failure is shrunk to the fewest
decisions that matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from ..engine.attempt import (
    Attempt,
    Chaos,
    Fairness,
    Injection,
    Limits,
    Order,
    Run,
    Severity,
    Strategy,
    check_strategy,
)
from ..engine.running import outside_trio, prepared
from ..engine.simulation import Scenario
from ..report.report import Report
from ..report.seen import Seen
from ..report.tokens import fits
from .campaign import Campaign, Key, Progress, conduct, signature
from .orders import Deviations, Frontier, Sampler
from .targets import as_scenario, every_point
from .teamwork import Part, Team, Workers, check_workers, results_file

_AUTO: tuple[Strategy, ...] = ("systematic", "walk", "pct2", "guided", "pct3")
_SCHEDULES = 200
_SHRINKS = 80
_FIRST_ROUND, _LARGEST_ROUND = 32, 4096
"""Orders that are chosen at once where many processes run them; each round is twice as large as the one before."""
_QUIET = 200
"""Orders none of which is new, at the least, before a search is taken to have come to its end."""


@attrs.frozen
class Search:
    """What an exploration tries; see `explore`."""

    schedules: int | None
    bound: int | None
    strategies: Sequence[Strategy]
    cancel: str | None
    stop_at_first: bool
    until_quiet: bool


@attrs.frozen
class Unit:
    """One order; or every cancel of a target in one."""

    attempt: Attempt
    systematic: bool = False
    """A search goes on from here: how many possibilities did each decision have?"""
    cancel: str | None = None


def explore(
    scenario: Scenario | str,
    *,
    schedules: int | None = None,
    bound: int | None = None,
    cancel: str | None = None,
    strategy: Strategy | Sequence[Strategy] = _AUTO,
    fairness: Fairness = "trio",
    latency: bool = False,
    chaos: Chaos | None = None,
    seed: int = 0,
    allow: tuple[type[BaseException], ...] = (),
    allow_leaks: tuple[str, ...] = (),
    swallowed: Severity = "note",
    max_steps: int = 20_000,
    max_seconds: float = 7 * 86_400.0,
    stop_at_first: bool = True,
    budget: float | None = None,
    until_quiet: bool = False,
    workers: Workers = None,
    chunk: int | None = None,
    save: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run ``scenario`` under many orders of its tasks and report what went wrong, shrunk.

    Blocks; also works inside a running Trio task, whose loop waits meanwhile (semantics 15). Ends before its time when
    every order was tried: ``report.exhausted`` says so.

    Args:
        schedules: how many orders; 200 if nothing is said, no limit if there is a ``bound`` or ``until_quiet``.
        bound: try every order with at most so many deviations from the plain order, and no other.
        cancel: a target, as for `sweep`, that is cancelled at every step of each order.
        strategy: how orders are chosen: ``systematic`` (all of them, those with few deviations first), ``walk`` (every
            decision at random), ``pos`` (a task may stay behind for long), ``pct2`` to ``pct9`` (random priorities that
            change once less than that), ``guided`` (goes on from orders that led somewhere new), or several to take in
            turn. A program so small that ``schedules`` suffice for all orders is searched completely by the default.
        fairness: ``none`` also delays runnable tasks for as long as it likes, which Trio's scheduler never does.
        latency: calls of `Simulation.port` answer late, by up to half a minute of virtual time, and around the
            program's own deadlines.
        chaos: calls fail at random until it heals; then the scenario must finish within ``chaos.finish`` seconds.
        seed: of the orders and of `Simulation.random`; the same seed explores the same orders.
        allow: exceptions that may come out of the scenario.
        allow_leaks: patterns (``library.*``) for coroutines and generators, by module and name, that may be left.
        swallowed: ``failure`` makes a swallowed `trio.Cancelled` one; else it is a note.
        max_steps: more steps than this in one run are a failure, and so is more virtual time than ``max_seconds``.
        stop_at_first: end at the first failing order.
        budget: seconds of real time after which no further run begins; the report says that it is partial.
        until_quiet: end when nothing new comes: none of the last 200 orders, or of the later half of all, was new.
        workers: how many processes do the runs, or a `concurrent.futures.Executor`. The report is the same whatever it
            is, 0 (this process alone) included; without it each order may be chosen after the one before. The scenario
            must be found by name: not made inside another function.
        chunk: how many orders a worker is handed at once; that does not change the report either.
        save: a file that keeps the results; the same call again goes on where it was stopped.
        progress: called after every run with runs done, runs planned, and failures.

    Raises:
        Interrupted: a person pressed Ctrl-C; its ``report`` holds what was found.
        ValueError: an option cannot be, ``save`` holds another campaign, or another process cannot find the scenario.
    """
    chosen = as_scenario(scenario)
    check_workers(workers, chunk)
    if chaos is not None and "cancel_after" in chaos.modes:
        raise ValueError("chaos makes calls fail, it does not cancel: leave 'cancel_after' out of its modes")
    strategies: Sequence[Strategy] = (strategy,) if isinstance(strategy, str) else tuple(strategy)
    _check(schedules, bound, fairness, swallowed, strategies)
    if schedules is None and bound is None and not until_quiet:
        schedules = _SCHEDULES
    longest = max_seconds if chaos is None else min(max_seconds, chaos.heal + chaos.finish)
    limits = Limits(max_steps, longest, allow, allow_leaks=allow_leaks, swallowed=swallowed, noting=True)
    base = Attempt(seed=seed, fairness=fairness, latency=latency, chaos=chaos)
    search = Search(schedules, bound, tuple(strategies), cancel, stop_at_first, until_quiet)

    def work() -> Report:
        with prepared() as watch:
            campaign = Campaign(chosen, limits, watch, "exploration", progress, budget=budget, given=scenario)
            file = results_file(save, campaign, search, order=base, rounds=workers is not None)
            with (
                file as kept,
                Team(campaign, search, PART, workers, chunk, kept) as team,
            ):
                return conduct(campaign, lambda: _explore(campaign, base, search, team), coverage=cancel is not None)

    return outside_trio(work)


def _check(
    schedules: int | None, bound: int | None, fairness: str, swallowed: str, strategies: Sequence[Strategy]
) -> None:
    if fairness not in ("trio", "none"):
        raise ValueError(f"unknown fairness {fairness!r}; choose 'trio' or 'none'")
    if swallowed not in ("note", "failure"):
        raise ValueError(f"swallowed={swallowed!r}; choose 'note' or 'failure'")
    if schedules is not None and schedules < 1:
        raise ValueError(f"schedules={schedules}; write 1 or more")
    if bound is not None and bound < 0:
        raise ValueError(f"bound={bound}; write how many deviations an order may have, 0 or more")
    if not strategies:
        raise ValueError("strategy=(); name at least one")
    for name in strategies:
        if name not in ("guided", "systematic"):
            check_strategy(name)


def do_unit(campaign: Campaign, search: Search, unit: Unit) -> None:
    """Make the runs of one unit."""
    if unit.cancel is None:
        campaign.search = ("options" if unit.systematic else "", "places" if "guided" in search.strategies else "")
        campaign.try_out(unit.attempt)
        campaign.search = ("", "")
        return
    plain = campaign.last
    if plain is None or plain.attempt != unit.attempt:
        plain = campaign.quietly(unit.attempt)
    _cancel_in(campaign, plain, unit.cancel)


PART = Part(do_unit, f"{__name__}:{do_unit.__name__}")


@attrs.define(eq=False)
class Rounds:
    """Which orders to try next, as long as there are any."""

    search: Search
    base: Attempt
    baseline: Run
    frontier: Frontier
    sampler: Sampler
    few: int
    """So many orders are tried one after another: that may be all there are."""
    number: int = 0
    """Orders chosen so far."""
    none_left: bool = False

    def next(self, size: int) -> list[Unit]:
        """At most ``size`` orders, chosen from what is known now. Empty: there is none left."""
        chosen: list[Unit] = []
        deepest: int | None = None
        while len(chosen) < size and (self.search.schedules is None or self.number < self.search.schedules):
            # By turns, unless all can be tried: few deviations find most bugs soon, chance finds those that need many.
            turn = self.search.strategies[self.number % len(self.search.strategies)] == "systematic"
            deviations: Deviations | None = ()
            if self._always or turn or self.number < self.few:
                # What has more deviations is chosen only when all with fewer were run: they may lead to others.
                deviations = self.frontier.next(deepest)
                if deviations is None:
                    self.none_left = not chosen
                    break
                deepest = len(deviations)
            self.number += 1
            order = Order(deviations=deviations) if deviations else self.sampler.next()
            chosen.append(Unit(attrs.evolve(self.base, order=order), systematic=bool(deviations)))
        return chosen

    @property
    def _always(self) -> bool:
        return self.search.bound is not None or not self.sampler.strategies


def _explore(campaign: Campaign, base: Attempt, search: Search, team: Team[Unit]) -> None:
    baseline = campaign.baseline(base)
    campaign.planned_runs = campaign.runs + (search.schedules or 0)
    if [f for f in baseline.failures if f.kind != "leak"]:
        campaign.note = "the plain order fails already"
        return
    chance = tuple(name for name in search.strategies if name != "systematic")
    frontier, sampler = Frontier(search.bound), Sampler(chance, base.seed, max(1, baseline.decisions))
    frontier.expand((), baseline.options)
    # What the plain run tells is a guess: after twice as many the program is larger than it looked.
    few = 2 * _orders(baseline, search.schedules) if len(chance) < len(search.strategies) else 0
    rounds = Rounds(search, base, baseline, frontier, sampler, few)
    _over(campaign, search, team, [Unit(baseline.attempt, cancel=search.cancel)] if search.cancel is not None else [])
    try:
        over = _orders_until_over(campaign, search, team, rounds)
    finally:
        # The budget may end it, or a person.
        campaign.unseen = sampler.unseen
    if rounds.none_left and not over:
        campaign.exhausted, campaign.unseen = _exhausted(search), None
    arrived = ("cancel", search.cancel) in campaign.known.took_effect
    if search.cancel is not None and not arrived and not campaign.failed:
        campaign.missed = (f"no injection took effect for cancel={search.cancel!r}: is the target's name right?",)


def _orders_until_over(campaign: Campaign, search: Search, team: Team[Unit], rounds: Rounds) -> bool:
    """Try one round after another; whether something ended it before there was none left."""
    size = _FIRST_ROUND if team.by_rounds else 1
    number = last_new = 0
    over = bool(campaign.failed and search.stop_at_first)
    while not over and (units := rounds.next(size)):
        fresh: list[Unit] = []
        known = campaign.failing()
        for unit, (seen, *_) in team.do(units):
            number += 1
            _shrink_new(campaign, known, number)
            known = campaign.failing()
            new = campaign.traces[seen.trace] == 1
            last_new = number if new else last_new
            _learn(unit, seen, rounds, new=new)
            if new and not seen.failed and search.cancel is not None:
                fresh.append(Unit(unit.attempt, cancel=search.cancel))
            quiet = search.until_quiet and number - last_new >= max(_QUIET, number // 2)
            if quiet:
                campaign.note = f"none of the last {number - last_new:,} orders was new"
            over = quiet or bool(campaign.failed and search.stop_at_first)
            if over:
                break
        over = _over(campaign, search, team, fresh) or over
        size = min(2 * size, _LARGEST_ROUND) if team.by_rounds else 1
    return over


def _learn(unit: Unit, seen: Seen, rounds: Rounds, *, new: bool) -> None:
    if not unit.systematic:
        rounds.sampler.take(seen)
    elif new:
        rounds.frontier.expand(unit.attempt.order.deviations, seen.options)


def _over(campaign: Campaign, search: Search, team: Team[Unit], units: list[Unit]) -> bool:
    """Do ``units``; whether that ends the search."""
    return any(campaign.failed and search.stop_at_first for _ in team.do(units))


def _orders(plain: Run, most: int | None) -> int:
    """How many orders there are, as far as the decisions of the plain run tell; 0 if more than ``most``."""
    total = 1
    for options in plain.options:
        total *= options
        if most is not None and total > most:
            return 0
    return total


def _exhausted(search: Search) -> str:
    if search.bound is None:
        words = "every order"
    else:
        words = f"every order with at most {search.bound} deviation{'s' * (search.bound != 1)}"
    return words if search.cancel is None else f"{words}, and in each every cancel of {search.cancel}"


def _shrink_new(campaign: Campaign, known: set[Key], number: int) -> None:
    """Failures of kinds that are new are shrunk."""
    for key in campaign.failing() - known:
        smaller = shrink(campaign, campaign.kinds[key].run, key)
        left = len(smaller.attempt.order.deviations)
        campaign.note = f"found in schedule {number}, shrunk to {left} decision{'s' * (left != 1)}"
        campaign.replace(key, smaller)


def _cancel_in(campaign: Campaign, plain: Run, target: str) -> None:
    """The same order again, once for each step, with a cancel there."""
    deviations = tuple(plain.deviations.items())
    order = Order(deviations=deviations) if deviations else Order()
    born = plain.targets.get(target, 0)
    for step, when in every_point(plain):
        if step > born or (step == born and when == "after"):
            injection = Injection("cancel", step, target, when)
            campaign.try_out(attrs.evolve(plain.attempt, order=order, injections=(injection,)), plain)


def shrink(campaign: Campaign, run: Run, key: Key) -> Run:
    """The same failure with fewer decisions off the plain order: drop the tail, then ever smaller pieces."""
    kept = list(run.deviations.items())
    recorded = fails_alike(campaign, _with(run.attempt, kept), key)
    if recorded is None:
        return run
    best = recorded
    budget, size = _SHRINKS, max(1, len(kept) // 2)
    while kept and budget > 0:
        start, dropped = max(0, len(kept) - size), False
        while start >= 0 and budget > 0:
            fewer = kept[:start] + kept[start + size :]
            budget -= 1
            again = fails_alike(campaign, _with(run.attempt, fewer), key)
            if again is not None:
                best, dropped = again, True
                kept = fewer
            start -= size
        if size == 1 and not dropped:
            break
        size = max(1, size // 2)
    return best if fits(best.attempt) else _by_seed(campaign, run, key)


def _with(attempt: Attempt, deviations: list[tuple[int, int]]) -> Attempt:
    order = Order(deviations=tuple(deviations)) if deviations else Order()
    return attrs.evolve(attempt, order=order)


def _by_seed(campaign: Campaign, run: Run, key: Key) -> Run:
    """Too many decisions for one line: keep the seed, and cut what comes after the last decision that matters."""
    low, high, best = 0, run.decisions, run
    while low < high:
        middle = (low + high) // 2
        attempt = attrs.evolve(run.attempt, order=attrs.evolve(run.attempt.order, limit=middle))
        again = fails_alike(campaign, attempt, key)
        if again is not None:
            best, high = again, middle
        else:
            low = middle + 1
    return best


def fails_alike(campaign: Campaign, attempt: Attempt, key: Key) -> Run | None:
    """The run of ``attempt`` if it fails in the way ``key`` names."""
    run = campaign.run(attempt)
    return run if any(signature(v) == key for v in run.violations) else None

"""Run a scenario under many orders of its tasks, and with late and failing ports, to find what only some orders show.

    report = explore(scenario, schedules=500)
    report = explore(scenario, latency=True)                   # ports answer late, at random
    report = explore(scenario, chaos=Chaos(heal=60))           # ports fail for a minute; after that all must finish

Orders are those that Trio itself can produce: no runnable task runs twice before another runs once.
``fairness="none"`` lifts that, and may report what no Trio program can meet today. A failure is shrunk to the fewest
decisions that matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..engine.attempt import Attempt, Chaos, Fairness, Limits, Order, Run, Strategy
from ..engine.running import outside_trio
from ..engine.simulation import Scenario
from ..process.leaks import LeakWatch
from ..report.report import Report
from ..report.tokens import fits
from .campaign import Campaign, Progress, signature

_AUTO: tuple[Strategy, ...] = ("walk", "pct2", "walk", "pct3")
_SHRINKS = 80


def explore(
    scenario: Scenario,
    *,
    schedules: int = 200,
    strategy: Strategy | Sequence[Strategy] = _AUTO,
    fairness: Fairness = "trio",
    latency: bool = False,
    chaos: Chaos | None = None,
    seed: int = 0,
    allow: tuple[type[BaseException], ...] = (),
    max_steps: int = 20_000,
    max_seconds: float = 7 * 86_400.0,
    stop_at_first: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Run ``scenario`` under ``schedules`` orders of its tasks and report what went wrong, shrunk.

    Blocks; also works inside a running Trio task, whose loop waits meanwhile (semantics 15).

    Args:
        strategy: ``walk`` (every decision at random), ``pct2``, ``pct3`` (random priorities that change once, twice),
            or several to take in turn.
        fairness: ``none`` also delays runnable tasks for as long as it likes, which Trio's scheduler never does.
        latency: calls of `Simulation.port` answer late, by up to half a minute of virtual time.
        chaos: calls fail at random until it heals; then the scenario must finish within ``chaos.finish`` seconds.
        seed: of the first schedule and of `Simulation.random`; the same seed explores the same schedules.
        allow: exceptions that may come out of the scenario.
        max_steps: more steps than this in one run are a failure, and so is more virtual time than ``max_seconds``.
        stop_at_first: end at the first failing schedule.
        progress: called after every run with runs done, runs planned, and failures.
    """
    if fairness not in ("trio", "none"):
        raise ValueError(f"unknown fairness {fairness!r}; choose 'trio' or 'none'")
    if schedules < 1:
        raise ValueError(f"schedules={schedules}; write 1 or more")
    longest = max_seconds if chaos is None else min(max_seconds, chaos.heal + chaos.finish)
    limits = Limits(max_steps, longest, allow)
    base = Attempt(seed=seed, fairness=fairness, latency=latency, chaos=chaos)
    strategies: Sequence[Strategy] = (strategy,) if isinstance(strategy, str) else strategy

    def work() -> Report:
        with LeakWatch() as watch:
            campaign = Campaign(scenario, limits, watch, "exploration", progress)
            return _explore(campaign, base, strategies, schedules, stop_at_first)

    return outside_trio(work)


def _explore(
    campaign: Campaign, base: Attempt, strategies: Sequence[Strategy], schedules: int, stop_at_first: bool
) -> Report:
    baseline = campaign.baseline(base)
    campaign.planned_runs = campaign.runs + schedules
    length = max(1, baseline.decisions)
    if campaign.failed:
        campaign.note = "the plain schedule fails already"
        return campaign.report(baseline)
    for number in range(schedules):
        order = Order(strategies[number % len(strategies)], base.seed * 100_000 + number + 1, length=length)
        known = set(campaign.kinds)
        run = campaign.try_out(attrs.evolve(base, order=order))
        for key in campaign.kinds.keys() - known:
            smaller = shrink(campaign, run, key)
            left = len(smaller.attempt.order.deviations)
            campaign.note = f"found in schedule {number + 1}, shrunk to {left} decision{'s' * (left != 1)}"
            campaign.replace(key, smaller)
        if campaign.failed and stop_at_first:
            break
    return campaign.report(baseline)


def shrink(campaign: Campaign, run: Run, key: tuple[object, ...]) -> Run:
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


def _by_seed(campaign: Campaign, run: Run, key: tuple[object, ...]) -> Run:
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


def fails_alike(campaign: Campaign, attempt: Attempt, key: tuple[object, ...]) -> Run | None:
    """The run of ``attempt`` if it fails in the way ``key`` names."""
    run = campaign.run(attempt)
    return run if any(signature(v) == key for v in run.violations) else None

"""Do one thing to a scenario at every moment at which it can be done: cancel it, break a port, crash it.

report = sweep(scenario)                                   # cancel everything after every step
report = sweep(scenario, cancel="turn", then="root")       # and everything again while the turn cleans up
report = sweep(scenario, cancel=None, faults=("raise_before", "raise_after"))
report = sweep(scenario, cancel=None, crash=recover)
report.assert_ok()
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import attrs

from ..engine.attempt import Attempt, Injection, Limits, Order, Run, Severity
from ..engine.faults import MODES, Fault, Mode, PortCall
from ..engine.running import outside_trio, prepared
from ..engine.schedule import derive
from ..engine.simulation import Scenario, Simulation
from ..process.locations import NOWHERE, Location
from ..report.report import Report
from .campaign import Campaign, Progress, conduct
from .targets import Point, as_scenario, every_point
from .teamwork import Part, Team, Workers, check_workers, results_file

Target = str | Callable[[Simulation], object] | None
Points = Literal["every-step", "every-location"] | int
_PER_LOCATION = 4


@attrs.frozen
class Plan:
    """What a sweep does; see `sweep`."""

    cancel: str | None
    points: Points
    then: str | None
    then_points: int
    faults: tuple[Mode, ...]
    ports: tuple[str, ...] | None
    crashes: bool
    pairs: int
    schedules: int
    seed: int
    stop_at_first: bool


def sweep(
    scenario: Scenario | str,
    *,
    cancel: Target = "root",
    points: Points = "every-step",
    then: str | None = None,
    then_points: int = 3,
    faults: Sequence[Mode] = (),
    ports: Sequence[str] | None = None,
    error: Callable[[Fault, PortCall], BaseException] | None = None,
    crash: Scenario | str | None = None,
    pairs: int = 0,
    schedules: int = 1,
    seed: int = 0,
    allow: tuple[type[BaseException], ...] = (),
    allow_leaks: tuple[str, ...] = (),
    swallowed: Severity = "note",
    max_steps: int = 20_000,
    max_seconds: float = 7 * 86_400.0,
    stop_at_first: bool = False,
    budget: float | None = None,
    workers: Workers = None,
    chunk: int | None = None,
    save: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """Run ``scenario`` once per point, doing something at that point, and report what went wrong.

    Blocks; also works inside a running Trio task, whose loop waits meanwhile (semantics 15).

    Args:
        cancel: what to cancel: ``"root"`` (everything), ``"ctrl-c"``, the name of a `Simulation.scope` or
            `Simulation.action`, a function that takes the simulation (and cancels, or returns a scope, a callable or an
            awaitable), or None for nothing.
        points: after every step, at every distinct (task, await location) a few times, or a sample of so many steps.
        then: a second target, cancelled while the first is being cleaned up, at ``then_points`` steps for each first
            cancel.
        faults: modes in which every port call is broken in turn, of all ``ports`` or of those named.
        error: makes the exceptions that broken calls raise.
        crash: recovery: run on each possible durable state after a crash at every point; its oracles count.
        pairs: so many random pairs of the single injections as well.
        schedules: repeat all of it under so many different orders of tasks; the first is the plain one.
        seed: of `Simulation.random`, of samples and of schedules.
        allow: exceptions that may come out of the scenario. Those injected always may.
        allow_leaks: patterns (``library.*``) for coroutines and generators, by module and name, that may be left.
        swallowed: ``failure`` makes a swallowed `trio.Cancelled` one; else it is a note.
        max_steps: more steps than this in one run are a failure, and so is more virtual time than ``max_seconds``.
        stop_at_first: end the sweep at its first failure.
        budget: seconds of real time after which no further run begins; the report says that it is partial.
        workers: how many processes do the runs, or a `concurrent.futures.Executor`; the report is the same whatever it
            is. The scenario and functions given with it must be found by name: not made inside another function.
        chunk: how many points a worker is handed at once; that does not change the report either.
        save: a file that keeps the results; the same call again goes on where it was stopped.
        progress: called after every run with runs done, runs planned, and failures.

    Raises:
        Interrupted: a person pressed Ctrl-C; its ``report`` holds what was found.
        ValueError: an option cannot be, ``save`` holds another campaign, or another process cannot find the scenario.
    """
    chosen = as_scenario(scenario)
    recover = None if crash is None else as_scenario(crash)
    check_workers(workers, chunk)
    _check_counts(points, schedules, pairs, then_points, swallowed)
    named = cancel if cancel is None or isinstance(cancel, str) else "action"
    plan = Plan(
        named, points, then, then_points, _checked(faults), None if ports is None else tuple(ports),
        crash is not None, pairs, schedules, seed, stop_at_first,
    )  # fmt: skip
    target = None if cancel is None or isinstance(cancel, str) else cancel
    limits = Limits(max_steps, max_seconds, allow, target, error, allow_leaks, swallowed)

    def work() -> Report:
        with prepared() as watch:
            campaign = Campaign(chosen, limits, watch, "sweep", progress, recover, budget, scenario, crash)
            with results_file(save, campaign, plan) as kept, Team(campaign, plan, PART, workers, chunk, kept) as team:
                return conduct(campaign, lambda: _sweep(campaign, plan, team), coverage=cancel is not None)

    return outside_trio(work)


def _check_counts(points: Points, schedules: int, pairs: int, then_points: int, swallowed: str) -> None:
    if points not in ("every-step", "every-location") and not (isinstance(points, int) and points > 0):
        raise ValueError(f"points={points!r}; write 'every-step', 'every-location' or how many, at least 1")
    if schedules < 1:
        raise ValueError(f"schedules={schedules}; write 1 or more")
    if pairs < 0 or then_points < 0:
        raise ValueError(f"pairs={pairs}, then_points={then_points}; write 0 or more")
    if swallowed not in ("note", "failure"):
        raise ValueError(f"swallowed={swallowed!r}; choose 'note' or 'failure'")


def _checked(faults: Sequence[Mode]) -> tuple[Mode, ...]:
    for mode in faults:
        if mode not in MODES:
            raise ValueError(f"unknown fault mode {mode!r}; choose from {', '.join(MODES)}")
    return tuple(faults)


@attrs.frozen
class Unit:
    """What is done to one run, and what follows from it; or all of that under one more order of tasks."""

    injections: tuple[Injection, ...] = ()
    schedule: int = 0
    """Number of the order; beyond 0 the unit is everything that is done under it."""


def do_unit(campaign: Campaign, plan: Plan, unit: Unit) -> None:
    """Make the runs of one unit."""
    base = _base(plan, unit.schedule)
    if unit.schedule:
        _under(campaign, plan, base)
    elif len(unit.injections) == 1:
        assert campaign.base is not None
        _single(campaign, plan, base, unit.injections[0], campaign.base)
    else:
        campaign.try_out(attrs.evolve(base, injections=unit.injections))


PART = Part(do_unit, f"{__name__}:{do_unit.__name__}")


def _base(plan: Plan, number: int) -> Attempt:
    order = Order("walk", derive(plan.seed, "schedule", number)) if number else Order()
    return Attempt(seed=plan.seed, order=order)


def _sweep(campaign: Campaign, plan: Plan, team: Team[Unit]) -> None:
    baseline = campaign.baseline(_base(plan, 0))
    # A leak hides nothing: what is left behind is known, and everything else can still be tried.
    if [f for f in baseline.failures if f.kind != "leak"]:
        campaign.note = "the undisturbed run fails already, so nothing was injected"
        return
    singles = list(_singles(plan, baseline))
    units = [Unit((injection,)) for injection in singles]
    units += [Unit(pair) for pair in _pairs(plan, baseline.attempt, singles)]
    campaign.planned_runs = campaign.runs + len(units) * plan.schedules
    units += [Unit(schedule=number) for number in range(1, plan.schedules)]
    for _ in team.do(units):
        if plan.stop_at_first and campaign.failed:
            break
    campaign.missed = tuple(_missed(campaign, plan, baseline))


def _missed(campaign: Campaign, plan: Plan, baseline: Run) -> Iterator[str]:
    """What was asked for and never happened: a misspelt name must not look like a success."""
    if plan.cancel is not None and ("cancel", plan.cancel) not in campaign.known.took_effect:
        if not any(step.location is not NOWHERE for step in baseline.steps):
            yield "the scenario ended before its first checkpoint; there is nothing to stop"
        elif plan.cancel in baseline.targets or plan.cancel in ("root", "ctrl-c", "action"):
            yield f"no injection took effect for cancel={plan.cancel!r}: nothing waited that it would have stopped"
        else:
            known = ", ".join(map(repr, ["root", "ctrl-c", *baseline.targets]))
            yield f"no injection took effect for cancel={plan.cancel!r}: is the name right? The targets are {known}"
    called = {call.port.partition(".")[0] for call in baseline.calls}
    for port in plan.ports or ():
        if port not in called:
            yield f"no call of port {port!r} was there to break: is its name right, and is it called?"
    if plan.faults and plan.cancel is None and not campaign.planned:
        yield "no call of a port was there to break: put the outside world behind sim.port(...)"


def _under(campaign: Campaign, plan: Plan, base: Attempt) -> None:
    """All points of one schedule."""
    plain = campaign.try_out(base)
    if plain.failures:
        return
    failed, singles = campaign.failed, list(_singles(plan, plain))
    for injection in singles:
        if plan.stop_at_first and campaign.failed > failed:
            return
        _single(campaign, plan, base, injection, plain)
    for pair in _pairs(plan, base, singles):
        campaign.try_out(attrs.evolve(base, injections=pair))


def _single(campaign: Campaign, plan: Plan, base: Attempt, injection: Injection, plain: Run) -> None:
    """One point: the run, what it leaves after a crash, and a second cancel in it."""
    run = campaign.try_out(attrs.evolve(base, injections=(injection,)), plain)
    if (crashed := run.crashed) is not None:
        for state in range(1, len(crashed.frozen)):
            campaign.check_budget()
            campaign.take(campaign.recovered(crashed, state), further=True)
    if plan.then is not None and injection.kind == "cancel":
        _again(campaign, plan, run)


def _singles(plan: Plan, plain: Run) -> Iterator[Injection]:
    points = _points(plain, plan)
    if plan.cancel is not None:
        born = plain.targets.get(plan.cancel, 0)
        # Before the first step nothing has happened: the least telling case comes last.
        for step, when in sorted(points, key=lambda point: point == (1, "before")):
            if step > born or (step == born and when == "after"):
                yield Injection("cancel", step, plan.cancel, when)
        # The scenario's very last step can be cancelled by nobody, but something may be called before it.
        last = len(plain.steps) + 1
        if plan.cancel not in ("root", "ctrl-c") and plan.points == "every-step" and last in plain.boundaries:
            yield Injection("cancel", last, plan.cancel, "before")
    for call in plain.calls:
        if plan.ports is None or call.port.partition(".")[0] in plan.ports:
            for mode in plan.faults:
                if mode != "cut" or call.method == "__anext__":
                    yield Injection("fault", call.number, mode)
    if plan.crashes:
        yield from (Injection("crash", step, "0") for step, when in points if when == "after")
        # Between two operations on files that one step makes: a process may die there, too.
        yield from (Injection("crash", call.number, "0", "during") for call in plain.calls if call.port == "disk")


def _points(plain: Run, plan: Plan) -> list[Point]:
    if plan.points == "every-location":
        return _stratified(plain, plan.seed)
    every = list(every_point(plain))
    if isinstance(plan.points, int) and plan.points < len(every):
        rng = random.Random(derive(plan.seed, "points", plain.attempt.order))
        return [every[i] for i in sorted(rng.sample(range(len(every)), plan.points))]
    return every


def _stratified(plain: Run, seed: int) -> list[Point]:
    strata: dict[tuple[str, Location], list[int]] = defaultdict(list)
    for number, step in enumerate(plain.steps, 1):
        if step.location is not NOWHERE:
            strata[plain.tasks[step.task].name, step.location].append(number)
    chosen: set[Point] = {(1, "before"), (len(plain.steps), "after")}
    between = set(plain.boundaries)
    for (name, location), steps in strata.items():
        inner = steps[1:-1]
        rng = random.Random(derive(seed, "location", name, location.function, location.line))
        picked = [steps[0], steps[-1], *rng.sample(inner, min(len(inner), _PER_LOCATION - 2))]
        chosen.update((step, "after") for step in picked)
        if late := [step for step in steps if step + 1 in between]:
            chosen.add((late[0] + 1, "before"))
    return sorted(chosen, key=lambda p: (p[0], p[1] == "after"))


def _again(campaign: Campaign, plan: Plan, first: Run) -> None:
    """A second cancel at some of the steps between the first one and the end.

    Drawn for each first cancel by itself: what is tried here does not depend on what failed elsewhere.
    """
    if not first.fired_at or plan.then is None or first.failures:
        return
    steps = range(first.fired_at[0][0] + 1, len(first.steps) + 1)
    rng = random.Random(derive(plan.seed, "then", str(first.attempt.injections), first.attempt.order))
    for step in sorted(rng.sample(steps, min(len(steps), plan.then_points))):
        second = Injection("cancel", step, plan.then)
        campaign.try_out(attrs.evolve(first.attempt, injections=(*first.attempt.injections, second)), first)


def _pairs(plan: Plan, base: Attempt, singles: list[Injection]) -> Iterator[tuple[Injection, ...]]:
    alive = [i for i in singles if i.kind != "crash"]
    for number in range(plan.pairs if len(alive) > 1 else 0):
        rng = random.Random(derive(plan.seed, "pair", number, base.order))
        yield tuple(rng.sample(alive, 2))

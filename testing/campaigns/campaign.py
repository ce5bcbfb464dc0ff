"""Runs attempts one after another and keeps the books: failures by kind, coverage, latency.

The plain run is made twice first; if the two differ, the program is not under control and nothing else would mean
anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from ..engine.attempt import Attempt, Delivery, Limits, Run, Violation
from ..engine.running import run_attempt
from ..engine.selftest import self_test
from ..engine.simulation import Scenario
from ..process.leaks import LeakWatch
from ..process.locations import NOWHERE, Location
from ..process.recording import Recording
from ..process.trio_internals import ChannelTracer
from ..report.findings import Coverage, Failure, failure_of
from ..report.report import Report
from ..report.tokens import encode

Progress = Callable[[int, int, int], None]
"""Called after every run with the number of runs done, planned, and failed."""
_RECORDED = 8
_ENOUGH_STEPS = 2_000


@attrs.define(eq=False)
class Campaign:
    """One sweep, exploration or replay under way."""

    scenario: Scenario
    limits: Limits
    watch: LeakWatch
    mode: str
    progress: Progress | None = None
    recover: Scenario | None = None
    runs: int = 0
    planned_runs: int = 0
    failed: int = 0
    planned: int = 0
    fired: int = 0
    delivered: int = 0
    unresolved: list[str] = attrs.field(factory=list)
    took_effect: set[tuple[str, str]] = attrs.field(factory=set)
    """Kind and target of each injection that was delivered."""
    missed: tuple[str, ...] = ()
    kinds: dict[tuple[object, ...], list[tuple[Run, Violation]]] = attrs.field(factory=dict)
    cases: dict[tuple[object, ...], int] = attrs.field(factory=dict)
    cancelled: dict[tuple[str, Location], None] = attrs.field(factory=dict)
    worst: tuple[float, str] | None = None
    note: str = ""
    started: float = attrs.field(factory=time.perf_counter)

    def baseline(self, attempt: Attempt) -> Run:
        """The undisturbed run of ``attempt``, made twice; files what is wrong with it."""
        self_test()
        first = self.run(attempt)
        twin = self.run(attempt)
        if (problem := divergence(first, twin)) is not None:
            first.violations.append(Violation("nondeterminism", problem, 0))
        self.file(first)
        enough = _ENOUGH_STEPS + 10 * len(first.steps)
        self.limits = attrs.evolve(self.limits, max_steps=min(self.limits.max_steps, enough))
        return first

    def run(self, attempt: Attempt, *, recorded: bool = False) -> Run:
        """One run, only counted; two if it crashes: the second is the recovery, from the state the attempt names."""
        run = self._once(self.scenario, attempt, self.limits, recorded)
        state = int(attempt.injections[-1].what) if run.frozen else 0
        return self.recovered(run, state, recorded=recorded) if state < len(run.frozen) else run

    def _once(self, scenario: Scenario, attempt: Attempt, limits: Limits, recorded: bool) -> Run:
        self.runs += 1
        if not recorded:
            return run_attempt(scenario, attempt, limits, self.watch)
        recording = Recording()
        with ChannelTracer(recording):
            run = run_attempt(scenario, attempt, limits, self.watch, recording)
        recording.forget()
        return run

    def recovered(self, crashed: Run, state: int, *, recorded: bool = False) -> Run:
        """The recovery from one of the states that ``crashed`` left."""
        if self.recover is None:
            raise ValueError("this attempt crashes; say with crash= what recovers")
        *others, crash = crashed.attempt.injections
        limits = attrs.evolve(self.limits, durables=crashed.frozen[state])
        run = self._once(self.recover, Attempt(seed=crashed.attempt.seed), limits, recorded)
        run.crashed = crashed
        run.deliveries = list(crashed.deliveries)
        run.attempt = attrs.evolve(crashed.attempt, injections=(*others, attrs.evolve(crash, what=str(state))))
        return run

    def try_out(self, attempt: Attempt, baseline: Run | None = None) -> Run:
        """One run with injections, and everything it shows."""
        run = self.run(attempt)
        if baseline is not None and run.crashed is None:
            resolve_actions(run, baseline)
        self.take(run)
        if self.progress is not None:
            self.progress(self.runs, max(self.runs, self.planned_runs), self.failed)
        return run

    def take(self, run: Run) -> None:
        """Enter what ``run`` shows into the books."""
        self._count(run)
        self.file(run)

    def _count(self, run: Run) -> None:
        wanted = len(run.attempt.injections)
        self.planned += wanted
        self.fired += len(run.fired)
        self.delivered += len({d.injection for d in run.deliveries})
        injections = [run.attempt.injections[d.injection] for d in run.deliveries]
        self.took_effect.update((injection.kind, injection.what) for injection in injections)
        if run.unresolved and not run.violations:
            self.unresolved.append(encode(run.attempt))
        for delivery in run.deliveries:
            if delivery.location is not NOWHERE and run.attempt.injections[delivery.injection].kind == "cancel":
                self.cancelled[delivery.name, delivery.location] = None
        if run.shutdown is not None and (self.worst is None or run.shutdown > self.worst[0]):
            self.worst = (run.shutdown, encode(run.attempt))

    def file(self, run: Run) -> None:
        """Put the violations of ``run`` with others of their kind; the first of a kind stays its example."""
        for violation in run.violations[:1]:
            self.failed += 1
            key = signature(violation)
            self.cases[key] = self.cases.get(key, 0) + 1
            known = self.kinds.setdefault(key, [])
            if not known:
                known.append((run, violation))

    def replace(self, key: tuple[object, ...], run: Run) -> None:
        """A smaller example of a kind of failure."""
        self.kinds[key] = [(run, next(v for v in run.violations if signature(v) == key))]

    def report(self, baseline: Run, *, coverage: bool = False) -> Report:
        """Close the books; the first few failures and the plain run are run again in full detail."""
        failures = [failure_of(*found[0], self.cases[key]) for key, found in self.kinds.items()]
        failures.sort(key=_size)
        failures[:_RECORDED] = [self._recorded(failure) for failure in failures[:_RECORDED]]
        seen = {(baseline.tasks[s.task].name, s.location): None for s in baseline.steps if s.location is not NOWHERE}
        return Report(
            scenario=name_of(self.scenario),
            mode=self.mode,
            runs=self.runs,
            baseline=baseline,
            failures=tuple(failures),
            planned=self.planned,
            fired=self.fired,
            delivered=self.delivered,
            unresolved=tuple(self.unresolved),
            missed=self.missed,
            coverage=Coverage(tuple(seen), tuple(self.cancelled)) if coverage else Coverage((), ()),
            worst_shutdown=self.worst[0] if self.worst else None,
            worst_shutdown_token=self.worst[1] if self.worst else "",
            note=self.note,
            seconds=time.perf_counter() - self.started,
            recording=baseline.recording or self.record(baseline.attempt).recording,
        )

    def _recorded(self, failure: Failure) -> Failure:
        if failure.run.recording is None:
            again = self.record(failure.attempt)
            failure.run.recording = again.recording
            if failure.run.crashed is not None and again.crashed is not None:
                failure.run.crashed.recording = again.crashed.recording
        return failure

    def record(self, attempt: Attempt) -> Run:
        """The same run again, with its messages and wake-ups."""
        run = self.run(attempt, recorded=True)
        self.runs -= 1 if run.crashed is None else 2
        return run


def signature(violation: Violation) -> tuple[object, ...]:
    """What makes two violations the same kind of failure, whatever the step or the nesting of groups."""
    if violation.kind == "error":
        return ("error", *sorted(set(violation.leaves)))
    if violation.kind in ("always", "at_end", "eventually"):
        return (violation.kind, violation.message.partition(":")[0])
    if violation.kind == "leak":
        return ("leak", violation.message)
    return (violation.kind,)


def divergence(first: Run, twin: Run) -> str | None:
    """Where two runs that should be the same begin to differ, in words; None if they do not."""
    for number, (a, b) in enumerate(zip(first.steps, twin.steps, strict=False), 1):
        left = f"{first.label(a.task)} at {a.location} at {a.time:g} s"
        right = f"{twin.label(b.task)} at {b.location} at {b.time:g} s"
        if left != right:
            hint = "uncontrolled randomness, time, hash order, or state kept between runs?"
            return f"two runs of the same attempt differ at step {number}: {left}, then {right}; {hint}"
    if len(first.steps) != len(twin.steps):
        return f"two runs of the same attempt take {len(first.steps)} and {len(twin.steps)} steps"
    return None


def resolve_actions(run: Run, baseline: Run) -> None:
    """An action that changed nothing shows nothing; one that changed the run took effect, cancelled task or not."""
    last = len(run.attempt.injections) - 1
    if last not in run.actions:
        return
    if run.steps == baseline.steps:
        run.deliveries = [d for d in run.deliveries if d.injection != last]
    elif all(d.injection != last for d in run.deliveries):
        step, time, label = run.fired_at[run.fired.index(last)]
        run.deliveries.append(Delivery(last, step, time, label, "", NOWHERE))


def name_of(scenario: Scenario) -> str:
    """What to call a scenario."""
    name = getattr(scenario, "__qualname__", None) or repr(scenario)
    return str(name).replace("<locals>.", "")


def _size(failure: Failure) -> tuple[object, ...]:
    first = failure.kind not in ("nondeterminism", "engine")
    return (first, len(failure.attempt.injections), len(failure.attempt.order.deviations), failure.step, failure.token)

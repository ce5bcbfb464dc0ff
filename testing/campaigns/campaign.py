"""Runs attempts one after another and keeps the books: failures by kind, coverage, latency.

The plain run is made twice first; if the two differ, the program is not under control and nothing else would mean
anything.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from ...core.randomness import seeded
from ..engine.attempt import Attempt, Delivery, Limits, Promise, Run, Step, Violation
from ..engine.running import run_attempt
from ..engine.selftest import self_test
from ..engine.simulation import Scenario
from ..process.leaks import LeakWatch
from ..process.locations import NOWHERE
from ..process.recording import Recording
from ..process.trio_internals import ChannelTracer
from ..report.findings import Coverage, Failure, failure_of
from ..report.report import Report
from ..report.seen import Known, Seen, is_telling, seen_of
from ..report.tokens import decode, token_of

Progress = Callable[[int, int, int], None]
"""Called after every run with the number of runs done, planned, and failed."""
Key = tuple[object, ...]
_RECORDED = 8
_ENOUGH_STEPS = 2_000
_TOKENS = 20
"""Tokens that are kept for each kind of failure."""


class OutOfTime(Exception):
    """The budget of real time is used up."""


class Elsewhere(RuntimeError):
    """Two processes do not see the same runs of a scenario."""


ELSEWHERE = (
    "does it go over a set of strings, or read something that differs between processes? Set PYTHONHASHSEED to a number"
)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed in the middle of many runs; ``report`` holds what was found until then."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.summary())
        self.report = report


@attrs.define
class Kind:
    """One way of going wrong: its example, and every run that showed it."""

    run: Run
    violation: Violation
    runs: int = 0
    tokens: list[str] = attrs.field(factory=list)


@attrs.define(eq=False)
class Campaign:
    """One sweep, exploration or replay under way."""

    scenario: Scenario
    limits: Limits
    watch: LeakWatch
    mode: str
    progress: Progress | None = None
    recover: Scenario | None = None
    budget: float | None = None
    """Seconds of real time after which no further run begins."""
    given: Any = None
    """The scenario as it was given: what a name is looked for to be sent to other processes."""
    recover_given: Any = None
    base: Run | None = None
    """The undisturbed run."""
    runs: int = 0
    planned_runs: int = 0
    failed: int = 0
    """Runs with at least one failure."""
    planned: int = 0
    delivered: int = 0
    not_reached: int = 0
    without_effect: int = 0
    unresolved: list[str] = attrs.field(factory=list)
    known: Known = attrs.field(factory=Known)
    """What was reached so far, in this process or another."""
    missed: tuple[str, ...] = ()
    unshown: tuple[str, ...] = ()
    kinds: dict[Key, Kind] = attrs.field(factory=dict)
    traces: Counter[bytes] = attrs.field(factory=Counter)
    """How often each course was taken that no injection had changed."""
    promised: Counter[tuple[str, tuple[Promise, ...]]] = attrs.field(factory=Counter)
    """How many disturbed runs (of the scenario, of the recovery) made which promises."""
    worst: tuple[float, str] | None = None
    note: str = ""
    partial: str = ""
    exhausted: str = ""
    unseen: float | None = None
    search: tuple[str, str] = ("", "")
    """What of a run tells a search how to go on: the ``options`` of its decisions, the ``places`` that were new."""
    listener: Callable[[Seen], None] | None = None
    """Told what each run adds to the books: in a worker, whose own books nobody reads."""
    last: Run | None = None
    """The run made last in this process."""
    told: int = 0
    """Executions that the listener knows of."""
    started: float = attrs.field(factory=time.perf_counter)

    def baseline(self, attempt: Attempt) -> Run:
        """The undisturbed run of ``attempt``, made twice; files what is wrong with it."""
        self_test()
        first = self.run(attempt)
        if first.outcome is not None:
            raise first.outcome.with_traceback(None)
        twin = self.run(attempt)
        if (problem := divergence(first, twin)) is not None:
            first.violations.insert(0, Violation("nondeterminism", problem, 0))
        self.base = first
        # It is judged by itself: what it promises is what the others are compared with.
        self._enter(attrs.evolve(seen_of(first, self.known, search=("places",)), judged=False), first)
        enough = _ENOUGH_STEPS + 10 * len(first.steps)
        self.limits = attrs.evolve(self.limits, max_steps=min(self.limits.max_steps, enough))
        return first

    def run(self, attempt: Attempt, *, recorded: bool = False, course: Sequence[Step] = ()) -> Run:
        """One run, only counted; two if it crashes: the second is the recovery, from the state the attempt names."""
        run = self._once(self.scenario, attempt, self.limits, recorded, course)
        state = int(attempt.injections[-1].what) if run.frozen else 0
        return self.recovered(run, state, recorded=recorded) if state < len(run.frozen) else run

    def _once(
        self, scenario: Scenario, attempt: Attempt, limits: Limits, recorded: bool, course: Sequence[Step] = ()
    ) -> Run:
        self.runs += 1
        # An agent's ids are random, and they are in the names of its tasks: unseeded, no two runs would be equal.
        with seeded(attempt.seed):
            if not recorded:
                return run_attempt(scenario, attempt, limits, self.watch, course=course)
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
        """One run with injections, and everything it shows.

        Raises:
            OutOfTime: no further run may begin.
        """
        self.check_budget()
        run = self.run(attempt, course=() if baseline is None else baseline.steps)
        if baseline is not None and run.crashed is None:
            resolve_actions(run, baseline)
        self.take(run)
        self._tell_progress()
        return run

    def check_budget(self) -> None:
        """Raise `OutOfTime` when the budget is used up."""
        if self.budget is not None and time.perf_counter() - self.started > self.budget:
            raise OutOfTime

    def take(self, run: Run, *, further: bool = False) -> Seen:
        """Enter what ``run`` shows into the books; ``further`` if its crash is counted already."""
        seen = seen_of(run, self.known, further=further, search=self.search)
        self.last = run
        if self.listener is not None:
            self.listener(attrs.evolve(seen, runs=self.runs - self.told))
            self.told = self.runs
        self._enter(seen, run)
        return seen

    def enter(self, seen: Seen) -> None:
        """Enter what a run in another process has shown."""
        self.runs += seen.runs
        self._enter(seen, None)
        self._tell_progress()

    def _tell_progress(self) -> None:
        if self.progress is not None:
            self.progress(self.runs, max(self.runs, self.planned_runs), self.failed)

    def _enter(self, seen: Seen, run: Run | None) -> None:
        self.planned += seen.planned
        self.delivered += seen.delivered
        self.not_reached += seen.not_reached
        self.without_effect += seen.without_effect
        if seen.unresolved:
            self.unresolved.append(seen.token)
        if seen.trace:
            self.traces[seen.trace] += 1
        if seen.judged:
            self.promised["recovery" if seen.recovery else "scenario", seen.promises] += 1
        if seen.shutdown is not None and seen.shutdown > self.known.shutdown:
            self.worst = (seen.shutdown, seen.token)
        self.known.add(seen)
        self._file(seen, run)

    def _file(self, seen: Seen, run: Run | None) -> None:
        """Put each violation with others of its kind; the most telling run of a kind is its example."""
        self.failed += seen.failed
        found: dict[Key, Violation] = {}
        for violation in seen.violations:
            found.setdefault(signature(violation), violation)
        for key, violation in found.items():
            kind = self.kinds.get(key)
            if kind is None or (not is_telling(kind.run) and seen.telling):
                run = self._again(seen, key) if run is None else run
            if kind is None:
                assert run is not None
                kind = self.kinds[key] = Kind(run, violation)
            elif run is not None and not is_telling(kind.run) and seen.telling:
                kind.run, kind.violation = run, violation
            kind.runs += 1
            if len(kind.tokens) < _TOKENS:
                kind.tokens.append(seen.token)

    def _again(self, seen: Seen, key: Key) -> Run:
        """A run of another process, again in this one: an example can be looked at from all sides.

        Raises:
            Elsewhere: it does not show here what it showed there.
        """
        run = self.quietly(decode(seen.token))
        if all(signature(violation) != key for violation in run.violations):
            raise Elsewhere(f"{seen.token} fails in a worker ({key[0]}) and not in this process: {ELSEWHERE}")
        run.deliveries = list(seen.deliveries)
        return run

    def quietly(self, attempt: Attempt) -> Run:
        """A run that is not counted: it was made before."""
        runs = self.runs
        run = self.run(attempt)
        self.runs = runs
        return run

    def replace(self, key: Key, run: Run) -> None:
        """A smaller example of a kind of failure."""
        kind = self.kinds[key]
        kind.run, kind.violation = run, next(v for v in run.violations if signature(v) == key)
        kind.tokens[0] = token_of(run)

    def failing(self) -> set[Key]:
        """The kinds of failure found so far, without mere notes."""
        return {key for key, kind in self.kinds.items() if kind.violation.severity == "failure"}

    def report(self, *, coverage: bool = False) -> Report:
        """Close the books; the first few failures and the plain run are run again in full detail."""
        assert self.base is not None
        baseline = self.base
        found = [failure_of(kind.run, kind.violation, kind.runs, tuple(kind.tokens)) for kind in self.kinds.values()]
        found.sort(key=_size)
        failures = [f for f in found if f.severity == "failure"]
        failures[:_RECORDED] = [self._recorded(failure) for failure in failures[:_RECORDED]]
        late = [(words, everywhere) for words, everywhere in self._promises_not_made()]
        return Report(
            scenario=name_of(self.scenario),
            mode=self.mode,
            runs=self.runs,
            failing_runs=self.failed,
            baseline=baseline,
            failures=tuple(failures),
            notes=tuple(f for f in found if f.severity == "note"),
            planned=self.planned,
            delivered=self.delivered,
            not_reached=self.not_reached,
            without_effect=self.without_effect,
            unresolved=tuple(self.unresolved),
            missed=(*self.missed, *(words for words, _ in late)),
            unshown=(*self.missed, *self.unshown, *(words for words, everywhere in late if everywhere)),
            coverage=self._coverage(baseline) if coverage else Coverage(),
            distinct=len(self.traces),
            exhausted=self.exhausted,
            unseen=self.unseen,
            worst_shutdown=self.worst[0] if self.worst else None,
            worst_shutdown_token=self.worst[1] if self.worst else "",
            note=self.note,
            partial=self.partial,
            seconds=time.perf_counter() - self.started,
            recording=baseline.recording or self.record(baseline.attempt).recording,
        )

    def _coverage(self, baseline: Run) -> Coverage:
        seen = {(baseline.tasks[s.task].name, s.location): None for s in baseline.steps if s.location is not NOWHERE}
        return Coverage(tuple(seen), tuple(self.known.cancelled), tuple(sorted(self.known.awaited)))

    def _promises_not_made(self) -> Iterable[tuple[str, bool]]:
        """Promises that only some runs made, in words, and whether no disturbed run made them at all."""
        for part in ("scenario", "recovery"):
            runs = {made: count for (whose, made), count in self.promised.items() if whose == part}
            known = {p: None for made in runs for p in made}
            expected = self.base.promises if part == "scenario" and self.base is not None else known
            total = sum(runs.values())
            for promise in expected:
                without = sum(count for made, count in runs.items() if not _is_made(promise, made, expected))
                if without:
                    yield (
                        f"promise {promise} was not made in {without} of {total} disturbed runs; "
                        "state it before the code it judges",
                        without == total,
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


def conduct(campaign: Campaign, work: Callable[[], None], *, coverage: bool = False) -> Report:
    """Do ``work``, a series of runs, and report; what was found is kept however it ends.

    Raises:
        Interrupted: a person pressed Ctrl-C.
    """
    try:
        work()
    except OutOfTime:
        campaign.partial = f"the budget of {campaign.budget:g} s ended it after {_progress(campaign)}"
    except KeyboardInterrupt:
        if campaign.base is None:
            raise
        campaign.partial = f"stopped by Ctrl-C after {_progress(campaign)}"
        raise Interrupted(campaign.report(coverage=coverage)) from None
    return campaign.report(coverage=coverage)


def _progress(campaign: Campaign) -> str:
    planned = f" of {campaign.planned_runs:,}" if campaign.planned_runs > campaign.runs else ""
    return f"{campaign.runs:,}{planned} runs, {campaign.runs / (time.perf_counter() - campaign.started):,.0f} a second"


def _is_made(promise: Promise, made: tuple[Promise, ...], expected: Iterable[Promise]) -> bool:
    """Whether it was made, word by word, or with other words (a number in it, say) as often from the same line."""
    if promise in made:
        return True
    line = (promise.kind, promise.line)
    wanted = sum((p.kind, p.line) == line for p in expected)
    return wanted > 0 and sum((p.kind, p.line) == line for p in made) >= wanted


def signature(violation: Violation) -> Key:
    """What makes two violations the same kind of failure, whatever the step or the nesting of groups."""
    if violation.kind in ("always", "at_end", "eventually"):
        return (violation.kind, violation.message.partition(":")[0])
    if violation.kind == "leak":
        return ("leak", violation.message)
    return (violation.kind, *violation.leaves)


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


_LAST = ("leak", "swallowed")


def _size(failure: Failure) -> tuple[object, ...]:
    first = failure.kind not in ("nondeterminism", "engine")
    deviations = len(failure.attempt.order.deviations)
    return (
        first,
        failure.kind in _LAST,
        len(failure.attempt.injections),
        deviations,
        not is_telling(failure.run),
        failure.step,
        failure.token,
    )

"""What a sweep, an exploration or a replay found: failures, the smallest case first, coverage, and what stayed open.

Holds everything a reader or a drawing needs, as plain values; `Findings.to_json` is all of it. Never runs anything.
"""

from __future__ import annotations

import ast
import json
import linecache
import math
import os
from collections.abc import Iterator
from typing import Any

import attrs

from ..engine.attempt import Attempt, Delivery, Run, Severity, Violation
from ..process.locations import Location, Wait
from ..process.recording import Recording
from .tokens import token_of

_LAST_LINES = 12


@attrs.frozen
class Failure:
    """One way in which the scenario went wrong, in its smallest case."""

    kind: str
    """What sort of failure: error, deadlock, at_end and so on."""
    message: str
    """What was wrong, in words."""
    token: str
    """Replays it: ``replay(scenario, token)``, or ``YOUYOU_REPLAY=token pytest ...``."""
    injected: tuple[str, ...]
    """What was done, in words."""
    step: int
    """The step of the first injection, or of the violation if nothing was injected."""
    task: str
    """The task in which the first injection arrived; empty if none did."""
    location: Location
    """Where the first injection was delivered."""
    attempt: Attempt
    """What the run was asked to do."""
    run: Run = attrs.field(repr=False)
    """Everything that was seen in the run."""
    traceback: str = ""
    """Of an error: its innermost exception."""
    waits: tuple[Wait, ...] = ()
    """At a deadlock: who waits where and for whom."""
    cases: int = 1
    """How many runs went wrong in this way."""
    tokens: tuple[str, ...] = ()
    """Of the first of them, at most 20; the first replays this case."""
    severity: Severity = "failure"
    """A note does not make the report fail."""
    chain: tuple[Location, ...] = ()
    """The calls that lead to where the first injection was delivered, the outermost first."""

    @property
    def recording(self) -> Recording | None:
        """Task lanes, messages and wake-ups of this run."""
        found: Recording | None = self.run.recording
        return found

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.message}"]
        if self.injected:
            lines.append(f"  injected: {', then '.join(self.injected)}")
        if self.task:
            lines.append(f"  delivered to {self.task} at {path_of(self.chain or (self.location,))}")
            lines += [f"    {place}: {source}" for place, source in sources(self.chain)]
        for wait in self.waits:
            lines.append(f"  {wait}")
            if len(wait.chain) > 1:
                lines.append(f"    called by {path_of(wait.chain)}")
        if self.run.steps:
            lines.append(f"  last steps (of {len(self.run.steps)}):")
            lines += [f"    {line}" for line in trace_lines(self.run)[-_LAST_LINES:]]
        if self.traceback:
            lines += ["  " + line for line in self.traceback.rstrip().splitlines()[-14:]]
        cases = "1 such run" if self.cases == 1 else f"{self.cases} such runs"
        lines.append(f"  replay: YOUYOU_REPLAY={self.token}  ({cases})")
        return "\n".join(lines)


def path_of(chain: tuple[Location, ...]) -> str:
    """``a.py:7 in outer -> inner:3``: the calls that lead somewhere, with a file where it changes."""
    words: list[str] = []
    file = ""
    for place in chain:
        here = os.path.basename(place.file)
        words.append(str(place) if here != file or not here else f"{place.function}:{place.line}")
        file = here
    return " -> ".join(words)


def sources(chain: tuple[Location, ...]) -> list[tuple[str, str]]:
    """Each call of a chain with its line of source, unless there is but one."""
    found = [
        (f"{os.path.basename(p.file)}:{p.line}", linecache.getline(p.file, p.line).strip()) for p in chain if p.file
    ]
    return [(place, text) for place, text in found if text] if len(found) > 1 else []


@attrs.frozen
class Coverage:
    """Await locations of the scenario, and those at which a cancel was delivered."""

    seen: tuple[tuple[str, Location], ...] = ()
    """(Task name, location) pairs at which a task was suspended in the plain run."""
    cancelled: tuple[tuple[str, Location], ...] = ()
    """Those at which an injected cancel arrived, in any run."""
    awaited: tuple[tuple[str, int], ...] = ()
    """File and line of every await that any run was suspended at, and of those that led there."""

    @property
    def never(self) -> tuple[tuple[str, Location], ...]:
        """Locations seen at which no cancel was ever delivered."""
        reached = set(self.cancelled)
        return tuple(pair for pair in self.seen if pair not in reached)

    @property
    def unreached(self) -> tuple[Location, ...]:
        """Awaits in the functions that ran, at which no run was ever suspended; read from their source."""
        return unreached(self.awaited)

    def __str__(self) -> str:
        lines = [f"{len(self.seen) - len(self.never)} of {len(self.seen)} await locations were cancelled"]
        lines += [f"  never cancelled: {task} at {location}" for task, location in self.never]
        return "\n".join(lines + [f"  never reached: {location}" for location in self.unreached])


@attrs.frozen
class Findings:
    """Everything that many runs have shown, as values."""

    scenario: str
    """Name of the scenario."""
    mode: str
    """sweep, exploration or replay."""
    runs: int
    """All runs: the undisturbed one and its twin, one for each injection, one for each recovery, one for each order."""
    baseline: Run = attrs.field(repr=False)
    """The undisturbed run."""
    failing_runs: int = 0
    """Runs with at least one failure."""
    failures: tuple[Failure, ...] = ()
    """One per way of going wrong, what the scenario promised first and leaks last, the smallest case first."""
    notes: tuple[Failure, ...] = ()
    """The same for what does not make the report fail: a swallowed `trio.Cancelled`, a generator dropped harmlessly."""
    planned: int = 0
    """Injections that were to be made: the sum of `delivered`, `not_reached` and `without_effect`."""
    delivered: int = 0
    """Injections that took effect."""
    not_reached: int = 0
    """Injections whose moment never came in the run they were made for, or whose target did not exist then."""
    without_effect: int = 0
    """Injections that were made and arrived nowhere: what was cancelled was over before it could notice."""
    unresolved: tuple[str, ...] = ()
    """Tokens of runs with an injection that did not take effect: they show nothing about it."""
    missed: tuple[str, ...] = ()
    """What was asked for and did not happen, in words: a misspelt name, a promise made too late, another course."""
    unshown: tuple[str, ...] = ()
    """Those of `missed` that leave nothing shown: while there are any, the report is not ok."""
    coverage: Coverage = Coverage()
    """Awaits at which cancels arrived, and at which none did; empty if nothing was cancelled."""
    distinct: int = 0
    """Different courses that the undisturbed program took, over all orders that were tried."""
    exhausted: str = ""
    """What was tried completely, in words: "every order", "every order with at most 2 deviations"; else empty."""
    unseen: float | None = None
    """Probability that one more run at random takes a course not seen yet (estimated after Good and Turing)."""
    worst_shutdown: float | None = None
    """Virtual seconds from a cancel to the end of its target, at worst; infinite if it did not end."""
    worst_shutdown_token: str = ""
    """Replays the run with the slowest shutdown."""
    note: str = ""
    """What has to be known about the whole, in words: that nothing was injected, for example."""
    partial: str = ""
    """Why not all planned runs were made, in words."""
    seconds: float = 0.0
    """Real time spent."""
    recording: Recording | None = attrs.field(default=None, repr=False)
    """Of the undisturbed run."""

    @property
    def rate(self) -> float:
        """Runs for each second of real time."""
        return self.runs / self.seconds if self.seconds else 0.0

    @property
    def fired(self) -> int:
        """Injections that were made, whether they took effect or not."""
        return self.delivered + self.without_effect

    @property
    def ok(self) -> bool:
        """Nothing went wrong, and what was asked for took effect at least once."""
        return not self.failures and not self.unshown and (self.planned == 0 or self.delivered > 0)

    @property
    def trace(self) -> str:
        """The smallest failure's run step by step, or the undisturbed run if nothing went wrong."""
        return "\n".join(trace_lines(self.failures[0].run if self.failures else self.baseline))

    def __str__(self) -> str:
        return "\n".join([self.summary(), *self._problems()])

    @property
    def verdict(self) -> str:
        """In a few words."""
        if self.failures:
            return "1 kind of failure" if len(self.failures) == 1 else f"{len(self.failures)} kinds of failure"
        if not self.ok:
            return "nothing was shown"
        return "ok so far" if self.partial else "ok"

    def summary(self) -> str:
        """One line."""
        runs = f"{self.runs} runs of {len(self.baseline.steps)} steps"
        parts = [f"{self.mode} of {self.scenario}: {self.verdict}"]
        parts.append(f"{runs}, {self.failing_runs} failed" if self.failing_runs else runs)
        if self.planned:
            parts.append(
                f"{self.planned} injections: {self.delivered} delivered, {self.not_reached} not reached, "
                f"{self.without_effect} without effect"
            )
        if self.mode == "exploration":
            parts.append(self._orders())
        if self.coverage.seen:
            parts.append(f"{len(self.coverage.never)} of {len(self.coverage.seen)} await locations never cancelled")
        if self.worst_shutdown is not None:
            parts.append(f"slowest shutdown {seconds_in_words(self.worst_shutdown)}")
        if self.missed and self.ok:
            parts.append(f"{len(self.missed)} missed: {self.missed[0]}")
        if self.notes:
            parts.append(f"{len(self.notes)} note{'s' * (len(self.notes) != 1)}")
        return "; ".join(parts + [words for words in (self.note, self.partial) if words])

    def _orders(self) -> str:
        orders = f"{self.distinct} distinct order{'s' * (self.distinct != 1)}"
        if self.exhausted:
            return f"{orders}, {self.exhausted}: none left"
        return orders if self.unseen is None else f"{orders}, of further ones about {self.unseen:.0%} would be new"

    def _problems(self) -> list[str]:
        if not self.ok and not self.failures:
            return list(self.missed) or ["no injection took effect"]
        lines = [str(failure) for failure in self.failures[:1]]
        lines += [f"also {f.kind}: {f.message[:160]}  [{f.token}]" for f in self.failures[1:8]]
        lines += [f"missed: {words}" for words in self.missed]
        return lines + [f"note: {f.message[:160]}  [{f.token}]" for f in self.notes[:8]]

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain dicts, lists, strings and numbers."""
        return {
            "scenario": self.scenario,
            "mode": self.mode,
            "ok": self.ok,
            "runs": self.runs,
            "failing_runs": self.failing_runs,
            "planned": self.planned,
            "fired": self.fired,
            "delivered": self.delivered,
            "not_reached": self.not_reached,
            "without_effect": self.without_effect,
            "unresolved": list(self.unresolved),
            "missed": list(self.missed),
            "unshown": list(self.unshown),
            "distinct": self.distinct,
            "exhausted": self.exhausted,
            "unseen": self.unseen,
            "partial": self.partial,
            "steps": len(self.baseline.steps),
            "coverage": {
                "seen": [_pair(p) for p in self.coverage.seen],
                "cancelled": [_pair(p) for p in self.coverage.cancelled],
                "never": [_pair(p) for p in self.coverage.never],
                "unreached": [place(p) for p in self.coverage.unreached],
            },
            "worst_shutdown": _seconds(self.worst_shutdown),
            "worst_shutdown_token": self.worst_shutdown_token,
            "note": self.note,
            "seconds": self.seconds,
            "rate": self.rate,
            "failures": [_failure(f) for f in self.failures],
            "notes": [_failure(f) for f in self.notes],
            "baseline": run_json(self.baseline, self.recording),
        }

    def json(self, indent: int | None = None) -> str:
        """`to_json` as text."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=indent)


def failure_of(run: Run, violation: Violation, cases: int = 1, tokens: tuple[str, ...] = ()) -> Failure:
    """The failure that ``violation`` of ``run`` is."""
    first: Delivery | None = run.deliveries[0] if run.deliveries else None
    step = run.fired_at[0][0] if run.fired_at else violation.step
    return Failure(
        violation.kind,
        violation.message,
        token_of(run),
        tuple(_in_words(run, number) for number in range(len(run.attempt.injections))),
        step,
        first.task if first is not None else "",
        first.location if first is not None else Location("", 0, ""),
        run.attempt,
        run,
        violation.traceback,
        tuple(run.waits) if violation.kind == "deadlock" else (),
        cases,
        tokens,
        violation.severity,
        first.chain if first is not None else (),
    )


def _in_words(run: Run, number: int) -> str:
    injection = run.attempt.injections[number]
    if injection.kind == "fault" and injection.at <= len(run.calls):
        return f"{injection.what} at {run.calls[injection.at - 1]} (port call {injection.at})"
    return str(injection)


def trace_lines(run: Run) -> list[str]:
    """The run as text: step, virtual time, task and where it waits then, with injections, calls and notes between."""
    between: dict[int, list[str]] = {}
    for number, (step, _, task) in zip(run.fired, run.fired_at, strict=True):
        between.setdefault(step, []).append(f">>> {run.attempt.injections[number]}, while {task} was current")
    for step, text in run.notes:
        between.setdefault(step, []).append(f"--- {text}")
    for call, (step, _) in zip(run.calls, run.call_steps, strict=True):
        between.setdefault(step, []).append(f"... {call}")
    lines = [*trace_lines(run.crashed), "=== recovery"] if run.crashed is not None else []
    lines += between.pop(0, [])
    for number, seen in enumerate(run.steps, 1):
        lines.append(f"{number:4} {seen.time:9.3f}s {run.label(seen.task):<16} {seen.location}")
        lines += between.pop(number, [])
    return lines


def place(location: Location) -> dict[str, Any]:
    """A location as JSON."""
    file = os.path.basename(location.file)
    return {"file": file, "path": location.file, "line": location.line, "in": location.function}


def _pair(pair: tuple[str, Location]) -> dict[str, Any]:
    return {"task": pair[0], **place(pair[1])}


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "kind": failure.kind,
        "message": failure.message,
        "token": failure.token,
        "injected": list(failure.injected),
        "step": failure.step,
        "task": failure.task,
        "location": place(failure.location),
        "traceback": failure.traceback,
        "waits": [
            {"task": w.task, **place(w.location), "call": w.call, "for": list(w.holders), "detail": w.detail}
            for w in failure.waits
        ],
        "cases": failure.cases,
        "tokens": list(failure.tokens),
        "severity": failure.severity,
        "chain": [place(p) for p in failure.chain],
        "run": run_json(failure.run, failure.recording),
    }


def run_json(run: Run, recording: Recording | None) -> dict[str, Any]:
    """One run as JSON: tasks, steps, calls, injections, deliveries, and the messages if it was recorded."""
    return {
        "token": token_of(run),
        "seconds": run.seconds,
        "tasks": [attrs.asdict(task) for task in run.tasks],
        "steps": [{"step": n, "task": s.task, "time": s.time, **place(s.location)} for n, s in enumerate(run.steps, 1)],
        "calls": [
            {"call": c.number, "name": str(c), "step": step, "time": time}
            for c, (step, time) in zip(run.calls, run.call_steps, strict=True)
        ],
        "injected": [
            {"what": str(run.attempt.injections[n]), "step": step, "time": time, "task": task}
            for n, (step, time, task) in zip(run.fired, run.fired_at, strict=True)
        ],
        "delivered": [
            {"injection": d.injection, "step": d.step, "time": d.time, "task": d.task, **place(d.location)}
            for d in run.deliveries
        ],
        "violations": [{"kind": v.kind, "message": v.message, "step": v.step} for v in run.violations],
        "notes": [{"step": step, "text": text} for step, text in run.notes],
        "shutdown": _seconds(run.shutdown),
        "messages": [] if recording is None else recording.messages_json(),
        "wakes": [] if recording is None else recording.wakes_json(),
    }


def seconds_in_words(seconds: float) -> str:
    """``1.5 s``, or that it never ended."""
    return "infinite: it never ended" if math.isinf(seconds) else f"{seconds:g} s"


def _seconds(seconds: float | None) -> float | str | None:
    """As JSON, which has no infinity."""
    return "never" if seconds is not None and math.isinf(seconds) else seconds


def unreached(awaited: tuple[tuple[str, int], ...]) -> tuple[Location, ...]:
    """Awaits that are in the same functions as those of ``awaited`` (file, line), and are not among them."""
    found: list[Location] = []
    for file in sorted({file for file, _ in awaited}):
        lines = [line for name, line in awaited if name == file]
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except SyntaxError:
            continue
        for function in ast.walk(tree):
            if isinstance(function, ast.AsyncFunctionDef) and _contains(function, lines):
                left = [node for node in _awaits(function) if not _contains(node, lines)]
                found += [Location(file, node.lineno, function.name) for node in left]
    return tuple(found)


def _awaits(function: ast.AsyncFunctionDef) -> Iterator[ast.expr | ast.stmt]:
    """The awaits of a function, without those of functions inside it."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Await):
            yield node
        left += ast.iter_child_nodes(node)


def _contains(node: ast.expr | ast.stmt, lines: list[int]) -> bool:
    return any(node.lineno <= line <= (node.end_lineno or node.lineno) for line in lines)

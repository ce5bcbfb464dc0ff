"""What a sweep, an exploration or a replay found: failures, the smallest case first, coverage, and what stayed open.

Holds everything a reader or a drawing needs, as plain values; `Findings.to_json` is all of it. Never runs anything.
"""

from __future__ import annotations

import json
import os
from typing import Any

import attrs

from ..engine.attempt import Attempt, Delivery, Run, Violation
from ..process.locations import Location, Wait
from ..process.recording import Recording
from .tokens import encode

_LAST_LINES = 12


@attrs.frozen
class Failure:
    """One way in which the scenario went wrong, in its smallest case."""

    kind: str
    message: str
    token: str
    """Replays it: ``replay(scenario, token)``, or ``YOUYOU_REPLAY=token pytest ...``."""
    injected: tuple[str, ...]
    """What was done, in words."""
    step: int
    """The step of the first injection, or of the violation if nothing was injected."""
    task: str
    location: Location
    """Where the first injection was delivered."""
    attempt: Attempt
    run: Run = attrs.field(repr=False)
    traceback: str = ""
    waits: tuple[Wait, ...] = ()
    """At a deadlock: who waits where and for whom."""
    cases: int = 1
    """How many runs went wrong in this way."""

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
            lines.append(f"  delivered to {self.task} at {self.location}")
        lines += [f"  {wait}" for wait in self.waits]
        if self.run.steps:
            lines.append(f"  last steps (of {len(self.run.steps)}):")
            lines += [f"    {line}" for line in trace_lines(self.run)[-_LAST_LINES:]]
        if self.traceback:
            lines += ["  " + line for line in self.traceback.rstrip().splitlines()[-14:]]
        cases = "1 such case" if self.cases == 1 else f"{self.cases} such cases"
        lines.append(f"  replay: YOUYOU_REPLAY={self.token}  ({cases})")
        return "\n".join(lines)


@attrs.frozen
class Coverage:
    """Await locations of the scenario, and those at which a cancel was delivered."""

    seen: tuple[tuple[str, Location], ...]
    """(Task name, location) pairs at which a task was suspended in the plain run."""
    cancelled: tuple[tuple[str, Location], ...]

    @property
    def never(self) -> tuple[tuple[str, Location], ...]:
        """Where no cancel was ever delivered."""
        done = set(self.cancelled)
        return tuple(pair for pair in self.seen if pair not in done)

    def __str__(self) -> str:
        lines = [f"{len(self.seen) - len(self.never)} of {len(self.seen)} await locations were cancelled"]
        return "\n".join(lines + [f"  never: {task} at {location}" for task, location in self.never])


@attrs.frozen
class Findings:
    """Everything that many runs have shown, as values."""

    scenario: str
    mode: str
    runs: int
    baseline: Run = attrs.field(repr=False)
    """The undisturbed run."""
    failures: tuple[Failure, ...] = ()
    """One per way of going wrong, the smallest case first."""
    planned: int = 0
    fired: int = 0
    delivered: int = 0
    unresolved: tuple[str, ...] = ()
    """Tokens of runs whose injection did not take effect: they show nothing, good or bad."""
    missed: tuple[str, ...] = ()
    """What was asked for and never happened, in words: a name that is nobody's, say."""
    coverage: Coverage = Coverage((), ())
    worst_shutdown: float | None = None
    """Virtual seconds from a cancel to the end of its target, at worst."""
    worst_shutdown_token: str = ""
    note: str = ""
    seconds: float = 0.0
    """Real time spent."""
    recording: Recording | None = attrs.field(default=None, repr=False)
    """Of the undisturbed run."""

    @property
    def ok(self) -> bool:
        """Nothing went wrong, and what was asked for took effect at least once."""
        return not self.failures and not self.missed and (self.planned == 0 or self.delivered > 0)

    @property
    def trace(self) -> str:
        """The smallest failure's run step by step, or the undisturbed run if nothing went wrong."""
        return "\n".join(trace_lines(self.failures[0].run if self.failures else self.baseline))

    def __str__(self) -> str:
        return "\n".join([self.summary(), *self._problems()])

    def summary(self) -> str:
        """One line."""
        kinds = "1 kind of failure" if len(self.failures) == 1 else f"{len(self.failures)} kinds of failure"
        verdict = "ok" if self.ok else kinds if self.failures else "nothing was shown"
        parts = [f"{self.mode} of {self.scenario}: {verdict}", f"{self.runs} runs of {len(self.baseline.steps)} steps"]
        if self.planned:
            parts.append(f"{self.delivered} of {self.planned} delivered, {len(self.unresolved)} unresolved")
        if self.coverage.seen:
            parts.append(f"{len(self.coverage.never)} of {len(self.coverage.seen)} await locations never cancelled")
        if self.worst_shutdown is not None:
            parts.append(f"slowest shutdown {self.worst_shutdown:g} s")
        return "; ".join(parts + ([self.note] if self.note else []))

    def _problems(self) -> list[str]:
        if not self.ok and not self.failures:
            return list(self.missed) or ["no injection took effect"]
        lines = [str(failure) for failure in self.failures[:1]]
        rest = [f"also {f.kind}: {f.message[:160]}  [{f.token}]" for f in self.failures[1:8]]
        return lines + rest

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain dicts, lists, strings and numbers."""
        return {
            "scenario": self.scenario,
            "mode": self.mode,
            "ok": self.ok,
            "runs": self.runs,
            "planned": self.planned,
            "fired": self.fired,
            "delivered": self.delivered,
            "unresolved": list(self.unresolved),
            "missed": list(self.missed),
            "steps": len(self.baseline.steps),
            "coverage": {
                "seen": [_pair(p) for p in self.coverage.seen],
                "cancelled": [_pair(p) for p in self.coverage.cancelled],
                "never": [_pair(p) for p in self.coverage.never],
            },
            "worst_shutdown": self.worst_shutdown,
            "worst_shutdown_token": self.worst_shutdown_token,
            "note": self.note,
            "seconds": self.seconds,
            "failures": [_failure(f) for f in self.failures],
            "baseline": run_json(self.baseline, self.recording),
        }

    def json(self, indent: int | None = None) -> str:
        """`to_json` as text."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=indent)


def failure_of(run: Run, violation: Violation, cases: int = 1) -> Failure:
    """The failure that ``violation`` of ``run`` is."""
    first: Delivery | None = run.deliveries[0] if run.deliveries else None
    step = run.fired_at[0][0] if run.fired_at else violation.step
    return Failure(
        violation.kind,
        violation.message,
        encode(run.attempt),
        tuple(_in_words(run, number) for number in range(len(run.attempt.injections))),
        step,
        first.task if first is not None else "",
        first.location if first is not None else Location("", 0, ""),
        run.attempt,
        run,
        violation.traceback,
        tuple(run.waits) if violation.kind == "deadlock" else (),
        cases,
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
        "run": run_json(failure.run, failure.recording),
    }


def run_json(run: Run, recording: Recording | None) -> dict[str, Any]:
    """One run as JSON: tasks, steps, calls, injections, deliveries, and the messages if it was recorded."""
    return {
        "token": encode(run.attempt),
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
        "shutdown": run.shutdown,
        "messages": [] if recording is None else recording.messages_json(),
        "wakes": [] if recording is None else recording.wakes_json(),
    }

"""What a report's page draws from: runs as short arrays, places with their line of source. Plain values only."""

from __future__ import annotations

import linecache
import math
from typing import Any

import attrs

from ..engine.attempt import Delivery, Run
from ..process.locations import Location, Wait
from ..process.recording import Recording
from .findings import Failure, Findings, place

MOST_VIEWS = 20
"""Failures that get a drawing."""
_MOST_STEPS = 3_000
_AROUND = 3
_STOPPING = ("always", "deadlock", "eventually", "steps", "time", "engine")


@attrs.define
class Places:
    """Every await location of a page once, by number."""

    found: list[dict[str, Any]] = attrs.field(factory=list)
    _numbers: dict[Location, int] = attrs.field(factory=dict)

    def number(self, location: Location) -> int:
        """The number of ``location``."""
        if location not in self._numbers:
            self._numbers[location] = len(self.found)
            source = linecache.getline(location.file, location.line).strip() if location.file else ""
            self.found.append({**place(location), "source": source[:160]})
        return self._numbers[location]


def snippet(location: Location) -> list[tuple[int, str]]:
    """The lines of source around ``location``, with their numbers; none if they cannot be read."""
    lines = linecache.getlines(location.file) if location.file else []
    first, last = max(1, location.line - _AROUND), min(len(lines), location.line + _AROUND)
    return [(number, lines[number - 1].rstrip("\n")) for number in range(first, last + 1)]


def hits(run: Run) -> list[Delivery]:
    """Where injections arrived in a task. Of something that was called, only the first: later ones may be chance."""
    called = set(run.actions)
    first = {d.injection: d for d in reversed(run.deliveries)}
    return [d for d in run.deliveries if d.task and (d.injection not in called or d is first[d.injection])]


def views(report: Findings, places: Places) -> list[dict[str, Any]]:
    """What can be looked at: each failure, then the undisturbed run. A view after a crash has two acts."""
    failed = [_failure(failure, places) for failure in report.failures[:MOST_VIEWS]]
    plain = _acts(report.baseline, places, report.recording)
    return [*failed, {"kind": "", "acts": plain}]


def _failure(failure: Failure, places: Places) -> dict[str, Any]:
    acts = _acts(failure.run, places, failure.recording)
    acts[-1]["waits"] = [_wait(wait, places) for wait in failure.waits]
    return {"kind": failure.kind, "acts": acts}


def _acts(run: Run, places: Places, recording: Recording | None) -> list[dict[str, Any]]:
    if run.crashed is None:
        return [_act(run, places, recording)]
    before = {**_act(run.crashed, places, run.crashed.recording), "title": "before the crash"}
    # What was injected, was injected before the crash.
    return [before, {**_act(run, places, recording), "title": "recovery", "delivered": []}]


def _act(run: Run, places: Places, recording: Recording | None) -> dict[str, Any]:
    """One run. Of a very long one only the end is drawn."""
    first = max(0, len(run.steps) - _MOST_STEPS)
    stop = next((v.step for v in run.violations if v.kind in _STOPPING), None)
    return {
        "title": "",
        "first": first + 1,
        "seconds": run.seconds,
        "stop": stop,
        "shutdown": run.shutdown if run.shutdown is not None and math.isfinite(run.shutdown) else None,
        "tasks": [[task.label, task.parent, task.born] for task in run.tasks],
        "steps": [[step.task, places.number(step.location), step.time] for step in run.steps[first:]],
        "calls": [[str(call), step] for call, (step, _) in zip(run.calls, run.call_steps, strict=True)],
        "injected": [
            [str(run.attempt.injections[n]), step, time, task, run.attempt.injections[n].when]
            for n, (step, time, task) in zip(run.fired, run.fired_at, strict=True)
        ],
        "delivered": [[d.step, d.task, places.number(d.location)] for d in hits(run)],
        "violations": [[v.kind, v.message, v.step] for v in run.violations],
        "notes": [[step, text] for step, text in run.notes],
        "messages": [] if recording is None else recording.messages_json(),
        "wakes": [] if recording is None else recording.wakes_json(),
        "waits": [],
    }


def _wait(wait: Wait, places: Places) -> dict[str, Any]:
    return {
        "task": wait.task,
        "place": places.number(wait.location),
        "call": wait.call,
        "for": list(wait.holders),
        "detail": wait.detail,
    }

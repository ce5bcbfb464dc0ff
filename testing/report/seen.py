"""What one run adds to the books of a campaign: small, plain, and the same in whatever process it was made.

    seen = seen_of(run, known)          # where it was run
    campaign.enter(seen)                # where the books are kept

Only what was not in ``known`` before is carried along, so that a thousand runs of one course cost little.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Sequence
from hashlib import blake2b
from typing import Any, TypeVar
from zlib import crc32

import attrs

from ..engine.attempt import Delivery, Promise, Run, Violation
from ..process.locations import NOWHERE, Location, code_of
from .tokens import token_of

T = TypeVar("T")
Place = tuple[int, int, int]
"""A task, where it waits, and the task that ran before: each as a number that is the same in every process."""
_LONGEST_SEED = 12
"""Deviations of an order that are kept to go on from: as many as fit into a token."""


@attrs.frozen
class Seen:
    """One run, as the books of a campaign need it."""

    runs: int = 1
    """Executions since the one before: two if it crashed and recovered."""
    token: str = ""
    """Replays it; empty where nobody will ask."""
    recovery: bool = False
    """What was run last is the recovery."""
    further: bool = False
    """Another state that the same crash may leave: its injection is counted already."""
    trace: bytes = b""
    """Of the course, if nothing was injected."""
    planned: int = 0
    delivered: int = 0
    not_reached: int = 0
    without_effect: int = 0
    unresolved: bool = False
    judged: bool = True
    """Whether the promises of this run could be broken by what was done to it."""
    promises: tuple[Promise, ...] = ()
    took_effect: tuple[tuple[str, str], ...] = ()
    awaited: tuple[tuple[str, int], ...] = ()
    cancelled: tuple[tuple[str, Location], ...] = ()
    shutdown: float | None = None
    violations: tuple[Violation, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    """Of a run with violations: where what was injected arrived."""
    telling: bool = True
    """Something had happened when it was disturbed: a cancel before the first step shows next to nothing."""
    options: tuple[int, ...] = ()
    """How many possibilities each decision had, for a search that goes on from here."""
    places: tuple[Place, ...] = ()
    deviations: tuple[tuple[int, int], ...] = ()
    """The first of its decisions off the plain order, if it led somewhere new."""

    @property
    def failed(self) -> bool:
        """It shows a failure, and not mere notes."""
        return any(violation.severity == "failure" for violation in self.violations)


@attrs.define(eq=False)
class Known:
    """What the runs before have brought, and need not be told again."""

    took_effect: set[tuple[str, str]] = attrs.field(factory=set)
    awaited: set[tuple[str, int]] = attrs.field(factory=set)
    cancelled: dict[tuple[str, Location], None] = attrs.field(factory=dict)
    places: set[Place] = attrs.field(factory=set)
    shutdown: float = -1.0
    """The longest."""

    def add(self, seen: Seen) -> None:
        """``seen`` has been entered."""
        self.took_effect.update(seen.took_effect)
        self.awaited.update(seen.awaited)
        self.cancelled.update(dict.fromkeys(seen.cancelled))
        self.places.update(seen.places)
        if seen.shutdown is not None:
            self.shutdown = max(self.shutdown, seen.shutdown)


def seen_of(run: Run, known: Known, *, further: bool = False, search: Container[str] = ()) -> Seen:
    """What ``run`` adds; with ``search`` also what tells a search how to go on: ``options``, ``places``."""
    injections = run.attempt.injections
    slowest = run.shutdown is not None and run.shutdown > known.shutdown
    trace = b"" if injections else trace_of(run)
    places = tuple(_places(run) - known.places) if "places" in search else ()
    given: dict[str, Any] = {
        "recovery": run.crashed is not None,
        "further": further,
        "trace": trace,
        "promises": tuple(run.promises),
        "violations": tuple(run.violations),
        "deliveries": tuple(run.deliveries) if run.violations else (),
        "telling": is_telling(run),
        "places": tuple(sorted(places)),
        "deviations": tuple(run.deviations.items())[:_LONGEST_SEED] if places else (),
        "options": tuple(run.options) if "options" in search else (),
        "token": token_of(run) if run.violations or run.unresolved or slowest else "",
    }
    if further:
        return Seen(**given)
    hit = [injections[d.injection] for d in run.deliveries]
    cancelled = [
        (d.name, d.location)
        for d in run.deliveries
        if d.location is not NOWHERE and injections[d.injection].kind == "cancel"
    ]
    return Seen(
        **given,
        planned=len(injections),
        delivered=len({d.injection for d in run.deliveries}),
        not_reached=len(run.not_reached),
        without_effect=len(run.without_effect),
        unresolved=run.unresolved,
        judged=bool(run.deliveries or not injections),
        took_effect=_new(((i.kind, i.what) for i in hit), known.took_effect),
        awaited=tuple(sorted(run.awaited - known.awaited)),
        cancelled=_new(cancelled, known.cancelled),
        shutdown=run.shutdown,
    )


def _new(found: Iterable[T], known: Container[T]) -> tuple[T, ...]:
    return tuple(item for item in dict.fromkeys(found) if item not in known)


def is_telling(run: Run) -> bool:
    """Something had happened when it was disturbed."""
    return all((injection.at, injection.when) != (1, "before") for injection in run.attempt.injections)


def trace_of(run: Run) -> bytes:
    """The course of a run: who ran, where it waited then, when; and the decisions that are not about order."""
    digest = blake2b(digest_size=12)
    if run.steps:
        tasks, places, times = zip(*run.steps, strict=True)
        digest.update(array("l", tasks))
        digest.update(array("q", map(code_of, places)))
        digest.update(array("d", times))
    if run.asides:
        digest.update(repr([item for item in run.deviations.items() if item[0] in run.asides]).encode())
    return digest.digest()


def _places(run: Run) -> set[Place]:
    names = [crc32(task.name.encode()) for task in run.tasks]
    tasks: Sequence[int] = [names[step.task] for step in run.steps]
    return set(zip(tasks[1:], [code_of(step.location) for step in run.steps[1:]], tasks, strict=False))

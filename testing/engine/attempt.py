"""What one run is asked to do and what came of it: plain values, no behaviour of their own.

An `Attempt` with its scenario determines a run completely; a `Run` is what was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs

from ..process.locations import Location, Wait
from .faults import Fault, Mode, PortCall
from .schedule import Plain, Priorities, Recorded, Source, Walk

Fairness = Literal["trio", "none"]
Strategy = Literal["plain", "walk", "pct2", "pct3"]


@attrs.frozen
class Injection:
    """One thing done to a run: a cancel at a step, a fault at a port call, or a crash after a step."""

    kind: Literal["cancel", "fault", "crash"]
    at: int
    """Number of the step, or of the port call, counted from 1."""
    what: str = "root"
    """The target of a cancel, the mode of a fault, the number of the state for a crash."""
    when: Literal["after", "before"] = "after"

    def __str__(self) -> str:
        if self.kind == "cancel":
            return f"cancel of {self.what} {self.when} step {self.at}"
        if self.kind == "fault":
            return f"{self.what} at port call {self.at}"
        return f"crash after step {self.at}" + (f", state {self.what}" if self.what not in ("root", "0") else "")


@attrs.frozen
class Order:
    """Which decisions a run takes: a strategy with its seed, or recorded deviations from the plain order."""

    strategy: Strategy = "plain"
    seed: int = 0
    limit: int | None = None
    length: int = 200
    deviations: tuple[tuple[int, int], ...] = ()

    def source(self) -> Source:
        """A fresh source of these decisions."""
        if self.deviations:
            return Recorded(dict(self.deviations))
        match self.strategy:
            case "plain":
                return Plain()
            case "walk":
                return Walk(self.seed, self.limit)
            case "pct2":
                return Priorities(self.seed, 2, self.length, self.limit)
            case "pct3":
                return Priorities(self.seed, 3, self.length, self.limit)


@attrs.frozen
class Chaos:
    """Faults at random until ``heal`` (virtual seconds), none after; ``finish`` seconds later all must be over."""

    heal: float = 60.0
    modes: tuple[Mode, ...] = ("raise_before", "raise_after", "slow")
    finish: float = 600.0


@attrs.frozen
class Attempt:
    """Everything that determines a run, given the scenario."""

    injections: tuple[Injection, ...] = ()
    order: Order = Order()
    seed: int = 0
    """Of `Simulation.random`."""
    fairness: Fairness = "trio"
    latency: bool = False
    chaos: Chaos | None = None


@attrs.frozen
class Limits:
    """What a run may use and what may come out of it; the same for all runs of a sweep."""

    max_steps: int = 20_000
    max_seconds: float = 7 * 86_400.0
    allow: tuple[type[BaseException], ...] = ()
    """Exceptions that may come out of the scenario."""
    target: Callable[[Any], object] | None = None
    """What ``action`` in an injection means: takes the `Simulation`, cancels or returns what to cancel or call."""
    error: Callable[[Fault, PortCall], BaseException] | None = None
    """Makes the exceptions of injected faults; None: `InjectedFault`."""
    durables: dict[str, Any] = attrs.field(factory=dict)
    """For a recovery: what the crash left of each durable."""


@attrs.frozen
class TaskSeen:
    """One task of a run."""

    index: int
    label: str
    """Unique in the run: ``worker``, ``worker#2``; the same in every run of the same schedule."""
    name: str
    parent: int | None
    born: int
    """The step after which it was spawned."""


@attrs.frozen
class Step:
    """One step: a task ran and was then suspended at ``location``."""

    task: int
    location: Location
    time: float


@attrs.frozen
class Violation:
    """One thing that was not as it should be."""

    kind: str
    """error, deadlock, always, at_end, eventually, shutdown, leak, steps, time, stuck, nondeterminism, engine."""
    message: str
    step: int
    leaves: tuple[str, ...] = ()
    """Names of the exception types for an error: what shrinking compares."""
    traceback: str = ""


@attrs.frozen
class Delivery:
    """Where an injection took effect."""

    injection: int
    step: int
    time: float
    task: str
    name: str
    location: Location


@attrs.define
class Run:
    """What was seen in one run."""

    attempt: Attempt
    steps: list[Step] = attrs.field(factory=list)
    tasks: list[TaskSeen] = attrs.field(factory=list)
    boundaries: list[int] = attrs.field(factory=list)
    """Steps before which something happened that is not a step of the program: a clock jump, a thread's answer."""
    targets: dict[str, int] = attrs.field(factory=dict)
    """The step at which each named target first appeared."""
    fired: list[int] = attrs.field(factory=list)
    """Numbers of the injections that were done."""
    actions: list[int] = attrs.field(factory=list)
    """Those of them that called something rather than cancel a scope."""
    fired_at: list[tuple[int, float, str]] = attrs.field(factory=list)
    """Step, time and current task of each of them."""
    deliveries: list[Delivery] = attrs.field(factory=list)
    violations: list[Violation] = attrs.field(factory=list)
    waits: list[Wait] = attrs.field(factory=list)
    """At a deadlock: who waits where and for whom."""
    calls: list[PortCall] = attrs.field(factory=list)
    call_steps: list[tuple[int, float]] = attrs.field(factory=list)
    deviations: dict[int, int] = attrs.field(factory=dict)
    decisions: int = 0
    seconds: float = 0.0
    """Virtual time at the end."""
    shutdown: float | None = None
    """Virtual seconds from the first injection until the target had ended."""
    shutdown_steps: int | None = None
    notes: list[tuple[int, str]] = attrs.field(factory=list)
    frozen: list[dict[str, Any]] = attrs.field(factory=list)
    """After a crash: the possible states of everything durable."""
    crashed: Run | None = None
    """The run before the crash, if this is a recovery."""
    recording: Any = None

    def label(self, index: int) -> str:
        """The name of a task."""
        return self.tasks[index].label

    @property
    def unresolved(self) -> bool:
        """Something was to be injected and did not take effect: this run shows nothing."""
        wanted = set(range(len(self.attempt.injections)))
        return bool(wanted - {d.injection for d in self.deliveries})

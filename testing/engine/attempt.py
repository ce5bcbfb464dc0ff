"""What one run is asked to do and what it found: plain values, no behaviour of their own.

An `Attempt` with its scenario determines a run completely; a `Run` is what was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import attrs

from ..process.locations import Location, Wait
from .faults import Fault, Mode, PortCall
from .schedule import PartialOrder, Plain, Priorities, Recorded, Source, Walk

Fairness = Literal["trio", "none"]
Severity = Literal["failure", "note"]
Strategy = str
"""plain, walk, pos, or pct and a depth (pct2 to pct9)."""


@attrs.frozen
class Injection:
    """One thing done to a run: a cancel at a step, a fault at a port call, a crash after a step or in a file call."""

    kind: Literal["cancel", "fault", "crash"]
    at: int
    """Number of the step, or of the port call, counted from 1."""
    what: str = "root"
    """The target of a cancel, the mode of a fault, the number of the state for a crash."""
    when: Literal["after", "before", "during"] = "after"
    """Relative to the step; ``during``: in the port call of that number, before its effect."""

    def __str__(self) -> str:
        if self.kind == "cancel":
            return f"cancel of {self.what} {self.when} step {self.at}"
        if self.kind == "fault":
            return f"{self.what} at port call {self.at}"
        moment = f"in port call {self.at}" if self.when == "during" else f"after step {self.at}"
        return f"crash {moment}" + (f", state {self.what}" if self.what not in ("root", "0") else "")


@attrs.frozen
class Order:
    """Which decisions a run takes: recorded deviations from the plain order, after them a strategy with its seed."""

    strategy: Strategy = "plain"
    seed: int = 0
    limit: int | None = None
    length: int = 200
    deviations: tuple[tuple[int, int], ...] = ()

    def source(self) -> Source:
        """A fresh source of these decisions."""
        chosen: Source
        match self.strategy:
            case "plain":
                chosen = Plain()
            case "walk":
                chosen = Walk(self.seed, self.limit)
            case "pos":
                chosen = PartialOrder(self.seed, self.limit)
            case _:
                chosen = Priorities(self.seed, int(self.strategy[3:]), self.length, self.limit)
        return Recorded(dict(self.deviations), chosen) if self.deviations else chosen


def check_strategy(name: str) -> None:
    """Raise `ValueError` unless ``name`` is a strategy."""
    if name not in ("plain", "walk", "pos") and not (name[:3] == "pct" and name[3:] in tuple("23456789")):
        raise ValueError(f"unknown strategy {name!r}; choose 'walk', 'pos', 'guided', or 'pct2' to 'pct9'")


@attrs.frozen
class Chaos:
    """Faults at random until ``heal`` (virtual seconds), none after; ``finish`` seconds later all must be over."""

    heal: float = 60.0
    """Virtual seconds after which no call fails any more."""
    modes: tuple[Mode, ...] = ("raise_before", "raise_after", "slow")
    """What may happen to a call until then."""
    finish: float = 600.0
    """Virtual seconds after healing by which the scenario must be over."""


@attrs.frozen
class Attempt:
    """Everything that determines a run, given the scenario."""

    injections: tuple[Injection, ...] = ()
    """What is done to the run, in order; none: it is undisturbed."""
    order: Order = Order()
    """Which decisions are taken about order and lateness."""
    seed: int = 0
    """Of `Simulation.random`."""
    fairness: Fairness = "trio"
    """``none``: a runnable task may be delayed for as long as the order says."""
    latency: bool = False
    """Whether calls of ports may answer late."""
    chaos: Chaos | None = None
    """Faults at random; None: only those of ``injections``."""


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
    allow_leaks: tuple[str, ...] = ()
    """Patterns (``library.*``) for coroutines and generators that may be left behind, by name with module."""
    swallowed: Severity = "note"
    """What a `trio.Cancelled` that the program swallowed counts as."""
    noting: bool = False
    """Whether runs note how many options each decision had."""
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
    arguments: str = ""
    """Plain ones (texts, numbers) that it was spawned with."""


class Step(NamedTuple):
    """One step: a task ran and was then suspended at ``location``."""

    task: int
    location: Location
    time: float


@attrs.frozen
class Violation:
    """One thing that was not as it should be."""

    kind: str
    """error, deadlock, always, at_end, eventually, shutdown, leak, steps, time, stuck, swallowed, nondeterminism or
    engine."""
    message: str
    step: int
    leaves: tuple[str, ...] = ()
    """For an error: the exception types, each with the place of its innermost raise; for others, what else tells
    two of a kind apart."""
    traceback: str = ""
    severity: Severity = "failure"


@attrs.frozen
class Promise:
    """Something that a scenario promised, by the line that did."""

    kind: str
    """always, at_end, eventually or shutdown."""
    message: str
    line: str
    """File and line of the call."""

    def __str__(self) -> str:
        return f"{self.message!r} ({self.line})"


@attrs.frozen
class Delivery:
    """Where an injection took effect."""

    injection: int
    step: int
    time: float
    task: str
    name: str
    location: Location
    chain: tuple[Location, ...] = ()
    """The calls that led there, the outermost first; `location` is the last."""


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
    options: list[int] = attrs.field(factory=list)
    """How many possibilities each decision had, if the run was asked to note that."""
    decided: dict[int, tuple[int, str]] = attrs.field(factory=dict)
    """For each recorded deviation that was carried out: the step, and what was chosen in words."""
    asides: set[int] = attrs.field(factory=set)
    """Numbers of the decisions that deviated and were not about order."""
    awaited: set[tuple[str, int]] = attrs.field(factory=set)
    """File and line of every await at which a task was suspended, and of those that led there."""
    promises: dict[Promise, None] = attrs.field(factory=dict)
    """What the scenario promised, in order."""
    seconds: float = 0.0
    """Virtual time at the end."""
    shutdown: float | None = None
    """Virtual seconds from the first injection until the target had ended; infinite if it never did."""
    notes: list[tuple[int, str]] = attrs.field(factory=list)
    outcome: BaseException | None = None
    """What pytest was told from inside: that the test is skipped, say."""
    frozen: list[dict[str, Any]] = attrs.field(factory=list)
    """After a crash: the possible states of everything durable."""
    crashed: Run | None = None
    """The run before the crash, if this is a recovery."""
    recording: Any = None

    def label(self, index: int) -> str:
        """The name of a task."""
        return self.tasks[index].label

    @property
    def failures(self) -> list[Violation]:
        """Its violations without those that are mere notes."""
        return [v for v in self.violations if v.severity == "failure"]

    @property
    def not_reached(self) -> set[int]:
        """Numbers of the injections whose moment never came, or whose target did not exist then."""
        return set(range(len(self.attempt.injections))) - set((self.crashed or self).fired)

    @property
    def without_effect(self) -> set[int]:
        """Numbers of the injections that were done and arrived nowhere."""
        return set((self.crashed or self).fired) - {d.injection for d in self.deliveries}

    @property
    def unresolved(self) -> bool:
        """Something was to be injected and did not take effect: this run shows nothing."""
        return bool(self.not_reached or self.without_effect)

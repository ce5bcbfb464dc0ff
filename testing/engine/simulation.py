"""What a scenario sees of the simulated world it runs in.

    async def scenario(sim: Simulation) -> None:
        store = sim.port("store", MemoryStore())
        sim.always(lambda: store.open <= 1)
        async with trio.open_nursery() as nursery:
            ...

The clock is virtual, the order of tasks comes from the attempt, threads run inline, real sockets are refused. Nothing
here decides what to try: that is the business of sweeps and explorations.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import trio

from ..disk import files
from ..disk.disk import Disk
from ..network import stdlib_sockets
from ..network.network import HOME, Network
from ..network.sockets import install
from ..process.locations import raised_at
from ..process.threads import ThreadKilled
from ..process.watchdog import StepKilled
from .attempt import Attempt, Injection, Limits, Run
from .control import Control
from .crashes import states_of
from .faults import InjectedFault, proxy
from .oracles import Oracles
from .port_calls import SimulatedPlan
from .targets import Action, Targets

T = TypeVar("T")


class Simulation:
    """What a scenario may use and promise. Fresh in every run.

    Attributes:
        seed: the seed of this run.
        random: a `random.Random` that is the same in every replay; use it in place of the global one.
    """

    def __init__(self, attempt: Attempt, limits: Limits, recorder: Any = None) -> None:
        self.seed: int = attempt.seed
        self.random: random.Random = random.Random(attempt.seed)
        self._attempt, self._limits = attempt, limits
        self._run = Run(attempt)
        self._control = Control(attempt, limits, self._run, self._fire, recorder=recorder)
        self._oracles = Oracles(self._control, self._run.promises, self._control.checks)
        self._targets = Targets(self._control, self._run, self._oracles.shut_down, self._failed)
        self._plan = SimulatedPlan(
            attempt,
            limits,
            self._control,
            self._run,
            cancel=lambda number: self._targets.fire("root", number),
            crash=self._crash,
        )
        self._durables: dict[str, Any] = {}
        self._network: Network | None = None
        self._disk: Disk | None = None
        self._interrupted = False
        if (target := limits.target) is not None:
            self._targets.known["action"] = Action(lambda: target(self))

    # What the scenario asks.

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self._control.clock.current_time()

    @property
    def step(self) -> int:
        """Steps taken so far by all tasks."""
        return self._control.step

    def choose(self, options: int) -> int:
        """A decision below ``options`` that an exploration varies and a replay repeats; 0 in sweeps."""
        if options < 1:
            raise ValueError(f"sim.choose({options!r}); write how many possibilities there are, at least 1")
        return self._control.choices.choose(options) if options > 1 else 0

    def note(self, text: str) -> None:
        """Put a line into the trace."""
        self._run.notes.append((self._control.step, text))

    # What the scenario promises.

    def always(self, check: Callable[[], object], message: str = "") -> None:
        """``check`` must be true (or None) after every step; it may also raise `AssertionError`."""
        self._oracles.always(check, message)

    def at_end(self, check: Callable[[], object], message: str = "") -> None:
        """``check``, sync or async, must be true (or None) when the scenario is over, however it ended."""
        self._oracles.at_end(check, message)

    def eventually(self, check: Callable[[], object], message: str = "", *, within: float | None = None) -> None:
        """``check`` must become true in every run, ``within`` virtual seconds from now if given."""
        if within is not None and not within >= 0:
            raise ValueError(f"sim.eventually(within={within!r}); write seconds, 0 or more")
        self._oracles.eventually(check, message, None if within is None else self.now + within)

    def shutdown_within(self, seconds: float) -> None:
        """After the first cancel its target must have ended within ``seconds`` of virtual time."""
        if not seconds >= 0:
            raise ValueError(f"sim.shutdown_within({seconds!r}); write seconds, 0 or more")
        self._oracles.shutdown_within(seconds)

    # What the scenario exposes.

    def scope(self, name: str, scope: trio.CancelScope | None = None) -> trio.CancelScope:
        """Name a cancel scope as a target for ``cancel=name``; makes a new one if none is given. Returns it."""
        made = trio.CancelScope() if scope is None else scope
        if not isinstance(made, trio.CancelScope):
            raise TypeError(f"sim.scope() takes a name and, if you have one, a trio.CancelScope; not {scope!r}")
        self._targets.add(name, made)
        return made

    def action(self, name: str, call: Callable[[], object], *, done: Callable[[], object] | None = None) -> None:
        """Name something to call as a target for ``cancel=name``.

        Args:
            call: sync or async, for example ``lambda: turn.cancel()`` or ``session.close``; returns False if it changed
                nothing.
            done: true when what it ends has ended, so that its shutdown can be timed. An async ``call`` needs none.
        """
        if not callable(call) or not (done is None or callable(done)):
            raise TypeError(f"sim.action() takes functions that are called later; not {call!r} and {done!r}")
        self._targets.add(name, Action(call, done))

    def port(self, name: str, target: T) -> T:
        """A stand-in for ``target`` whose awaited calls are numbered, can be broken, and die in a crash."""
        made: T = proxy(self._plan, name, target)
        return made

    def network(self) -> Network:
        """The in-memory network of this run; from the first call on, Trio's sockets and names are those in it."""
        if self._network is None:
            self._network = Network(self._plan.perform, self.choose, InjectedFault)
            self._network.host(HOME)
            install(self._network)
            stdlib_sockets.use(self._network)
            made = self._network
            self._control.threads.entering.append(lambda inside: stdlib_sockets.use(made if inside else None))
        return self._network

    def disk(self) -> Disk:
        """The simulated folder of this run: files in it may be lost, torn or reordered in a crash until synced.

        In a recovery it holds what one of the possible crashes left.
        """
        if self._disk is None:
            self._disk = Disk(partial(self._plan.perform_now, "disk"))
            left: Any = self.durable("disk", self._disk)
            if left is not self._disk:
                self._disk.fill(left)
            files.add(self._disk)
        return self._disk

    def durable(self, name: str, state: T) -> T:
        """Something that outlives a crash. In a recovery: what the crash left of it.

        ``state`` is deep-copied at the crash, unless it has ``crash_states()`` that lists what may be left of it.
        """
        if name in self._limits.durables:
            found: T = self._limits.durables[name]
            return found
        self._durables[name] = state
        return state

    # What the engine does.

    def _close(self) -> None:
        """Take away what the run was given of the world."""
        stdlib_sockets.use(None)
        if self._disk is not None:
            files.remove(self._disk)
            self._disk.close()

    def _fire(self, injection: Injection, number: int) -> None:
        if injection.kind == "cancel":
            self._targets.fire(injection.what, number)
        else:
            self._crash(number)

    def _crash(self, number: int) -> None:
        self._run.frozen = states_of(self._durables)
        self._plan.dead = True
        self._control.note_fired(number)
        self._control.delivered(number)
        self._control.end()
        self._control.everything.cancel(reason="youyou.testing: crash")

    def _failed(self, what: str, error: BaseException) -> None:
        """``error`` came out; record it unless everything in it was injected or is allowed."""
        leaves = [leaf for leaf in leaves_of(error) if not self._allowed(leaf)]
        for leaf in leaves:
            if type(leaf).__name__ in ("Skipped", "SkipTest", "XFailed"):
                # Said to the test runner, whose business it is.
                self._run.outcome = leaf
                return
        # A Ctrl-C that nobody injected comes from the person at the keyboard.
        self._interrupted |= any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves)
        if leaves and not self._plan.dead:
            names = tuple(sorted({f"{type(leaf).__name__} at {raised_at(leaf)}" for leaf in leaves}))
            text = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves)
            trace = "".join(traceback.format_exception(leaves[0], chain=False))
            self._control.violate("error", f"{what} {text}", names, trace)

    def _allowed(self, leaf: BaseException) -> bool:
        # The run was stopped for another reason, and everything was cancelled.
        ended = isinstance(leaf, trio.Cancelled) and self._control.stopped is not None
        if ended or isinstance(leaf, (ThreadKilled, StepKilled, *self._limits.allow)):
            return True
        if isinstance(leaf, KeyboardInterrupt) and any(i.what == "ctrl-c" for i in self._attempt.injections):
            return True
        cause: BaseException | None = leaf
        while cause is not None:
            if any(cause is injected for injected in self._plan.raised):
                return True
            cause = cause.__cause__
        return False


Scenario = Callable[[Simulation], Awaitable[object]]
"""What a sweep or an exploration runs, many times."""


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The exceptions inside nested groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error

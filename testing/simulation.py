"""One run of a scenario in a simulated world: what the scenario sees of it, and the function that runs it.

    async def scenario(sim: Simulation) -> None:
        store = sim.port("store", MemoryStore())
        sim.always(lambda: store.open <= 1)
        async with trio.open_nursery() as nursery:
            ...

The clock is virtual, the order of tasks comes from the attempt, threads run inline, real sockets are refused. Nothing here
decides what to try: that is the business of sweeps and explorations.
"""

from __future__ import annotations

import contextvars
import inspect
import random
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import attrs
import trio

from . import hooks
from .attempt import Attempt, Injection, Limits, Run, Scenario, Violation
from .control import Control, Unstoppable
from .crashes import Crashed, states_of
from .faults import Fault, FaultPlan, PortCall, stand_in
from .leaks import LeakWatch

T = TypeVar("T")
LATENCIES = (0.0, 0.001, 0.1, 1.0, 30.0)
"""Seconds by which a port may be late in an exploration."""
_NAME_LENGTH = 24


@attrs.frozen
class _Action:
    call: Callable[[], object]
    done: Callable[[], object] | None = None


class Simulation:
    """What a scenario may use and promise. Fresh in every run.

    Attributes:
        seed: the seed of this run.
        random: a `random.Random` that is the same in every replay; use it in place of the global one.
    """

    def __init__(self, attempt: Attempt, limits: Limits, recorder: Any = None) -> None:
        self.seed = attempt.seed
        self.random = random.Random(attempt.seed)
        self._attempt = attempt
        self._limits = limits
        self._run = Run(attempt)
        self._control = Control(attempt, limits, self._run, self._fire, recorder=recorder)
        self._plan = _Plan(self, self._control)
        self._root = trio.CancelScope()
        self._targets: dict[str, trio.CancelScope | _Action] = {"root": self._root}
        self._ends: list[tuple[str, Callable[[], object]]] = []
        self._hopes: dict[str, Callable[[], None]] = {}
        self._shutdown_limit: float | None = None
        self._durables: dict[str, Any] = {}
        self._crashed = False

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
        return self._control.choices.choose(options) if options > 1 else 0

    def note(self, text: str) -> None:
        """Put a line into the trace."""
        self._run.notes.append((self._control.step, text))

    # What the scenario promises.

    def always(self, check: Callable[[], object], message: str = "") -> None:
        """``check`` must be true after every step; it may also raise `AssertionError`."""
        name = message or _describe(check)

        def look() -> None:
            if self._control.stopped is None and (problem := _problem(check)) is not None:
                self._control.stop("always", f"{name}: {problem}", ("AssertionError",))

        self._control.checks.append(look)

    def at_end(self, check: Callable[[], object], message: str = "") -> None:
        """``check``, sync or async, must be true when the scenario is over, however it ended."""
        self._ends.append((message or _describe(check), check))

    def eventually(self, check: Callable[[], object], message: str = "", *, within: float | None = None) -> None:
        """``check`` must become true in every run, ``within`` virtual seconds from now if given."""
        name = message or _describe(check)
        deadline = None if within is None else self.now + within
        key = f"{len(self._hopes)} {name}"

        def look() -> None:
            if key not in self._hopes:
                return
            if _problem(check) is None:
                del self._hopes[key]
            elif deadline is not None and self._control.now > deadline:
                del self._hopes[key]
                self._control.stop("eventually", f"{name}: not true within {within:g} s")

        self._hopes[key] = look
        self._control.checks.append(look)

    def shutdown_within(self, seconds: float) -> None:
        """After the first cancel its target must have ended within ``seconds`` of virtual time."""
        self._shutdown_limit = seconds

    # What the scenario exposes.

    def scope(self, name: str, scope: trio.CancelScope | None = None) -> trio.CancelScope:
        """Name a cancel scope as a target for ``cancel=name``; makes a new one if none is given. Returns it."""
        made = trio.CancelScope() if scope is None else scope
        self._add_target(name, made)
        return made

    def action(self, name: str, call: Callable[[], object], *, done: Callable[[], object] | None = None) -> None:
        """Name something to call, sync or async, as a target for ``cancel=name``.

        Args:
            call: for example ``lambda: turn.cancel()`` or ``session.close``; returns False if it changed nothing.
            done: true when what it ends has ended, so that its shutdown can be timed. An async ``call`` is timed itself.
        """
        self._add_target(name, _Action(call, done))

    def port(self, name: str, target: T) -> T:
        """A stand-in for ``target`` whose awaited calls are numbered, can be broken, and die in a crash."""
        made: T = stand_in(self._plan, name, target)
        return made

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

    def _add_target(self, name: str, target: trio.CancelScope | _Action) -> None:
        if not 0 < len(name) <= _NAME_LENGTH or not name.replace("_", "").replace("-", "").isalnum():
            raise ValueError(f"bad target name {name!r}; use up to {_NAME_LENGTH} letters, digits, '_' and '-'")
        self._targets[name] = target
        self._run.targets.setdefault(name, (self._control.step, None))

    def _fire(self, injection: Injection, number: int) -> None:
        if injection.kind == "crash":
            self._crash(number)
            return
        name = injection.what
        if name == "ctrl-c":
            hooks.interrupt(self._control.loop)
            self._control.expect(number, name)
        elif name == "action" and self._limits.target is not None:
            self._act(number, name, _Action(lambda: self._limits.target and self._limits.target(self)))
        elif name in self._targets:
            self._cancel(number, name, self._targets[name])

    def _cancel(self, number: int, name: str, target: trio.CancelScope | _Action) -> None:
        if isinstance(target, _Action):
            self._act(number, name, target)
        elif name == "root" or not hooks.has_exited(target):
            reason = f"youyou.testing: injected cancel {number} of {name}"
            self._control.expect(number, reason)
            target.cancel(reason=reason)
            if name != "root":
                self._time(lambda: hooks.has_exited(target))

    def _act(self, number: int, name: str, action: _Action) -> None:
        self._control.expect(number, None)
        try:
            result = action.call()
            if callable(result) and not inspect.isawaitable(result):
                result = result()
        except BaseException as error:
            self._failed(f"{name} raised", error)
            return
        if isinstance(result, trio.CancelScope):
            result.cancel(reason=f"youyou.testing: injected by {name}")
            self._time(lambda: hooks.has_exited(result))
        elif inspect.isawaitable(result):
            self._control.loop.spawn_system_task(self._help, name, result, name=f"{name}()")
        elif action.done is not None:
            self._time(action.done)
        if result is False:
            self._control.no_effect(number)

    async def _help(self, name: str, made: Awaitable[object]) -> None:
        control, started = self._control, self._control.now
        with trio.CancelScope() as scope:
            control.helpers[trio.lowlevel.current_task()] = scope
            try:
                await made
            except trio.Cancelled:
                raise
            except BaseException as error:
                self._failed(f"{name} raised", error)
        del control.helpers[trio.lowlevel.current_task()]
        self._shut(started)
        if not control.helpers:
            self._helped.set()

    def _time(self, done: Callable[[], object]) -> None:
        started = self._control.now

        def look() -> None:
            if self._run.shutdown is None and done():
                self._shut(started)

        self._control.checks.append(look)

    def _shut(self, started: float) -> None:
        if self._run.shutdown is not None or not self._run.fired_at:
            return
        self._run.shutdown = max(0.0, self._control.now - started)
        self._run.shutdown_steps = self._control.step - self._run.fired_at[0][0]
        limit = self._shutdown_limit
        if limit is not None and self._run.shutdown > limit:
            took = f"ended {self._run.shutdown:g} virtual seconds after the cancel, allowed are {limit:g}"
            self._control.violate("shutdown", took)

    def _crash(self, number: int) -> None:
        self._run.frozen = states_of(self._durables)
        self._crashed = True
        self._run.fired.append(number)
        self._run.fired_at.append((self._control.step, self._control.now, self._control.current_label()))
        self._control.delivered(number)
        self._control.everything.cancel(reason="youyou.testing: crash")

    def _failed(self, what: str, error: BaseException) -> None:
        leaves = [leaf for leaf in leaves_of(error) if not self._allowed(leaf)]
        if leaves:
            names = tuple(sorted(type(leaf).__name__ for leaf in leaves))
            text = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves)
            trace = "".join(traceback.format_exception(leaves[0], chain=False))
            self._control.violate("error", f"{what} {text}", names, trace)

    def _allowed(self, leaf: BaseException) -> bool:
        if isinstance(leaf, self._limits.allow):
            return True
        if isinstance(leaf, KeyboardInterrupt) and any(i.what == "ctrl-c" for i in self._attempt.injections):
            return True
        cause: BaseException | None = leaf
        while cause is not None:
            if any(cause is injected for injected in self._plan.raised):
                return True
            cause = cause.__cause__
        return False

    async def _main(self, scenario: Scenario) -> None:
        self._helped = trio.Event()
        control = self._control
        with control.everything:
            try:
                with self._root:
                    control.begin()
                    await scenario(self)
            except (trio.Cancelled, Unstoppable):
                raise
            except BaseException as error:
                if not self._crashed:
                    self._failed("the scenario raised", error)
            while control.helpers:
                self._helped = trio.Event()
                await self._helped.wait()
            control.end()
            self._root_ended()
            if control.stopped is None and not self._crashed:
                await self._check_end()
        control.end()

    def _root_ended(self) -> None:
        if self._crashed:
            return
        if self._run.fired_at and self._control.stopped is None and self._first_target_is_timed():
            self._shut(self._run.fired_at[0][1])
        for key in list(self._hopes):
            self._hopes[key]()
        for key in self._hopes:
            self._control.violate("eventually", f"{key.partition(' ')[2]}: never became true")
        for name in hooks.open_generators(self._control.loop):
            self._control.violate("leak", f"async generator {name} was left open")
        for task in self._control.loop.tasks & self._control.tasks.keys():
            if task is not trio.lowlevel.current_task():
                self._control.violate("leak", f"task {self._control.name_of(task)} outlived the scenario")

    def _first_target_is_timed(self) -> bool:
        first = self._attempt.injections[self._run.fired[0]]
        return first.kind == "cancel" and not isinstance(self._targets.get(first.what), _Action)

    async def _check_end(self) -> None:
        for name, check in self._ends:
            try:
                result = check()
                if inspect.isawaitable(result):
                    result = await result
                problem = None if result is None or result else f"is {result!r}"
            except trio.Cancelled:
                raise
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            if problem is not None:
                self._control.violate("at_end", f"{name}: {problem}", ("AssertionError",))


class _Plan(FaultPlan):
    """The faults of a simulated run: those of the attempt, chosen ones in chaos, and death after a crash."""

    def __init__(self, sim: Simulation, control: Control) -> None:
        super().__init__()
        self._sim, self._control, self._run = sim, control, sim._run
        self._planned = {i.at: (n, i.what) for n, i in enumerate(sim._attempt.injections) if i.kind == "fault"}

    async def perform(self, port: str, method: str, invoke: Callable[[], Awaitable[Any]]) -> Any:
        if self._sim._crashed:
            raise Crashed(f"{port}.{method} after the crash")
        return await super().perform(port, method, invoke)

    def fault_for(self, call: PortCall) -> Fault | None:
        self._run.calls.append(call)
        self._run.call_steps.append((self._control.step, self._control.now))
        if call.number in self._planned:
            number, mode = self._planned[call.number]
            self._run.fired.append(number)
            self._run.fired_at.append((self._control.step, self._control.now, self._control.current_label()))
            self._control.delivered(number, trio.lowlevel.current_task())
            return self._fault(mode, call)
        chaos = self._sim._attempt.chaos
        if chaos is not None and self._control.now < chaos.heal:
            chosen = self._sim.choose(1 + len(chaos.modes))
            if chosen:
                return self._fault(chaos.modes[chosen - 1], call, max(0.001, chaos.heal - self._control.now))
        return None

    def latency(self, call: PortCall) -> float:
        return LATENCIES[self._sim.choose(len(LATENCIES))] if self._sim._attempt.latency else 0.0

    def _fault(self, mode: Any, call: PortCall, seconds: float | None = None) -> Fault:
        if mode == "hang" and seconds is not None:
            mode = "slow"
        fault = Fault(mode) if seconds is None else Fault(mode, seconds=seconds)
        make = self._sim._limits.error
        return fault if make is None or mode == "dies" else attrs.evolve(fault, error=lambda: make(fault, call))


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The exceptions inside nested groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves_of(inner)
    else:
        yield error


def _describe(check: Callable[[], object]) -> str:
    code = getattr(check, "__code__", None)
    name = getattr(check, "__name__", repr(check))
    return f"{name} (line {code.co_firstlineno})" if code is not None else str(name)


def _problem(check: Callable[[], object]) -> str | None:
    try:
        result = check()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if result is None or result else f"is {result!r}"


def run_attempt(
    scenario: Scenario, attempt: Attempt, limits: Limits, watch: LeakWatch, recorder: Any = None
) -> Run:
    """Run ``scenario`` once. Must not be called from inside a Trio run: see `outside_trio`."""
    hooks.install()
    sim = Simulation(attempt, limits, recorder)
    control, run = sim._control, sim._run
    before, hooks.current.scheduler = hooks.current.scheduler, control
    try:
        trio.run(
            sim._main,
            scenario,
            clock=control.clock,
            instruments=[control],
            restrict_keyboard_interrupt_to_checkpoints=True,
            strict_exception_groups=True,
        )
    except BaseException as error:
        _outcome_of_trio(sim, error)
    finally:
        hooks.current.scheduler = before
        hooks.current_check.is_simulated = None
    run.seconds = control.now
    run.decisions, run.deviations = control.choices.count, control.choices.deviations
    run.recording = recorder
    del sim, control
    for leak in watch.collect():
        if not run.violations or run.violations[0].kind not in ("stuck", "engine"):
            run.violations.append(Violation("leak", leak, len(run.steps)))
    return run


def _outcome_of_trio(sim: Simulation, error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt) and any(i.what == "ctrl-c" for i in sim._attempt.injections):
        return
    if sim._control.dead:
        return
    sim._failed("the run raised", error)


def outside_trio(work: Callable[[], T]) -> T:
    """Do ``work`` in this thread, or in another one if Trio is running in this one (which waits meanwhile)."""
    if not trio.lowlevel.in_trio_run():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def elsewhere() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere, name="youyou.testing")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

"""Steers and watches one run from inside Trio: counts steps, orders tasks, injects, checks, and stops what cannot end.

An instrument of Trio's run loop. Trio drops an instrument that raises without a word, so every entry point catches its
own errors and turns them into a violation.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs
import outcome
import trio
import trio.testing

from ..process import signals, trio_internals
from ..process.leaks import Leak
from ..process.locations import NOWHERE, Location, arguments_of, chain_of, location_of, wait_of
from ..process.threads import TIMER, Baton
from .attempt import Attempt, Delivery, Injection, Limits, Run, Severity, Step, TaskSeen, Violation
from .deliveries import Deliveries
from .schedule import Choices, Recorded
from .swallowing import Swallowing

Task = trio.lowlevel.Task
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
NOBODY = TaskSeen(-1, "", "", None, 0)
_IDLE_PASSES = 3
_STRANGERS, _MOMENT = 500, 0.004
"""How often, and how long each time, a program that only a thread of its own can wake is waited for."""
_LAST_STEPS = 500
_step = tuple.__new__
"""Makes a `Step` without a call in Python: there is one for each step of each run."""


class Unstoppable(BaseException):
    """Ends a program that swallows every cancel: thrown into its tasks, and at the very last into Trio itself."""


@attrs.define(eq=False, slots=False)
class Control(trio.abc.Instrument):
    """One run, from the inside."""

    attempt: Attempt
    limits: Limits
    run: Run
    fire: Callable[[Injection, int], None]
    checks: list[Callable[[], None]] = attrs.field(factory=list)
    recorder: Any = None
    everything: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    tasks: dict[Task, TaskSeen] = attrs.field(factory=dict)
    places: dict[int, Location] = attrs.field(factory=dict)
    helpers: dict[Task, trio.CancelScope] = attrs.field(factory=dict)
    step: int = 0
    now: float = 0.0
    watching: bool = False
    stopped: int | None = None
    dead: bool = False
    _idle: int = 0
    _strangers: int = 0
    _forced: int = 0
    _boundary: bool = True
    _counts: dict[str, int] = attrs.field(factory=dict)
    _lost: str | None = None
    _stepping: Task | None = None
    course: Sequence[Step] = ()
    """Steps that a run without the last injection has taken: up to that one they are the same, places included."""

    def __attrs_post_init__(self) -> None:
        self.choices: Choices = Choices(self.attempt.order.source(), self.limits.noting)
        self.clock: trio.testing.MockClock = trio_internals.virtual_clock()
        self._before: dict[int, list[int]] = {}
        self._after: dict[int, list[int]] = {}
        for number, injection in enumerate(self.attempt.injections):
            if injection.kind != "fault" and injection.when != "during":
                points = self._before if injection.when == "before" else self._after
                points.setdefault(injection.at, []).append(number)
        self._awaited: set[tuple[str, int]] = set()
        self._under_way = Deliveries()
        self._swallowing = Swallowing(self._swallowed)
        self.threads: Baton = Baton(self, self._thread_lost)
        self._recorded = isinstance(self.choices.source, Recorded)

    def begin(self) -> None:
        """Count from here on; the current task is the scenario's first."""
        self.loop: Any = trio_internals.runner()
        trio_internals.refuse_real_io(self.loop, self.tasks.__contains__)
        self.watching = True
        self._register(trio.lowlevel.current_task(), "main")
        self.step, self._boundary = 1, False
        self.run.boundaries.append(1)
        if self.recorder is not None:
            self.recorder.begin(self)
        self._inject(self._before.get(1, []))

    def scenario_over(self, *, failed: bool) -> None:
        """The scenario has returned, or ``failed`` to."""
        if self.stopped is None:
            self._swallowing.over(trio.lowlevel.current_task(), failed=failed)

    def end(self) -> None:
        """The scenario is over; only checks follow."""
        self.watching = False
        self._boundary = False

    def current_label(self) -> str:
        """The task that runs at this moment, or the run loop."""
        task = trio_internals.running_task()
        return self.tasks[task].label if task in self.tasks else "the run loop"

    def name_of(self, task: Task) -> str:
        """What to call ``task`` in a report."""
        seen = self.tasks.get(task)
        return seen.label if seen is not None else task.name

    def expect(self, number: int, reason: str | None, scope: trio.CancelScope | None = None) -> None:
        """Injection ``number`` is done now: look for a `trio.Cancelled` with ``reason``, or for any."""
        self.note_fired(number)
        self._under_way.expect(number, reason, self.tasks, scope)
        if reason is None:
            self.run.actions.append(number)

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self.clock.current_time()

    def start_thread(
        self, work: Callable[[], Any], deliver: Callable[[outcome.Outcome[Any]], object], name: str
    ) -> None:
        """Run ``work`` in a thread that holds the baton."""
        self.threads.start(work, deliver, name)

    def before_io_wait(self, timeout: float) -> None:
        """Let threads go on whose wait is over, before time does."""
        if self.threads.ready or self.threads.timers:
            try:
                self.threads.run_ready(self.loop)
            except BaseException as error:  # noqa: ASYNC103  # Trio drops an instrument that raises
                self._engine_error(error)

    def _thread_lost(self, message: str) -> None:
        self.stop("stuck", message)

    def progress(self) -> object:
        """Changes while the run goes on."""
        return (self.step, self.now, self.threads.resumed)

    def step_lost(self, words: str) -> None:
        """Told in another thread that a step does not come back."""
        self._lost = f"{self.current_step()}: {words}"

    def current_step(self) -> str:
        """The task whose step this is, for another thread."""
        return "the run loop" if self._stepping is None else f"in {self.tasks[self._stepping].label}"

    def tell_lost(self) -> None:
        """It has come back, thrown out: that was the end of the run."""
        if self._lost is not None:
            words, self._lost = self._lost, None
            self.stop("stuck", words)

    def sends_itself_a_signal(self) -> None:
        """Do not take it for one from outside."""
        signals.sent_to_itself()

    def deadly_signal(self, name: str) -> None:
        """The process would have ended here."""
        self.violate("error", f"{name} came when nobody received it: its default action ends the process", (name,))

    def sleep(self, seconds: float) -> None:
        """A blocking sleep in a task: time passes, and no other task runs meanwhile."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self.clock.jump(seconds)

    # Called by Trio.

    def order(self, batch: list[Task]) -> None:
        """Put the runnable tasks in order; Trio takes them from the end."""
        if self.dead:
            raise Unstoppable
        now = self.clock.current_time()
        if now != self.now:
            self.now, self._boundary = now, True
            if now > self.limits.max_seconds and self.stopped is None:
                self.stop("time", f"still running after {self.limits.max_seconds:g} virtual seconds")
        if len(batch) < 2:
            if batch:
                self._idle = 0
            else:
                self._look_for_deadlock()
            return
        if self.attempt.fairness == "none":
            self._defer(batch)
            return
        if not self.watching:
            batch.reverse()
            return
        keys = [self.tasks[t].index if t in self.tasks else -1 for t in batch]
        batch[:] = [batch[i] for i in reversed(self.choices.arrange(keys))]
        if self._recorded:
            self._note_decided(batch)

    def _defer(self, batch: list[Task]) -> None:
        """Run only one of the runnable tasks of the program, and all others another time."""
        ours = [t for t in batch if t in self.tasks]
        if len(ours) > 1:
            first = ours[self.choices.choose(len(ours), [self.tasks[t].index for t in ours])]
            later = [t for t in ours if t is not first]
            if self._recorded:
                self._note_decided(ours)
            batch[:] = [t for t in batch if t not in later]
            trio_internals.runnable(self.loop).extend(later)
        batch.reverse()

    def _note_decided(self, tasks: list[Task]) -> None:
        """Put into words whom the recorded decisions since the last time have chosen."""
        for number, (options, key) in self.choices.chosen.items():
            if number not in self.run.decided:
                chosen = next((t for t in tasks if key is not None and self.tasks.get(t, NOBODY).index == key), None)
                # A system task of Trio's own, such as that of `run_sync_soon`, is chosen like any other.
                known = None if chosen is None else self.tasks.get(chosen)
                words = f"{known.label}({arguments_of(chosen)})" if chosen is not None and known is not None else ""
                self.run.decided[number] = (self.step, f"{options} {words}")

    def task_spawned(self, task: Task) -> None:
        """Give a new task its name."""
        if self.watching and task.name != TIMER:
            self._register(task, task.name.rpartition(".")[2].strip(">") or task.name)

    def before_task_step(self, task: Task) -> None:
        """Count the step, inject before it, see a cancel arrive."""
        if task not in self.tasks or not self.watching:
            return
        self._stepping = task
        try:
            self.step += 1
            if self._boundary:
                self.run.boundaries.append(self.step)
                self._boundary = False
            if self._forced > 1:
                trio_internals.throw_into(task, Unstoppable())
            if self.step in self._before:
                self._inject(self._before[self.step])
            if self.stopped is None:
                if (number := self._under_way.behind(task)) is not None:
                    self.delivered(number, task)
                self._swallowing.before(task)
            if self.recorder is not None:
                self.recorder.before(self, task)
        except BaseException as error:  # noqa: ASYNC103  # Trio drops an instrument that raises
            self._engine_error(error)

    def after_task_step(self, task: Task) -> None:
        """Note where the task waits now, check what must always hold, inject after the step."""
        seen = self.tasks.get(task)
        if seen is None or not self.watching:
            self._boundary = True
            return
        self._stepping = None
        try:
            if self._lost is not None:
                self.tell_lost()
            step = self._known_step(seen.index) if self.course else None
            if step is None:
                location = location_of(task)
                if (new := (seen.name, id(location))) not in self._awaited:
                    self._awaited.add(new)
                    self.run.awaited.update((place.file, place.line) for place in chain_of(task) if place.file)
                step = _step(Step, (seen.index, location, self.now))
            self.places[seen.index] = step[1]
            self.run.steps.append(step)
            if self.recorder is not None:
                self.recorder.after(self, task)
            if self._swallowing.thrown and self.stopped is None:
                self._swallowing.after(task, finished=step[1] is NOWHERE)
            for check in self.checks:
                check()
            if self.step in self._after:
                self._inject(self._after[self.step])
            if self.stopped is None:
                if self.step > self.limits.max_steps:
                    self.stop("steps", f"still running after {self.limits.max_steps} steps: does a loop never end?")
            elif self.step > self.stopped + _LAST_STEPS:
                self._force()
        except BaseException as error:  # noqa: ASYNC103  # Trio drops an instrument that raises
            self._engine_error(error)

    def _known_step(self, index: int) -> Step | None:
        """The step just taken, if the other run has taken it as well; None from the first difference on."""
        if self.step <= len(self.course):
            step = self.course[self.step - 1]
            if step[0] == index and step[2] == self.now:
                return step
        self.course = ()
        return None

    def look(self) -> None:
        """See whether what must always hold does."""
        for check in self.checks:
            check()

    def _look_for_deadlock(self) -> None:
        """No task can run. If nothing is left to wait for, nothing can ever happen again."""
        if not hasattr(self, "loop") or not trio_internals.is_idle(self.loop):
            self._idle = 0
            return
        self._idle += 1
        if self._idle < _IDLE_PASSES:
            return
        self._idle = 0
        try:
            if self.stopped is None and self._strangers < _STRANGERS and (others := self.threads.strangers()):
                # Only they can wake the program, and nobody knows when: in real time.
                self._strangers += 1
                others[0].join(_MOMENT)
            elif self.stopped is None:
                self._deadlock()
            else:
                self._force()
        except BaseException as error:  # noqa: ASYNC103  # Trio drops an instrument that raises
            self._engine_error(error)

    # Stopping.

    def stop(self, kind: str, message: str, leaves: tuple[str, ...] = ()) -> None:
        """Record a violation and end the run."""
        self.violate(kind, message, leaves)
        if self.stopped is None:
            self.stopped = self.step
            self.everything.cancel(reason="youyou.testing: the run is over")
            for scope in self.helpers.values():
                scope.cancel(reason="youyou.testing: the run is over")
            self.threads.kill()

    def violate(
        self,
        kind: str,
        message: str,
        leaves: tuple[str, ...] = (),
        trace: str = "",
        severity: Severity = "failure",
    ) -> None:
        """Record a violation; the run goes on."""
        message = _ADDRESS.sub("0x…", message)
        self.run.violations.append(Violation(kind, message, self.step, leaves, trace, severity))

    def leaked(self, leak: Leak) -> None:
        """Record something left behind, unless its name is allowed."""
        found = leak_violation(leak, self.limits, self.step)
        self.run.violations += [found] if found is not None else []

    def _swallowed(self, task: Task, where: Location) -> None:
        message = f"a Cancelled was swallowed in {self.name_of(task)} at {where}, and the task went on"
        if all(v.leaves != (str(where),) for v in self.run.violations if v.kind == "swallowed"):
            self.violate("swallowed", message, (str(where),), severity=self.limits.swallowed)

    def _deadlock(self) -> None:
        alive = [t for t in self.tasks if t in trio_internals.alive(self.loop)]
        self.run.waits = [wait_of(task, self.name_of, alive) for task in alive]
        who = "1 task waits" if len(alive) == 1 else f"{len(alive)} tasks wait"
        who = "; ".join([who, *self.threads.waiting()])
        if others := ", ".join(thread.name for thread in self.threads.strangers()):
            who += f"; unless a thread wakes it: {others} has been running for {_STRANGERS * _MOMENT:g} s meanwhile"
        places = tuple(sorted({f"{w.location} in {w.call}" for w in self.run.waits}))
        self.stop("deadlock", f"nothing can happen any more, and {who}", places)

    def _force(self) -> None:
        """The program was told to end and did not: open its shields, and if that does not help give the run up."""
        self._forced += 1
        if self._forced == 1:
            waits = [wait_of(task, self.name_of) for task in self.tasks if task in trio_internals.alive(self.loop)]
            # Of a program that hangs already this says nothing new.
            hangs = any(v.kind in ("deadlock", "steps", "time") for v in self.run.violations)
            message = "does not end when cancelled: " + "; ".join(map(str, waits))
            self.violate("stuck", message, severity="note" if hangs else "failure")
            for task in trio_internals.alive(self.loop) & self.tasks.keys():
                trio_internals.unshield(task)
        elif self._forced == 3:
            for task in trio_internals.alive(self.loop) & self.tasks.keys():
                trio_internals.leak_on_purpose(task.coro)
            self.dead = True
        self.stopped = self.step

    def _engine_error(self, error: BaseException) -> None:
        if self._lost is not None:
            self.tell_lost()
            return
        text = "".join(traceback.format_exception(error))
        self.run.violations.append(Violation("engine", f"the engine failed: {error!r}", self.step, (), text))
        self.stopped = self.step
        self.everything.cancel(reason="youyou.testing: the engine failed")

    # Injecting.

    def _inject(self, numbers: list[int]) -> None:
        for number in numbers:
            self.fire(self.attempt.injections[number], number)

    def delivered(self, number: int, task: Task | None = None, chain: tuple[Location, ...] = ()) -> None:
        """Injection ``number`` took effect in ``task``, which is suspended unless a ``chain`` of calls is given."""
        seen = self.tasks.get(task) if task is not None else None
        label, name, where = ("", "", NOWHERE) if seen is None else (seen.label, seen.name, NOWHERE)
        if chain:
            where = chain[-1]
        elif seen is not None and task is not None and seen.index in self.places:
            # What has not begun waits nowhere yet.
            where, chain = self.places[seen.index], chain_of(task)
        self.run.deliveries.append(Delivery(number, self.step, self.now, label, name, where, chain))

    def note_fired(self, number: int) -> None:
        """Injection ``number`` was done, at this moment."""
        if number == len(self.attempt.injections) - 1:
            self.course = ()
        self.run.fired.append(number)
        self.run.fired_at.append((self.step, self.now, self.current_label()))

    def forget(self) -> None:
        """Let go of the program, so that what it dropped is seen as garbage now and not with a later run."""
        self.tasks.clear()
        self._under_way.forget()
        self._swallowing.forget()
        self.helpers.clear()
        self.checks.clear()

    def no_effect(self, number: int) -> None:
        """Injection ``number`` said itself that it changed nothing."""
        self._under_way.expect_none(number)
        self.run.actions.remove(number)

    def _register(self, task: Task, name: str) -> None:
        if "0x" in name:
            # A task that runs an object's call is named by its address, which is another one in each run.
            name = _ADDRESS.sub("0x…", name)
        count = self._counts[name] = self._counts.get(name, 0) + 1
        nursery = task.parent_nursery
        parent = self.tasks.get(nursery.parent_task) if nursery is not None else None
        label = name if count == 1 else f"{name}#{count}"
        above = parent.index if parent is not None else None
        seen = TaskSeen(len(self.tasks), label, name, above, self.step, arguments_of(task))
        self.tasks[task] = seen
        self.run.tasks.append(seen)


def leak_violation(leak: Leak, limits: Limits, step: int) -> Violation | None:
    """What ``leak`` is in a report; None if its name is allowed."""
    if any(fnmatchcase(leak.name, pattern) for pattern in limits.allow_leaks):
        return None
    return Violation("leak", leak.message, step, (leak.name,), severity="note" if leak.harmless else "failure")

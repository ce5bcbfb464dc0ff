"""Run a scenario once, in its own Trio loop, and hand back everything that was seen."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import trio

from ..disk import files
from ..process import threads, trio_internals
from ..process.ambient import Ambient, Seeded
from ..process.leaks import LeakWatch, left_open
from ..process.signals import SignalGuard
from ..process.watchdog import StepKilled, Watchdog
from ..process.watchdog import current as watchdogs
from .attempt import Attempt, Limits, Run, Step, Violation
from .control import Unstoppable, leak_violation
from .simulation import Scenario, Simulation

T = TypeVar("T")


def run_attempt(
    scenario: Scenario,
    attempt: Attempt,
    limits: Limits,
    watch: LeakWatch,
    recorder: Any = None,
    course: Sequence[Step] = (),
) -> Run:
    """Run ``scenario`` once. Must not be called from inside a Trio run: see `outside_trio`.

    ``course``: the steps of the same attempt without its last injection, if it was run; they are not looked at again.
    """
    trio_internals.install()
    threads.install()
    sim = Simulation(attempt, limits, recorder)
    control, run = sim._control, sim._run
    control.course = course
    before, trio_internals.current.scheduler = trio_internals.current.scheduler, control
    seeded = Seeded(attempt.seed)
    seeded.__enter__()
    watchdog = watchdogs[-1] if watchdogs else None
    try:
        if watchdog is not None:
            watchdog.watch(control.progress, control.step_lost)
        with files.watching():
            trio.run(
                _main,
                sim,
                scenario,
                watch,
                clock=control.clock,
                instruments=[control],
                restrict_keyboard_interrupt_to_checkpoints=True,
                strict_exception_groups=True,
            )
    except BaseException as error:  # noqa: ASYNC103  # judged, and raised again if a person pressed Ctrl-C
        _came_out(sim, error)
    finally:
        if watchdog is not None:
            watchdog.rest()
        trio_internals.current.scheduler = before
        seeded.__exit__()
        trio_internals.current_check.is_simulated = None
        sim._close()
        control.threads.finish()
    control.tell_lost()
    sim._targets.never_ended()
    if sim._interrupted:
        raise KeyboardInterrupt
    run.seconds = control.now
    run.decisions, run.deviations = control.choices.count, control.choices.deviations
    run.options = control.choices.options
    run.asides = {number for number, (_, key) in control.choices.chosen.items() if key is None}
    run.recording = recorder
    control.forget()
    del sim, control
    # What a crash or a killed program leaves behind says nothing.
    leaks, silent = watch.collect(), run.frozen or any(v.kind in ("stuck", "engine") for v in run.violations)
    for leak in () if silent else leaks:
        found = leak_violation(leak, limits, len(run.steps))
        run.violations += [found] if found is not None else []
    run.violations.sort(key=_weight)
    return run


def _weight(violation: Violation) -> tuple[bool, int]:
    """What the scenario itself promised comes first, what was left behind last."""
    kind = violation.kind
    own = ("nondeterminism", "engine", "always", "at_end", "eventually", "shutdown")
    return violation.severity == "note", 0 if kind in own else 2 if kind in ("leak", "swallowed") else 1


async def _main(sim: Simulation, scenario: Scenario, watch: LeakWatch) -> None:
    control = sim._control
    watch.observe_generators()
    with control.everything:
        try:
            with sim._targets.root:
                control.begin()
                await scenario(sim)
            control.scenario_over(failed=False)
        except (trio.Cancelled, Unstoppable):
            raise
        except BaseException as error:
            control.scenario_over(failed=True)
            sim._failed("the scenario raised", error)
        await sim._targets.ended()
        if not sim._plan.dead:
            control.look()
        control.end()
        if control.stopped is None and not sim._plan.dead:
            sim._targets.time_root()
            sim._oracles.finish_pending()
            await sim._oracles.end()
            _look_for_leftovers(sim)
    control.end()


def _look_for_leftovers(sim: Simulation) -> None:
    control = sim._control
    for generator in trio_internals.open_generators(control.loop):
        control.leaked(left_open(generator))
    for task in control.tasks:
        if task in trio_internals.alive(control.loop) and task is not trio.lowlevel.current_task():
            control.violate("leak", f"task {control.name_of(task)} outlived the scenario", (control.tasks[task].name,))


def _came_out(sim: Simulation, error: BaseException) -> None:
    """Trio itself raised: a Ctrl-C too late for any task, the end of an unstoppable program, or an accident."""
    if not sim._control.dead and not isinstance(error, Unstoppable | StepKilled):
        sim._failed("the run raised", error)


@contextmanager
def prepared() -> Iterator[LeakWatch]:
    """What stands around all runs of a campaign: leaks are watched, clocks and randomness are the simulation's."""
    with LeakWatch() as watch, Ambient(), SignalGuard(), Watchdog():
        yield watch


def outside_trio(work: Callable[[], T]) -> T:
    """Do ``work`` in this thread, or in another one if Trio is running in this one (which waits meanwhile)."""
    trio_internals.check_trio()
    if not trio.lowlevel.in_trio_run():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def elsewhere() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:  # noqa: ASYNC103  # raised again by the thread that waits
            errors.append(error)

    thread = threading.Thread(target=elsewhere, name="youyou.testing")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

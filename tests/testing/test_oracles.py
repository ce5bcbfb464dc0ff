"""Each promise a scenario can make is noticed when it is broken, and only then."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from youyou.testing import Simulation, sweep
from youyou.testing.report.tokens import bare


def kinds(scenario, **options) -> list[str]:
    """The kinds of failure of the undisturbed run."""
    return [f.kind for f in sweep(scenario, cancel=None, **options).failures]


def test_checks_after_every_step_stop_the_run_at_the_first_violation():
    """`always` names the step after which it was broken, though all is well again later."""

    async def scenario(sim: Simulation) -> None:
        opened = []
        sim.always(lambda: len(opened) < 2, "at most one open")
        opened += [1, 2]
        await trio.sleep(1)
        opened.clear()
        await trio.sleep(1)

    report = sweep(scenario, cancel=None)

    assert ("always", 1) == (report.failures[0].kind, report.failures[0].step)
    assert "at most one open" in report.failures[0].message


def test_what_follows_the_last_await_is_a_step_too():
    """`always` also looks once the scenario is over, returned or cancelled: nobody waits, but something changed."""

    async def scenario(sim: Simulation) -> None:
        free = [1]
        sim.always(lambda: len(free) < 2, "one place")
        try:
            await trio.sleep(1)
        finally:
            free.append(2)

    report = sweep(scenario, cancel=None)

    assert ("always", 2) == (report.failures[0].kind, report.failures[0].step)


def test_a_check_may_raise_an_assertion_error():
    """The words of the assertion are in the report."""

    async def scenario(sim: Simulation) -> None:
        def look() -> None:
            assert sim.now < 1, "too late"

        sim.always(look)
        await trio.sleep(2)
        await trio.sleep(2)

    assert "too late" in sweep(scenario, cancel=None).failures[0].message


def test_checks_at_the_end_may_be_async():
    """An async check is awaited after the scenario, whatever became of it."""

    async def scenario(sim: Simulation) -> None:
        async def look() -> bool:
            await trio.sleep(1)
            return False

        sim.at_end(look)
        await trio.sleep(1)

    assert ["at_end"] == kinds(scenario)


@pytest.mark.parametrize(("takes", "expected"), [(2, []), (20, ["eventually"])])
def test_a_hope_must_come_true_in_time(takes, expected):
    """`eventually(within=)` is broken as soon as the time is over."""

    async def scenario(sim: Simulation) -> None:
        done: list[int] = []
        sim.eventually(lambda: done, "done", within=10)
        await trio.sleep(takes)
        done.append(1)
        await trio.sleep(30)

    assert expected == kinds(scenario)


def test_a_hope_that_never_comes_true_is_a_failure():
    """`eventually` without a time is judged at the end."""

    async def scenario(sim: Simulation) -> None:
        sim.eventually(lambda: sim.now > 5, "late")
        await trio.sleep(1)

    assert ["eventually"] == kinds(scenario)


def test_a_deadlock_names_who_waits_where_and_for_whom():
    """Two tasks that hold each other's lock, and the nursery that waits for both."""

    async def scenario(sim: Simulation) -> None:
        locks = trio.Lock(), trio.Lock()

        async def take(first: trio.Lock, second: trio.Lock) -> None:
            async with first:
                await trio.sleep(1)
                async with second:
                    pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, *locks)
            nursery.start_soon(take, *reversed(locks))

    failure = sweep(scenario, cancel=None).failures[0]

    assert "deadlock" == failure.kind
    assert [("main", ("take", "take#2")), ("take", ("take#2",)), ("take#2", ("take",))] == [
        (wait.task, wait.holders) for wait in failure.waits
    ]
    assert "Lock.acquire" == failure.waits[1].call


@pytest.mark.parametrize(("tasks", "words"), [(0, "1 task waits"), (2, "3 tasks wait")])
def test_a_deadlock_is_all_that_is_reported_of_its_run(tasks, words):
    """That the kit then cancelled everything, in groups or not, is not a failure of the program."""

    async def scenario(sim: Simulation) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(trio.sleep_forever)
            if not tasks:
                await trio.sleep_forever()

    violations = sweep(scenario, cancel=None).failures[0].run.violations

    assert ["deadlock"] == [v.kind for v in violations]
    assert violations[0].message.endswith(words)


def test_a_cancel_that_only_arrives_because_the_run_was_stopped_was_not_delivered():
    """Shields that the kit opens to end a deadlock let the injected cancel in; that is not news of the program."""

    async def scenario(sim: Simulation) -> None:
        stop = trio.Event()

        async def service(*, task_status: trio.TaskStatus[None]) -> None:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
                task_status.started()
                await stop.wait()

        async with trio.open_nursery() as nursery:
            await nursery.start(service)
            stop.set()

    failure = sweep(scenario).failures[0]

    assert ("deadlock", "yy2-a1", "") == (failure.kind, bare(failure.token), failure.task)
    assert [("Nursery.start", ("service",)), ("Event.wait", ())] == [(w.call, w.holders) for w in failure.waits]


def test_a_deadlock_behind_a_shield_ends_too():
    """The run is over even if the program cannot be cancelled; that it cannot is told as well."""

    async def scenario(sim: Simulation) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep_forever()

    report = sweep(scenario, cancel=None)

    assert "deadlock" == report.failures[0].kind
    assert ["deadlock", "stuck"] == [v.kind for v in report.baseline.violations]


def test_a_program_that_swallows_everything_is_ended_by_force():
    """`except BaseException` around a loop cannot keep the engine from going on."""

    async def scenario(sim: Simulation) -> None:
        while True:
            with suppress(BaseException):
                await trio.sleep(1)

    assert ["steps"] == kinds(scenario, max_steps=50)


def test_too_much_virtual_time_is_a_failure():
    """A retry loop that only sleeps would never end."""

    async def scenario(sim: Simulation) -> None:
        for _ in range(1000):
            await trio.sleep(3600)

    assert ["time"] == kinds(scenario, max_seconds=86_400)


def test_a_coroutine_never_awaited_is_a_leak():
    """Found in the run in which it happened, with its name."""

    async def scenario(sim: Simulation) -> None:
        async def forgotten() -> None: ...

        forgotten()
        await trio.sleep(1)

    report = sweep(scenario, cancel=None)

    assert "leak" == report.failures[0].kind
    assert "forgotten" in report.failures[0].message


def test_a_coroutine_dropped_in_a_cycle_is_a_leak_of_its_own_run():
    """Only the garbage collector finds it, and it is asked after every run."""

    async def scenario(sim: Simulation) -> None:
        async def forgotten() -> None: ...

        ring: list[object] = [forgotten()]
        ring.append(ring)
        await trio.sleep(1)

    report = sweep(scenario, cancel=None)

    assert ["leak"] == [v.kind for v in report.baseline.violations]


@pytest.mark.parametrize("kept", [True, False])
def test_a_generator_left_open_is_a_leak(kept):
    """Whether something still refers to it, or the garbage collector had to close it."""

    async def scenario(sim: Simulation) -> None:
        async def numbers():
            with trio.testing.assert_checkpoints():
                for number in range(3):
                    await trio.sleep(1)
                    yield number

        generator = numbers()
        async for _ in generator:
            break
        if not kept:
            del generator
        await trio.sleep(1)

    report = sweep(scenario, cancel=None)

    assert "leak" == report.failures[0].kind
    assert "numbers" in report.failures[0].message


def test_a_system_task_that_outlives_the_scenario_is_a_leak():
    """Only system tasks can; nurseries see to the others."""

    async def scenario(sim: Simulation) -> None:
        trio.lowlevel.spawn_system_task(trio.sleep_forever)
        await trio.sleep(1)

    assert ["leak"] == kinds(scenario)


def test_state_kept_between_runs_is_found_before_anything_else():
    """Two runs that should be the same differ: the report says where, and nothing is injected."""
    runs = []

    async def scenario(sim: Simulation) -> None:
        runs.append(1)
        await trio.sleep(1)
        if len(runs) % 2:
            await trio.sleep(1)
        await trio.sleep(2)

    report = sweep(scenario)

    assert ("nondeterminism", 0) == (report.failures[0].kind, report.planned)
    assert "step 2" in report.failures[0].message


def test_errors_in_nested_groups_count_by_their_leaves():
    """The same error is one kind of failure however deep the nurseries are; allowed ones are none."""

    async def scenario(sim: Simulation) -> None:
        async def fail() -> None:
            try:
                await trio.sleep(1)
            finally:
                raise OSError("gone")

        async with trio.open_nursery() as outer, trio.open_nursery() as inner:
            outer.start_soon(trio.sleep, 1)
            inner.start_soon(fail)

    assert ["error"] == kinds(scenario)
    assert [] == kinds(scenario, allow=(OSError,))


def test_random_and_time_of_a_simulation_are_the_same_every_time():
    """What `sim.random` and `sim.now` give does not make runs differ."""

    async def scenario(sim: Simulation) -> None:
        await trio.sleep(sim.random.random())
        await trio.sleep(sim.now)

    sweep(scenario, seed=7).assert_ok()

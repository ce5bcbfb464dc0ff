"""A sweep cancels at every moment and tells the outcome."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import trio
from youyou.testing import InjectedFault, Simulation, sweep
from youyou.testing.campaigns.campaign import Campaign
from youyou.testing.engine import control
from youyou.testing.engine.attempt import Attempt, Injection, Limits
from youyou.testing.engine.running import prepared
from youyou.testing.report.tokens import bare

SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()


async def relay(sim: Simulation) -> None:
    """Two tasks and a channel; nothing can go wrong."""
    send, receive = trio.open_memory_channel[int](1)

    async def produce() -> None:
        with send:
            for number in range(3):
                await send.send(number)
                await trio.sleep(1)

    async def consume() -> None:
        with receive:
            async for _ in receive:
                await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        nursery.start_soon(consume)


def test_a_cancel_also_comes_when_time_has_passed_and_nobody_has_run_yet():
    """Between a clock jump and the first step after it the world is neither as before nor as after."""

    async def scenario(sim: Simulation) -> None:
        done: list[float] = []

        async def sleeper() -> None:
            await trio.sleep(1)
            done.append(sim.now)

        async def waiter() -> None:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                assert done or sim.now < 1, "late, and the sleeper has not run"
                raise

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter)
            nursery.start_soon(sleeper)
            await trio.sleep(2)
            nursery.cancel_scope.cancel(reason="enough")

    report = sweep(scenario)

    assert ["yy2-b4"] == [bare(f.token) for f in report.failures]


def slots(*, kept: bool):
    """A scenario whose child gives its slot back on cancel only if ``kept`` is false."""

    async def scenario(sim: Simulation) -> None:
        taken: list[int] = []
        sim.at_end(lambda: taken == [], "every slot is given back")

        async def child() -> None:
            await trio.lowlevel.checkpoint()
            taken.append(1)
            if kept:
                await trio.sleep(1)
                taken.pop()
            else:
                try:
                    await trio.sleep(1)
                finally:
                    taken.pop()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    return scenario


def test_a_right_program_passes_with_every_step_cancelled():
    """Each step of each task is a point, and where something happens between two steps there are two points."""
    report = sweep(relay)

    report.assert_ok()
    steps = len(report.baseline.steps)
    assert steps + len(report.baseline.boundaries) == report.planned
    assert report.runs == report.planned + 2
    assert report.delivered + len(report.unresolved) == report.planned
    assert report.delivered > steps / 2


def test_a_slot_leak_in_a_child_is_found_with_the_first_step_at_which_it_happens():
    """The failure names the earliest point, the task and the await at which the cancel arrived."""
    report = sweep(slots(kept=True))

    failure = report.failures[0]
    assert not report.ok
    assert ("at_end", "child", "yy2-a3") == (failure.kind, failure.task, bare(failure.token))
    assert "await trio.sleep(1)" in SOURCE[failure.location.line - 1]
    with pytest.raises(AssertionError, match="every slot is given back"):
        report.assert_ok()


def test_the_mended_twin_of_the_slot_leak_passes():
    """A release in `finally` survives every cancel."""
    sweep(slots(kept=False)).assert_ok()


def test_a_scenario_that_fails_undisturbed_is_not_swept():
    """Without a good plain run nothing is injected, and the report says so."""

    async def broken(sim: Simulation) -> None:
        raise ValueError("no")

    report = sweep(broken)

    assert ("error", 0) == (report.failures[0].kind, report.planned)
    assert "ValueError: no" in str(report)


async def turns(sim: Simulation) -> None:
    """Two cancellable turns after a quiet beginning."""
    await trio.sleep(1)
    for _ in range(2):
        with sim.scope("turn"):
            await trio.sleep(1)
    await trio.sleep(1)


def test_a_named_scope_is_cancelled_only_while_it_is_there():
    """Points before the scope exists are not planned; those after its end are unresolved, never passed."""
    report = sweep(turns, cancel="turn")

    report.assert_ok()
    assert all(int(bare(token)[5:].partition(".")[0]) != 1 for token in report.unresolved if token.startswith("yy2-b"))
    assert 0 < len(report.unresolved) == report.planned - report.delivered
    assert report.delivered <= report.fired < report.planned


def test_a_target_that_never_exists_shows_nothing():
    """A misspelt name must not look like a success."""
    report = sweep(turns, cancel="trun")

    assert not report.ok
    assert (0, 0) == (report.delivered, len(report.failures))
    with pytest.raises(AssertionError, match="no injection took effect"):
        report.assert_ok()


async def one_call(sim: Simulation) -> None:
    """A port call that may fail, in a scope."""
    bank = sim.port("bank", Bank())
    with sim.scope("turn"), suppress(InjectedFault):
        await bank.pay()


class Bank:
    """Something to call."""

    async def pay(self) -> None:
        """Take a second."""
        await trio.sleep(1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cancel": "trun", "faults": ["raise_before"]}, "no injection took effect for cancel='trun'"),
        ({"faults": ["raise_before"], "ports": ["bnak"]}, "no call of port 'bnak' was there to break"),
        ({"cancel": None, "faults": ["cut"]}, "no call of a port was there to break"),
    ],
)
def test_each_thing_asked_for_must_take_effect(options, says):
    """One that never happened is not made up for by another that did."""
    sweep(one_call, cancel="turn", faults=["raise_before"], ports=["bank"]).assert_ok()

    report = sweep(one_call, **options)

    assert (False, ()) == (report.ok, report.failures)
    assert report.missed[0].startswith(says)
    assert report.missed[0].partition("'")[0] in report.to_html()
    with pytest.raises(AssertionError, match=says):
        report.assert_ok()


@pytest.mark.parametrize("options", [{"points": "every"}, {"points": 0}, {"schedules": 0}])
def test_a_number_of_nothing_is_refused(options):
    """A sweep that would try nothing is a mistake."""
    with pytest.raises(ValueError, match=next(iter(options))):
        sweep(one_call, **options)


def test_an_action_is_called_at_every_step():
    """A sync function that cancels something of its own is a target like a scope."""
    calls = []

    async def scenario(sim: Simulation) -> None:
        with trio.CancelScope() as scope:
            sim.action("stop", lambda: calls.append(sim.step) or scope.cancel(reason="stop"), done=lambda: ended)
            ended: list[int] = []
            await trio.sleep(1)
            await trio.sleep(1)
        ended.append(1)
        await trio.sleep(1)

    report = sweep(scenario, cancel="stop")

    report.assert_ok()
    assert {1, 2, 3} <= set(calls)
    assert 0 == report.worst_shutdown
    assert len(report.unresolved) > 0


def test_what_had_ended_before_it_was_stopped_took_no_time_to_end():
    """An action whose ``done`` is true at once is timed with 0 seconds, not with the time to the next step."""

    async def scenario(sim: Simulation) -> None:
        sim.action("stop", lambda: None, done=lambda: True)
        await trio.sleep(60)
        await trio.sleep(60)

    report = sweep(scenario, cancel="stop")

    assert ((), 0) == (report.failures, report.worst_shutdown)


@pytest.mark.parametrize("tightened", [False, True])
def test_a_timeout_that_would_have_come_anyway_is_no_delivery_of_an_action(tightened):
    """Trio ends sleeps and timeouts with `Cancelled` too; only one whose deadline the action changed counts."""

    async def scenario(sim: Simulation) -> None:
        stopped = []
        with trio.move_on_after(50) as scope:

            def stop() -> None:
                stopped.append(True)
                if tightened:
                    scope.deadline = sim.now + 1

            sim.action("stop", stop)
            await trio.sleep(2)
            await trio.sleep(60)
        for _ in stopped:
            await trio.lowlevel.checkpoint()

    report = sweep(scenario, cancel="stop")

    cancelled = {SOURCE[location.line - 1].strip() for _, location in report.coverage.cancelled}
    assert ({"await trio.sleep(2)", "await trio.sleep(60)"} if tightened else set()) == cancelled


def test_a_deadline_set_because_of_a_cancel_delivers_it_too():
    """A cancel that reaches a shielded task as the end of its grace is a cancel of the place where it waits."""

    async def scenario(sim: Simulation) -> None:
        shield = trio.CancelScope(shield=True)

        async def service() -> None:
            with shield:
                await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(service)
            try:
                with trio.move_on_after(9):
                    await trio.sleep(1)
            finally:
                shield.deadline = trio.current_time() + 1

    report = sweep(scenario)

    cancelled = {SOURCE[location.line - 1].strip() for _, location in report.coverage.cancelled}
    assert {"await trio.sleep(1)", "await trio.sleep_forever()"} == cancelled


def test_an_async_action_runs_beside_the_scenario_and_is_timed():
    """`await session.close()` from outside: started at each step, waited for, its duration is the shutdown."""

    async def scenario(sim: Simulation) -> None:
        closed = trio.Event()
        sim.shutdown_within(1)

        async def close() -> None:
            closed.set()
            await trio.sleep(3)

        sim.action("close", close)
        with trio.move_on_after(5):
            await closed.wait()

    report = sweep(scenario, cancel="close")

    assert 3 == report.worst_shutdown
    assert ["shutdown"] == [f.kind for f in report.failures]


def test_an_async_action_is_waited_for_even_if_it_begins_at_the_last_step():
    """The run is not over before everything injected is."""
    begun: list[int] = []
    ended: list[int] = []

    async def scenario(sim: Simulation) -> None:
        async def close() -> None:
            begun.append(1)
            await trio.sleep(5)
            ended.append(1)

        sim.action("close", close)
        await trio.sleep(1)

    report = sweep(scenario, cancel="close")

    assert (report.fired, report.fired) == (len(begun), len(ended))
    assert report.fired == report.planned == 2


def test_an_action_that_raises_is_a_failure():
    """What an action raises is not lost."""

    async def scenario(sim: Simulation) -> None:
        sim.action("stop", lambda: 1 / 0)
        await trio.sleep(1)

    report = sweep(scenario, cancel="stop")

    assert "ZeroDivisionError" in report.failures[0].message


def test_an_action_that_says_it_changed_nothing_is_unresolved():
    """Returning False means: not this time."""

    async def scenario(sim: Simulation) -> None:
        sim.action("stop", lambda: False)
        await trio.sleep(1)

    report = sweep(scenario, cancel="stop")

    assert (0, report.planned) == (report.delivered, len(report.unresolved))


def test_a_function_given_to_the_sweep_may_return_what_to_cancel():
    """``cancel=`` takes a function of the simulation; what it returns is cancelled, called or awaited."""
    scopes = []

    async def scenario(sim: Simulation) -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await trio.sleep(1)
            await trio.sleep(1)

    report = sweep(scenario, cancel=lambda sim: scopes[-1])

    report.assert_ok()
    assert report.delivered > 0


def test_ctrl_c_arrives_at_every_step_and_may_come_out():
    """KeyboardInterrupt out of the scenario is right when it was injected, and wrong to swallow nothing else."""
    report = sweep(relay, cancel="ctrl-c")

    report.assert_ok()
    assert report.delivered > 0


def test_a_second_cancel_strikes_during_the_clean_up_of_the_first():
    """``then`` finds clean-up that is safe against one cancel and not against two."""

    async def scenario(sim: Simulation) -> None:
        opened = []
        sim.at_end(lambda: opened == [], "closed")
        with sim.scope("turn"):
            opened.append(1)
            try:
                await trio.sleep(1)
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + 5) as cleaning:
                    sim.scope("clean-up", cleaning)
                    await trio.sleep(1)
                    opened.clear()

    assert sweep(scenario, cancel="turn").ok
    report = sweep(scenario, cancel="turn", then="clean-up")

    assert ["at_end"] == [f.kind for f in report.failures]
    assert 2 == len(report.failures[0].injected)


def test_long_runs_can_be_swept_by_location_or_by_sample():
    """A loop of many steps has few distinct points, and the bug is at one of them."""

    async def scenario(sim: Simulation) -> None:
        held = []
        sim.at_end(lambda: held == [], "nothing is held")
        for _ in range(60):
            await trio.lowlevel.checkpoint()
        held.append(1)
        await trio.lowlevel.checkpoint()
        held.clear()

    located, sampled = sweep(scenario, points="every-location"), sweep(scenario, points=7)

    assert ["at_end"] == [f.kind for f in located.failures]
    assert located.planned < 12
    assert 7 == sampled.planned


def test_pairs_are_sampled_from_all_single_injections():
    """So many runs more, each with two injections."""
    report = sweep(turns, cancel="turn", pairs=5, seed=3)

    assert report.runs == report.planned - 5 + 2


def test_more_schedules_mean_other_orders():
    """Every further schedule is swept whole, under another order of tasks."""
    once, thrice = sweep(relay), sweep(relay, schedules=3)

    assert thrice.ok
    assert thrice.runs > 2.5 * once.runs


def test_coverage_names_the_awaits_that_no_cancel_reached():
    """A shielded await is seen and never cancelled."""

    async def scenario(sim: Simulation) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 9):
            await trio.sleep(1)
        await trio.sleep(1)

    coverage = sweep(scenario).coverage

    shielded = next(n for n, line in enumerate(SOURCE, 1) if "+ 9):" in line) + 1
    assert [shielded] == [location.line for _, location in coverage.never]
    assert 2 == len(coverage.seen)


def test_the_time_a_cancel_takes_is_measured_and_limited():
    """Slow clean-up is a failure when the scenario promised a quick end."""

    async def scenario(sim: Simulation) -> None:
        sim.shutdown_within(5)
        try:
            await trio.sleep(1)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 60):
                await trio.sleep(7)

    report = sweep(scenario)

    assert (7, ["shutdown"]) == (report.worst_shutdown, [f.kind for f in report.failures])


def test_a_swallowed_cancel_that_never_ends_is_stopped():
    """A loop that eats every cancel is reported, and the sweep goes on."""

    async def scenario(sim: Simulation) -> None:
        while sim.now < 2:
            with suppress(trio.Cancelled):
                await trio.sleep(1)

    report = sweep(scenario)

    assert {"steps"} == {f.kind for f in report.failures}
    assert report.runs > 3


async def long_relay(sim: Simulation) -> None:
    """Two tasks that hand thirty values on."""
    send, receive = trio.open_memory_channel[int](0)

    async def produce() -> None:
        async with send:
            for number in range(30):
                await send.send(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        async for _ in receive:
            pass


def test_steps_that_the_undisturbed_run_has_taken_are_not_looked_at_again(monkeypatch):
    """Only those after what is injected are; and the runs are the same."""
    looked: list[object] = []
    original = control.location_of
    monkeypatch.setattr(control, "location_of", lambda task: (looked.append(task), original(task))[1])

    with prepared() as watch:
        campaign = Campaign(long_relay, Limits(), watch, "sweep")
        baseline = campaign.baseline(Attempt())
        attempt = Attempt(injections=(Injection("cancel", len(baseline.steps) - 5),))
        looked.clear()
        quick = campaign.try_out(attempt, baseline)
        few = len(looked)
        whole = campaign.run(attempt)

    assert few < 10 < len(looked) - few
    assert (quick.steps, quick.deliveries, quick.violations) == (whole.steps, whole.deliveries, whole.violations)

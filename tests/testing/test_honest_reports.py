"""A report never says more than its runs have shown, and nothing that they have shown is thrown away."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
import trio
import trio.lowlevel
from youyou.testing import Report, Simulation, examine, explore, hash_seed_divergence, replay, sweep
from youyou.testing.campaigns.campaign import Campaign
from youyou.testing.engine.attempt import Attempt
from youyou.testing.report.tokens import bare, encode

# Promises that the run itself decides about.


async def promised_too_late(sim: Simulation) -> None:
    """Written below the code, as one writes asserts."""
    held = ["x"]
    await trio.sleep(1)
    held.pop()
    sim.at_end(lambda: not held, "nothing is held")


def test_a_promise_that_no_cancelled_run_made_is_not_kept():
    """Nothing was shown, and the report says which promise came too late."""
    report = sweep(promised_too_late)

    assert not report.ok
    assert [] == list(report.failures)
    (missed,) = report.missed
    assert missed.startswith("promise 'nothing is held' (test_honest_reports.py:")
    assert missed.endswith("was not made in 2 of 2 disturbed runs; state it before the code it judges")
    assert missed in str(report)


@pytest.mark.parametrize("kind", ["always", "at_end", "eventually", "shutdown_within"])
@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("options", [{"cancel": "root"}, {"cancel": None, "faults": ("raise_before",)}])
def test_each_way_to_promise_can_come_too_late(kind, late, options):
    """Whatever is promised, and whatever is injected."""

    class Port:
        async def call(self) -> None:
            await trio.sleep(1)

    async def scenario(sim: Simulation) -> None:
        port = sim.port("port", Port())
        promise: Any = getattr(sim, kind)
        args = (3,) if kind == "shutdown_within" else (lambda: True, "it holds")
        if not late:
            promise(*args)
        await port.call()
        if late:
            promise(*args)

    report = sweep(scenario, **options)

    assert (not late, late) == (report.ok, bool(report.missed))


def test_a_promise_that_comes_late_in_some_runs_is_counted():
    """The report stays ok where others have judged, and names the promise in its one line."""

    async def scenario(sim: Simulation) -> None:
        await trio.sleep(1)
        sim.at_end(lambda: True, "all is well")
        await trio.sleep(1)

    report = sweep(scenario)

    assert report.ok
    assert "was not made in 3 of 4 disturbed runs" in report.missed[0]
    assert report.missed[0] in report.summary()
    assert report.missed[0] in report.to_html().replace("&#x27;", "'")


def test_a_promise_whose_words_change_is_told_by_its_line():
    """A number in the message is not another promise."""

    async def scenario(sim: Simulation) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(sim.step)
        sim.at_end(lambda: True, f"after {sim.step} steps")
        with trio.CancelScope() as scope:
            sim.scope("part", scope)
            await trio.sleep(1)
        sim.at_end(lambda: True, f"{scope.cancelled_caught}")

    assert () == sweep(scenario, cancel="part").missed


def test_a_promise_that_some_order_does_not_make_is_counted():
    """Other orders are judged by the same promises."""

    async def scenario(sim: Simulation) -> None:
        first: list[int] = []

        async def work(number: int) -> None:
            first.append(number)
            if first[0] == 0 and number == 0:
                sim.at_end(lambda: True, "the first one was first")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, 0)
            nursery.start_soon(work, 1)

    assert "was not made in 1 of 1 disturbed runs" in explore(scenario).missed[0]


def test_a_promise_that_only_some_recoveries_make_is_counted():
    """A recovery is judged by what the other recoveries promise."""

    async def scenario(sim: Simulation) -> None:
        done = sim.durable("done", [])
        await trio.sleep(1)
        done.append(1)
        await trio.sleep(1)

    async def recover(sim: Simulation) -> None:
        if sim.durable("done", []):
            sim.at_end(lambda: True, "what was done is done")
        await trio.lowlevel.checkpoint()

    report = sweep(scenario, cancel=None, crash=recover)

    assert (True, 1) == (report.ok, len(report.missed))


# Several things that one run shows.


def test_a_broken_promise_is_told_beside_a_leak():
    """The person's own promise comes first, what was left behind last."""

    sim_is_left: list[int] = []

    async def ticks():
        try:
            while True:
                await trio.sleep(0.1)
                yield 1
        finally:
            sim_is_left.append(1)

    async def scenario(sim: Simulation) -> None:
        money = {"sum": 10}
        sim.at_end(lambda: money["sum"] == 10, "money is kept")
        sim.keep = generator = ticks()  # type: ignore[attr-defined]
        async for _ in generator:
            money["sum"] -= 5
            await trio.sleep(1)
            money["sum"] += 5
            break
        await generator.aclose()

    report = sweep(scenario)

    assert ["at_end", "leak"] == [failure.kind for failure in report.failures]


def test_two_errors_of_one_type_at_two_places_are_two_failures():
    """Told apart by the place of the innermost raise."""

    async def scenario(sim: Simulation) -> None:
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            raise RuntimeError("bug 0") from None
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            raise RuntimeError("bug 1") from None

    report = sweep(scenario)

    assert [("the scenario raised RuntimeError: bug 0", 3), ("the scenario raised RuntimeError: bug 1", 1)] == [
        (failure.message, failure.cases) for failure in report.failures
    ]
    assert [3, 1] == [len(failure.tokens) for failure in report.failures]
    assert all(not replay(scenario, token).ok for failure in report.failures for token in failure.tokens)


def test_every_promise_that_a_run_breaks_is_told():
    """Not the first one only."""

    async def scenario(sim: Simulation) -> None:
        held = ["a", "b"]
        sim.at_end(lambda: "a" not in held, "a is given back")
        sim.at_end(lambda: "b" not in held, "b is given back")
        await trio.sleep(1)
        held.clear()

    found = sweep(scenario)

    assert ["a is given back: is False", "b is given back: is False"] == [f.message for f in found.failures]
    assert (2, 4) == (found.failing_runs, found.runs)


def test_deadlocks_at_two_places_are_two_failures():
    """Told apart by who waits where."""

    async def scenario(sim: Simulation) -> None:
        for _ in range(2):
            with sim.scope("part") as scope:
                await trio.sleep(1)
            if scope.cancelled_caught:
                if trio.current_time() < 1:
                    await trio.sleep_forever()
                await trio.Event().wait()

    assert ["deadlock", "deadlock"] == [failure.kind for failure in sweep(scenario, cancel="part").failures]


def test_at_most_twenty_tokens_of_a_kind_are_kept():
    """Enough to see where it fails, and no page of them."""

    async def scenario(sim: Simulation) -> None:
        left = [0]
        sim.at_end(lambda: left[0] == 0, "nothing is left")
        for _ in range(30):
            left[0] += 1
            await trio.sleep(1)
        left[0] = 0

    (failure,) = sweep(scenario).failures

    assert (60, 20, 20) == (failure.cases, len(failure.tokens), len(set(failure.tokens)))


def test_the_example_of_a_failure_is_a_telling_one():
    """A cancel before anything has happened is the example only if nothing else fails."""

    async def scenario(sim: Simulation) -> None:
        done: list[int] = []
        sim.at_end(lambda: done == [1, 2], "both are done")
        for number in (1, 2):
            await trio.sleep(1)
            done.append(number)

    assert "yy2-a1" == bare(sweep(scenario).failures[0].token)


# Tokens.


def held(extra: int, twist: int = 0):
    """A bug, behind ``extra`` steps."""

    async def scenario(sim: Simulation) -> None:
        found: list[int] = []
        sim.at_end(lambda: not found, "nothing is held")
        for _ in range(extra):
            await trio.sleep(1)
        await trio.sleep(1)
        found.append(1)
        await trio.sleep(1)
        found.pop()

    return scenario


def test_a_token_made_for_another_program_says_so():
    """One step was added above, and the bug is still there: the replay shows nothing, and is not ok."""
    token = sweep(held(0)).failures[0].token

    report = replay(held(1), token)

    assert not report.ok
    assert ("the program takes another course than the one this token was made for",) == report.missed
    assert not replay(held(0), token).missed


def test_a_token_survives_an_edit_that_changes_no_step():
    """The same steps in another file at other lines: the fingerprint knows texts, not numbers."""
    lines = ["import trio", "async def scenario(sim):", "    await trio.sleep(1)", "    await trio.sleep(2)"]
    tokens = []
    for number, above in enumerate(([], ["# a comment", "", "import json"])):
        tokens.append(token_in([*above, *lines], f"/edited/{number}.py"))
    assert tokens[0] == tokens[1]
    assert tokens[0] != token_in([*lines[:3], "    await trio.sleep(3)"], "/edited/2.py")


def token_in(lines: list[str], file: str) -> str:
    """The token of a cancel after the second step of a program with this source."""
    import linecache

    source = "\n".join(lines)
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)
    return str(replay(names["scenario"], "yy1-a2").to_json()["baseline"]["token"])


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("yy1-d99.1", "decision 99 was never asked for: the run has 0 decisions"),
        ("yy1-a99", "cancel of root after step 99 was not reached: the run has 2 steps and 0 port calls"),
        ("yy1-f3.hang", "hang at port call 3 was not reached: the run has 2 steps and 0 port calls"),
        ("yy1-a1.nobody", "cancel of nobody after step 1 was not reached: the run has 2 steps and 0 port calls"),
    ],
)
def test_what_a_token_asks_for_and_did_not_happen_is_told(token, says):
    """Never ignored."""
    report = replay(held(0), token)

    assert (False, (says,)) == (report.ok, report.missed)


def test_a_token_of_the_first_format_replays_and_says_that_it_has_no_fingerprint():
    """What it cannot know it says."""
    report = replay(held(0), "yy1-a2")

    assert ["at_end"] == [failure.kind for failure in report.failures]
    assert report.note.startswith("a token of the first format")


def test_a_choice_that_is_gone_is_told():
    """A decision with fewer possibilities than the token names."""

    async def scenario(sim: Simulation) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            nursery.start_soon(trio.sleep, 1)

    assert ("decision 0 has no choice 5 any more",) == replay(scenario, "yy1-d0.5").missed


# Figures.


def test_a_shutdown_that_never_ends_is_infinite():
    """The engine ends the run itself, which is not an end of the shutdown."""

    async def scenario(sim: Simulation) -> None:
        done = trio.Event()
        sim.shutdown_within(5)

        async def child() -> None:
            with sim.scope("child"):
                try:
                    await trio.sleep(1)
                except trio.Cancelled:
                    with trio.CancelScope(shield=True):
                        await done.wait()
                    raise
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    report = sweep(scenario, cancel="child")

    assert ("deadlock", math.inf) == (report.failures[0].kind, report.failures[0].run.shutdown)
    assert math.inf == report.worst_shutdown
    assert "slowest shutdown infinite: it never ended" in report.summary()
    assert "never" == json.loads(report.json())["worst_shutdown"]
    assert "What was cancelled never ended." in report.to_html()


def test_the_figures_of_a_report_add_up():
    """Planned is delivered, not reached and without effect together; the line says how many runs failed."""

    class Bank:
        async def charge(self) -> None:
            await trio.sleep(1)

    async def scenario(sim: Simulation) -> None:
        bank = sim.port("bank", Bank())
        sold: list[int] = []
        sim.at_end(lambda: sold, "it was sold")
        await trio.sleep(1)
        await bank.charge()
        sold.append(1)

    report = sweep(scenario, faults=("raise_before", "raise_after"))

    # By hand: two plain runs; cancels after steps 1 and 2, before steps 1 and 2; two faults at one call.
    assert (8, 6) == (report.runs, report.planned)
    assert report.planned == report.delivered + report.not_reached + report.without_effect
    assert (6, 0, 0) == (report.delivered, report.not_reached, report.without_effect)
    assert 6 == report.failing_runs == report.failures[0].cases
    assert "8 runs of 2 steps, 6 failed; 6 injections: 6 delivered, 0 not reached, 0 without effect" in str(report)


# Seeds.


def test_campaigns_with_neighbouring_seeds_share_no_order(monkeypatch):
    """A thousand orders of seed 0 and of seed 1 are two thousand."""
    used: dict[int, set[int]] = {0: set(), 1: set()}
    original = Campaign.try_out

    async def scenario(sim: Simulation) -> None:
        await trio.lowlevel.checkpoint()

    for seed, orders in used.items():

        def noted(self: Campaign, attempt: Attempt, *rest: Any, orders: set[int] = orders) -> Any:
            if attempt.order.strategy == "walk":
                orders.add(attempt.order.seed)
            return original(self, attempt, *rest)

        monkeypatch.setattr(Campaign, "try_out", noted)
        sweep(scenario, cancel=None, seed=seed, schedules=500)

    assert [499, 499] == [len(orders) for orders in used.values()]
    assert set() == used[0] & used[1]


def test_what_is_tried_at_one_point_does_not_depend_on_another(monkeypatch):
    """With a failure at step 2 or without, the same second cancels come after step 3."""
    tried: list[str] = []
    original = Campaign.try_out

    def noted(self: Campaign, attempt: Attempt, *rest: Any) -> Any:
        tried.append(encode(attempt))
        return original(self, attempt, *rest)

    monkeypatch.setattr(Campaign, "try_out", noted)

    def after_step_three(fails: bool) -> list[str]:
        async def scenario(sim: Simulation) -> None:
            try:
                for _ in range(3):
                    await trio.sleep(1)
            finally:
                if fails and trio.current_time() == 1:
                    raise ValueError("an early bug")
                with trio.CancelScope(shield=True):
                    for _ in range(9):
                        await trio.sleep(1)

        tried.clear()
        sweep(scenario, then="root", then_points=2, seed=1, pairs=3)
        return [token for token in tried if token.startswith("yy2-a3-")]

    assert after_step_three(False) == after_step_three(True)


# Rules that every Trio program has.


async def swallows(sim: Simulation) -> None:
    """The one thing that no Trio program may do."""
    for _ in range(5):
        with contextlib.suppress(trio.Cancelled):
            await trio.sleep(1)


def test_a_swallowed_cancel_is_noticed_without_a_promise():
    """A note at first, with the line; a failure on request."""
    report = sweep(swallows)

    assert report.ok
    (note,) = report.notes
    assert "swallowed" == note.kind
    assert f"test_honest_reports.py:{line_of(swallows, 'await trio.sleep')} in swallows" in note.message
    assert f"note: {note.message[:100]}" in str(report)
    assert ["swallowed"] == [failure.kind for failure in sweep(swallows, swallowed="failure").failures]
    assert not explore(swallows, bound=0, cancel="root", swallowed="failure").ok


def line_of(function: Any, text: str) -> int:
    """The line of ``function`` in which ``text`` stands."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def swallowing() -> dict[str, Any]:
    """Programs that swallow a cancel in one of many ways."""

    async def in_a_child(sim: Simulation) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(swallows, sim)

    async def at_the_very_end(sim: Simulation) -> None:
        try:
            await trio.sleep(1)
        except BaseException:
            return

    async def with_shielded_work_after_it(sim: Simulation) -> None:
        with contextlib.suppress(trio.Cancelled):
            await trio.sleep(1)
        with trio.CancelScope(shield=True):
            await trio.sleep(1)

    async def by_returning_from_finally(sim: Simulation) -> None:
        async def inner() -> None:
            try:
                await trio.sleep(1)
            finally:
                return  # noqa: B012

        await inner()
        await trio.sleep(1)

    async def as_another_error(sim: Simulation) -> None:
        for _ in range(2):
            try:
                try:
                    await trio.sleep(1)
                except trio.Cancelled:
                    raise ValueError from None
            except ValueError:
                pass

    found = (
        in_a_child,
        at_the_very_end,
        with_shielded_work_after_it,
        by_returning_from_finally,
        as_another_error,
    )
    return {f.__name__: f for f in found}


def careful() -> dict[str, Any]:
    """Programs that do not swallow it, though it may look so."""

    async def own_scope(sim: Simulation) -> None:
        with sim.scope("part"):
            await trio.sleep(1)
        await trio.sleep(1)

    async def clean_up_that_awaits_again(sim: Simulation) -> None:
        try:
            await trio.sleep(1)
        finally:
            try:
                await trio.sleep(1)
            finally:
                await trio.sleep(1)

    async def clean_up_under_a_shield(sim: Simulation) -> None:
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            raise

    async def children_of_children(sim: Simulation) -> None:
        async with trio.open_nursery() as outer:
            async with trio.open_nursery() as inner:
                inner.start_soon(clean_up_that_awaits_again, sim)
            outer.start_soon(clean_up_under_a_shield, sim)

    async def time_out(sim: Simulation) -> None:
        with trio.move_on_after(1):
            await trio.sleep(2)
        with pytest.raises(trio.TooSlowError), trio.fail_after(1):
            await trio.sleep(2)
        await trio.sleep(1)

    async def replaced_by_an_error(sim: Simulation) -> None:
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            raise KeyError("lost") from None

    return {
        f.__name__: f
        for f in (
            own_scope,
            clean_up_that_awaits_again,
            clean_up_under_a_shield,
            children_of_children,
            time_out,
            replaced_by_an_error,
        )
    }


@pytest.mark.parametrize("name", swallowing())
def test_each_way_to_swallow_is_noticed(name):
    """Wherever it is, and whatever follows."""
    assert ["swallowed"] == [note.kind for note in sweep(swallowing()[name], allow=(ValueError,)).notes]


@pytest.mark.parametrize("name", careful())
@pytest.mark.parametrize("target", ["root", "part"])
def test_nothing_is_noticed_in_a_careful_program(name, target):
    """Clean-up, time-outs and scopes of one's own are what cancels are for."""
    if name == "own_scope" or target == "root":
        assert [] == [note.message for note in sweep(careful()[name], cancel=target, allow=(KeyError,)).notes]


# What was left behind.


async def chunks():
    """A library's: nothing is lost when it is dropped."""
    for number in range(3):
        yield number


async def guarded_chunks():
    """This one has something to clean up."""
    try:
        yield 1
        yield 2
    finally:
        await trio.lowlevel.checkpoint()


def loop_over(generator: Any):
    """A scenario that leaves ``generator`` open when it is cancelled."""

    async def scenario(sim: Simulation) -> None:
        async for _ in generator():
            await trio.sleep(1)

    return scenario


def test_a_generator_without_clean_up_may_be_dropped():
    """Nothing is lost with it: a note."""
    report = sweep(loop_over(chunks))

    assert (True, {"leak"}) == (report.ok, {note.kind for note in report.notes})


def test_a_generator_with_clean_up_may_not():
    """Unless its name is allowed, with its module."""
    assert {"leak"} == {failure.kind for failure in sweep(loop_over(guarded_chunks)).failures}
    allowed = sweep(loop_over(guarded_chunks), allow_leaks=(f"{__name__}.guarded_*",))
    assert (True, ()) == (allowed.ok, allowed.notes)
    assert not sweep(loop_over(guarded_chunks), allow_leaks=("elsewhere.*",)).ok


def test_a_leak_keeps_nothing_from_being_tried():
    """The undisturbed run leaks already; every cancel is tried all the same."""

    async def scenario(sim: Simulation) -> None:
        sim.keep = guarded_chunks()  # type: ignore[attr-defined]
        await anext(sim.keep)  # type: ignore[attr-defined]
        held = [1]
        sim.at_end(lambda: held == [1], "it is held")
        await trio.sleep(1)
        held.clear()
        await trio.sleep(1)
        held.append(1)

    report = sweep(scenario)

    assert ["at_end", "leak"] == [failure.kind for failure in report.failures]
    assert 0 < report.delivered


# What can be said about a place.


class Bank:
    """A stand-in, in which nothing is wrong."""

    async def charge(self) -> None:
        """Takes a while."""
        await trio.sleep(1)


async def buy(bank: Bank, shop: dict[str, int]) -> None:
    """A `trio.Cancelled` passes this handler by."""
    shop["stock"] -= 1
    try:
        await bank.charge()
    except Exception:
        shop["stock"] += 1
        raise


def test_the_report_shows_the_calls_that_lead_to_the_place():
    """The wrong line is one of them, with its source."""

    async def scenario(sim: Simulation) -> None:
        shop = {"stock": 1}
        sim.at_end(lambda: shop["stock"] == 1, "nothing is lost")
        await buy(Bank(), shop)
        shop["stock"] = 1

    failure = sweep(scenario).failures[0]

    assert ["buy", "Bank.charge"] == [place.function for place in failure.chain[1:]]
    line = line_of(buy, "await bank.charge()")
    assert f"-> buy:{line} -> Bank.charge:" in str(failure)
    assert f"test_honest_reports.py:{line}: await bank.charge()" in str(failure)


def test_a_task_that_is_one_of_trios_methods_is_named_by_its_call():
    """And who holds the other end of its channel."""

    async def scenario(sim: Simulation) -> None:
        sender, receiver = trio.open_memory_channel[int](0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, 1)
            sim.keep = receiver  # type: ignore[attr-defined]

    failure = sweep(scenario).failures[0]

    assert "deadlock" == failure.kind
    assert (
        "send waits at MemorySendChannel.send, in MemorySendChannel.send "
        "(1 senders and 1 receivers open; its receiving end is held by main)"
    ) in str(failure)


def test_an_event_that_nobody_else_holds_is_told():
    """It can be set by no task that lives."""

    async def scenario(sim: Simulation) -> None:
        await trio.Event().wait()

    assert "(it is held by no other task)" in str(sweep(scenario).failures[0])


# What can be taken elsewhere.


def test_a_report_can_leave_the_process():
    """Workers hand their reports to the process that started them."""
    report = sweep(swallows)
    again: Report = pickle.loads(pickle.dumps(report))
    assert (report.summary(), report.json()) == (again.summary(), again.json())


# Everything that the convenient door reaches.


async def slot_of_a_request(sim: Simulation) -> None:
    """Only the time-out of one request shows it."""
    slots = ["slot"]
    sim.at_end(lambda: slots == ["slot"], "the slot is given back")
    with trio.CancelScope(shield=True):
        with sim.scope("request"):
            slot = slots.pop()
            await trio.sleep(1)
            slots.append(slot)
        if not slots:
            await trio.sleep(1)


def test_examining_tries_every_target_that_the_scenario_names():
    """Each named scope and action, and Ctrl-C."""
    reports = examine(slot_of_a_request)

    assert [("sweep", ""), ("sweep", "cancel='ctrl-c'"), ("sweep", "cancel='request'"), ("exploration", "")] == [
        (report.mode, report.note) for report in reports
    ]
    assert [True, False, False, True] == [report.ok or not report.failures for report in reports]


SETS = """
import sys, trio
from youyou.testing import explore, replay
async def scenario(sim):
    said = []
    async def one(name):
        await trio.sleep(1)
        said.append(name)
    async with trio.open_nursery() as n:
        for name in {"a", "b", "c"}: n.start_soon(one, name)
    assert said[0] != "a", said
async def sound(sim):
    await trio.sleep(1)
if __name__ == "__main__":
    if len(sys.argv) > 1:
        report = replay(scenario, sys.argv[1])
        print("fails" if report.failures else "ok" if report.ok else report.missed[0])
    else:
        report = explore(scenario, schedules=50)
        print(report.failures[0].token)
"""


@pytest.mark.long
def test_a_token_for_another_order_of_a_set_says_so(tmp_path):
    """In another process with another hash seed it fails as here, or it is not ok: never "ok"."""
    (tmp_path / "sets.py").write_text(SETS, encoding="utf-8")

    def python(seed: int, *words: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, str(tmp_path / "sets.py"), *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout.strip()

    token = python(0)
    said = [python(seed, token) for seed in range(4)]

    another = "the program takes another course than the one this token was made for"
    assert "fails" == said[0]
    assert {"fails", another} == set(said)


@pytest.mark.long
def test_another_hash_seed_is_tried_in_another_process_on_demand(tmp_path):
    """Two runs in one process cannot differ in this."""
    path = tmp_path / "more_sets.py"
    path.write_text(SETS, encoding="utf-8")

    problem = hash_seed_divergence(f"{path}:scenario")

    assert problem is not None
    assert problem.startswith("under hash seeds 1 and 2 step ")
    assert hash_seed_divergence(f"{path}:sound") is None


@pytest.mark.long
def test_a_named_scenario_can_be_sent_to_another_process(tmp_path):
    """What travels is its name; what comes back is the report."""
    path = tmp_path / "named.py"
    path.write_text("import trio\nasync def scenario(sim): await trio.sleep(1)\n", encoding="utf-8")

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        report = pool.submit(explore, f"{path}:scenario", schedules=5).result(120)

    assert ("exploration of scenario", True) == (report.summary().partition(":")[0], report.ok)

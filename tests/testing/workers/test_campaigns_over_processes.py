"""A campaign has one verdict, however many do its runs, and can be stopped and continued."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trio
from youyou.testing import Interrupted, Report, Simulation, explore, replay, sweep
from youyou.testing.campaigns.campaign import Elsewhere
from youyou.testing.workers.crew import Crew, WorkersLost
from youyou.testing.workers.references import CannotTravel, reference_to, resolve


async def counters(sim: Simulation) -> None:
    """Three tasks count; some orders lose one."""
    total = [0]
    sim.at_end(lambda: total[0] == 6, "all counted")

    async def add(number: int) -> None:
        for _ in range(2):
            await trio.sleep(1 + number)
            seen = total[0]
            if sim.choose(2):
                await trio.lowlevel.checkpoint()
            total[0] = seen + 1

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(add, number)


async def sound(sim: Simulation) -> None:
    """Four tasks that come out right in every order."""

    async def work() -> None:
        for _ in range(2):
            await trio.lowlevel.checkpoint()
        await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(work)


async def recovering(sim: Simulation) -> None:
    """Finds what a crash left."""
    sim.at_end(lambda: sim.durable("log", []) in ([], [1], [1, 2]), "nothing is torn")


async def writing(sim: Simulation) -> None:
    """Writes twice."""
    log = sim.durable("log", [])
    for number in (1, 2):
        log.append(number)
        await trio.sleep(1)


async def endings(sim: Simulation) -> None:
    """Ends the process that runs it, if it is a worker."""
    await trio.sleep(1)
    if multiprocessing.parent_process() is not None:
        os._exit(3)


async def unlike(sim: Simulation) -> None:
    """Takes another course in a worker."""
    for _ in range(1 + (multiprocessing.parent_process() is not None)):
        await trio.sleep(1)


Campaign = Callable[..., Report]
CAMPAIGNS: dict[str, Campaign] = {
    "every failing order": lambda **more: explore(counters, schedules=60, stop_at_first=False, **more),
    "the first failing order": lambda **more: explore(counters, schedules=60, **more),
    "few deviations": lambda **more: explore(sound, bound=1, **more),
    "order x cancel": lambda **more: explore(sound, schedules=4, cancel="root", stop_at_first=False, **more),
    "by chance": lambda **more: explore(sound, schedules=80, strategy=("guided", "pct2"), **more),
    "until quiet": lambda **more: explore(writing, until_quiet=True, strategy="walk", **more),
    "a sweep": lambda **more: sweep(counters, then="root", pairs=3, schedules=2, **more),
    "crashes": lambda **more: sweep(writing, cancel=None, crash=recovering, **more),
}


def verdict(report: Report) -> str:
    """All that a report says but how long it took."""
    return report.json().replace(f'"seconds": {report.seconds}', "").replace(f'"rate": {report.rate}', "")


@functools.cache
def alone(name: str) -> str:
    """The verdict of a campaign that one process does, by the same rounds."""
    return verdict(CAMPAIGNS[name](workers=0))


class AtHand(Executor):
    """Does what is submitted at once, in this process; loses every n-th task."""

    def __init__(self, losing: int = 0) -> None:
        self.tasks, self.losing = 0, losing

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks += 1
        future: Future[Any] = Future()
        if self.losing and self.tasks % self.losing == 0:
            future.set_exception(BrokenExecutor("lost"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


QUICK = ("crashes",)


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(n, marks=pytest.mark.long) for n in CAMPAIGNS if n not in QUICK)]
)
def test_a_verdict_does_not_depend_on_chunks_or_lost_tasks(name):
    """Byte for byte."""
    expected = verdict(CAMPAIGNS[name](workers=0))

    found = [
        verdict(CAMPAIGNS[name](workers=AtHand(losing), chunk=chunk)) for chunk, losing in ((2, 0), (7, 3), (None, 0))
    ]

    assert [expected] * 3 == found


KINDS: dict[str, Callable[[int], Any]] = {
    "number": lambda workers: workers,
    "executor": lambda workers: ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) if workers else 0,
}


@pytest.mark.long
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("workers", "chunk"), [(1, None), (2, 1), (2, 50), (8, None), (8, 7)])
def test_a_verdict_does_not_depend_on_workers_or_their_deaths(workers, chunk, kind, kill):
    """Real processes, one of them killed in the middle."""
    if kill and kind == "executor":
        pytest.skip("a pool of somebody else's that is broken stays so: see the test with lost tasks")
    for name in ("every failing order", "a sweep"):
        expected = alone(name)
        given, killed = KINDS[kind](workers), itertools.count()

        def strike(done: int, planned: int, failures: int, killed: Any = killed) -> None:
            if kill and done > 20 and next(killed) == 0:
                for child in multiprocessing.active_children()[:1]:
                    os.kill(child.pid or 0, signal.SIGKILL)

        found = verdict(CAMPAIGNS[name](workers=given, chunk=chunk, progress=strike))
        if isinstance(given, Executor):
            given.shutdown()

        assert expected == found


@pytest.mark.long
def test_a_broken_pool_of_somebody_else_is_stood_in_for():
    """What it does not do any more, this process does."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        expected = verdict(CAMPAIGNS["by chance"](workers=0))
        dead = False

        def strike(done: int, planned: int, failures: int) -> None:
            nonlocal dead
            if done > 20 and not dead:
                dead = True
                os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)

        assert expected == verdict(CAMPAIGNS["by chance"](workers=pool, chunk=5, progress=strike))


@pytest.mark.long
def test_a_scenario_that_ends_its_process_is_told():
    """And not tried again and again, nor in the process that asks."""
    with pytest.raises(WorkersLost, match="3 times a process ended"):
        sweep(endings, workers=1)


@pytest.mark.long
def test_a_worker_that_sees_another_course_is_told():
    """Its runs would say nothing about the program of this process."""
    with pytest.raises(Elsewhere, match="another course"):
        sweep(unlike, workers=1)


def test_what_no_other_process_can_find_is_refused_in_words():
    """At once, and not in the worker."""

    async def inside(sim: Simulation) -> None:
        await trio.sleep(1)

    with pytest.raises(CannotTravel, match="made inside another function"):
        sweep(inside, workers=AtHand())
    with pytest.raises(CannotTravel, match="made inside another function"):
        sweep(counters, cancel=lambda sim: None, workers=AtHand())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": -1}, "how many processes"),
        ({"workers": True}, "how many processes"),
        ({"workers": "8"}, "how many processes"),
        ({"workers": ThreadPoolExecutor(1)}, "give processes"),
        ({"chunk": 0}, "at least 1"),
    ],
)
def test_workers_that_cannot_work_are_refused(options, words):
    """With what to write instead."""
    with pytest.raises(ValueError, match=words):
        explore(sound, **options)


def test_a_function_of_a_test_file_is_found_by_its_path():
    """Whatever its module is called in this process."""
    reference = reference_to(counters)

    assert f"{Path(__file__).resolve()}:counters" == reference
    assert resolve(reference) is counters


def test_two_files_of_one_name_are_two_modules(tmp_path):
    """The second is not taken for the first."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same_name.py").write_text(f"WHERE = {folder!r}\n")

    assert ["a", "b"] == [resolve(f"{tmp_path / folder / 'same_name.py'}:WHERE") for folder in ("a", "b")]


def results_of(losing: int, tasks: int) -> list[int]:
    """What a crew makes of so many tasks."""
    return list(Crew(AtHand(losing)).results(abs, [-n for n in range(tasks)]))


@pytest.mark.parametrize("losing", [0, 2, 3, 7])
def test_results_come_in_the_order_of_their_tasks(losing):
    """Each once."""
    assert list(range(30)) == results_of(losing, 30)


# Stopped, kept and continued.


class Stop(Exception):
    """Somebody pulls the plug."""


@pytest.mark.parametrize("workers", [None, 0, "at hand"])
@pytest.mark.parametrize(
    "name",
    [
        "crashes",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("every failing order", "order x cancel", "a sweep")),
    ],
)
def test_a_campaign_goes_on_where_it_was_stopped(tmp_path, name, workers):
    """With the same verdict as one that was never stopped, and without doing again what was done."""
    made: list[int] = []
    given: Any = (lambda: AtHand()) if workers == "at hand" else (lambda: workers)

    def stop(done: int, planned: int, failures: int) -> None:
        if done > 4:
            raise Stop

    expected = verdict(CAMPAIGNS[name](workers=given()))
    options = {"chunk": 3, "save": tmp_path / "kept"}
    for _ in range(2):
        with pytest.raises(Stop):
            CAMPAIGNS[name](workers=given(), progress=stop, **options)
    found = CAMPAIGNS[name](workers=given(), **options)
    again = CAMPAIGNS[name](workers=given(), progress=lambda done, *_: made.append(done), **options)

    assert expected == verdict(found)
    assert expected == verdict(again)


def test_a_kept_campaign_is_not_run_again(tmp_path, monkeypatch):
    """Only the undisturbed run is, and what is shown in detail."""
    ran = []
    explore(sound, schedules=50, save=tmp_path / "kept")
    original = trio.run
    monkeypatch.setattr(trio, "run", lambda *args, **more: (ran.append(1), original(*args, **more))[1])

    report = explore(sound, schedules=50, save=tmp_path / "kept")

    assert 52 == report.runs
    assert len(ran) < 8


def test_an_end_that_was_cut_off_is_done_again(tmp_path):
    """A process may die while it writes."""
    file = tmp_path / "kept"
    expected = verdict(explore(sound, schedules=50, save=file))
    whole = file.read_bytes()

    for length in (len(whole) - 3, len(whole) // 2):
        file.write_bytes(whole[:length])
        assert expected == verdict(explore(sound, schedules=50, save=file))
        assert whole == file.read_bytes()


@pytest.mark.parametrize("content", [b"a letter to my aunt\n" * 30, b"x"])
def test_a_file_that_is_something_else_is_left_alone(tmp_path, content):
    """And the person is told."""
    file = tmp_path / "letter.txt"
    file.write_bytes(content)

    with pytest.raises(ValueError, match="something else"):
        explore(sound, schedules=50, save=file)
    assert content == file.read_bytes()


def test_results_of_another_campaign_are_refused(tmp_path):
    """Of other options, or of a program that has changed."""
    explore(sound, schedules=20, save=tmp_path / "kept")

    with pytest.raises(ValueError, match="does not hold the results of this campaign"):
        explore(sound, schedules=21, save=tmp_path / "kept")


def test_ctrl_c_ends_it_with_the_report_so_far(tmp_path):
    """In the process that asks, whatever others do."""

    def press(done: int, planned: int, failures: int) -> None:
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        explore(sound, schedules=500, strategy="walk", workers=AtHand(), progress=press)

    assert 20 < caught.value.report.runs < 30
    assert caught.value.report.unseen is not None


# Test suites and the command line.

SUITE = """
import trio
from youyou.testing import explored, sweep, swept

async def scenario(sim):
    await trio.sleep(1)

def test_workers():
    sweep(scenario, workers=1).assert_ok()

@swept
async def test_swept(sim):
    await trio.sleep(1)

@explored(schedules=20)
async def test_wrong(sim):
    said = []
    async def say(number):
        await trio.sleep(1)
        said.append(number)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(say, 0)
        nursery.start_soon(say, 1)
    assert said == [0, 1]

@swept
async def test_with_a_fixture(sim, tmp_path):
    await trio.sleep(1)
"""


@pytest.fixture
def suite(tmp_path) -> Iterator[Path]:
    """A test suite in a folder of its own, imported as this one is."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (tmp_path / "tests" / "test_it.py").write_text(SUITE)
    yield tmp_path


def run(folder: Path, *words: str) -> tuple[int, str]:
    """A command of the package, or pytest."""
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_tests_of_a_suite_reach_the_workers(suite):
    """Under importlib, too; those with fixtures stay where they are."""
    code, said = run(suite, "pytest", "-q", "-p", "no:randomly", "--youyou-workers", "2", "tests")

    assert 1 == code
    assert "1 failed, 3 passed" in said
    assert "YOUYOU_REPLAY=test_wrong:yy2-d" in said


@pytest.mark.long
def test_the_command_line_spreads_a_campaign(suite):
    """And prints the report."""
    code, said = run(
        suite, "youyou", "explore", "tests/test_it.py:scenario", "--workers", "2", "--until-quiet", "--budget", "1m"
    )

    assert 0 == code, said
    assert "exploration of scenario: ok" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "soon"), "'soon' is not a time"),
        (("--profile", "fast"), "invalid choice"),
        (("--workers", "0"), "--workers"),
    ],
)
@pytest.mark.long
def test_a_wrong_option_is_refused_in_words(suite, words, said):
    """Before anything runs."""
    code, printed = run(suite, "youyou", "explore", "tests/test_it.py:scenario", *words)

    assert 2 == code
    assert said in printed


def test_a_token_found_by_workers_replays_here():
    """It stands for itself."""
    found = explore(counters, schedules=60, workers=AtHand())

    assert not replay(counters, found.failures[0].token).ok

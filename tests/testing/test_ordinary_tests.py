"""Tests as people write them: plain, in classes, decorated, skipped; and mistakes, which get a sentence."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from youyou.testing import Simulation, examine, explore, load_scenario, replay, sweep, swept

FOREIGN = """
import pytest, trio
from youyou.testing import swept
async def test_ping(): await trio.sleep(1)
async def test_fix(nursery): await trio.sleep(1)
def test_sync(): pass
class TestX:
    async def test_m(self, sim): await trio.sleep(1)
class Pool:
    def __init__(self, size): ...
@pytest.mark.parametrize("size", [1])
@swept
async def test_pool(sim, size):
    async with trio.CapacityLimiter(size): await trio.sleep(1)
@swept
async def test_swept(sim): await trio.sleep(1)
"""


@pytest.fixture
def foreign(tmp_path: Path) -> str:
    """A file of tests, as found in a library."""
    path = tmp_path / f"foreign_{tmp_path.name}.py"
    path.write_text(FOREIGN, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["test_ping", "TestX.test_m", "test_swept"])
def test_an_ordinary_test_is_a_scenario(foreign, name):
    """Without a parameter, in a class, or swept already."""
    assert [True, True, True] == [report.ok for report in examine(load_scenario(f"{foreign}:{name}"), schedules=2)]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("test_fix", "this takes 'nursery', and no fixtures are made here"),
        ("test_sync", "test_sync is a plain function"),
        ("Pool", "Pool is a class"),
        ("test_pool", "test_pool takes 'sim' and 'size'"),
        ("Pool.x", "missing 1 required positional argument"),
        ("TestX.nothing", "has no attribute 'nothing'"),
    ],
)
def test_what_is_no_scenario_is_refused_in_words(foreign, name, says):
    """What it is, and what was wanted."""
    with pytest.raises(ValueError, match=says):
        load_scenario(f"{foreign}:{name}")


class NoFunction:
    """Takes what a scenario takes."""

    async def __call__(self, sim: Simulation) -> None:
        await trio.sleep(1)

    async def method(self, sim: Simulation) -> None:
        """A scenario."""
        await trio.sleep(1)


async def sized(size: int, sim: Simulation) -> None:
    """Needs a number first."""
    await trio.sleep(size)


@pytest.mark.parametrize(
    "scenario", [NoFunction(), NoFunction().method, functools.partial(sized, 1), lambda sim: NoFunction()(sim)]
)
def test_whatever_can_be_awaited_with_the_simulation_is_a_scenario(scenario):
    """Callable objects, methods, partial functions, lambdas."""
    assert sweep(scenario).ok
    assert explore(scenario, schedules=2).ok


async def generator(sim: Simulation):  # noqa: ASYNC900  # what must be refused
    """No scenario."""
    yield


@pytest.mark.parametrize("engine", [sweep, explore, lambda scenario: replay(scenario, "yy1-a1")])
@pytest.mark.parametrize("wrong", [3, NoFunction, len, generator, sized, os.getcwd])
def test_a_wrong_scenario_is_a_type_error_at_once(engine, wrong):
    """Nothing is run."""
    with pytest.raises(TypeError, match="a scenario is 'async def name"):
        engine(wrong)


# Decorated.


@settings(max_examples=2, deadline=None)
@given(n=st.integers(1, 2))
@swept
async def test_hypothesis_gives_what_the_test_asks_for(sim: Simulation, n: int):
    """`sim` is passed by name, so that it does not matter who passes the rest, and how."""
    assert isinstance(sim, Simulation)
    for _ in range(n):
        await trio.sleep(1)


@settings(max_examples=2, deadline=None)
@given(st.integers(1, 2))
@swept
async def test_hypothesis_by_position(sim: Simulation, n: int):
    """The same with a simulation."""
    assert isinstance(n, int)
    await trio.sleep(n)


@swept
async def skips(sim: Simulation, outcome: Any) -> None:
    """Tells pytest something."""
    await trio.sleep(1)
    outcome()


@pytest.mark.parametrize("outcome", [pytest.skip, pytest.xfail])
def test_a_skip_in_the_undisturbed_run_skips_the_test(outcome):
    """As without the kit."""
    with pytest.raises(outcome.Exception, match="no such database here"):
        skips(outcome=lambda: outcome("no such database here"))


def test_a_failure_told_to_pytest_is_a_failure():
    """`pytest.fail` is not a skip."""
    with pytest.raises(AssertionError, match="1 kind of failure"):
        skips(outcome=lambda: pytest.fail("no"))


# Tokens in the environment.

TWO = """
import trio
from youyou.testing import swept
@swept
async def test_a(sim): await trio.sleep(1)
@swept
async def test_b(sim): await trio.sleep(1)
"""


def pytest_with(tmp_path: Path, token: str) -> subprocess.CompletedProcess[str]:
    """pytest over two tests with this token."""
    (tmp_path / "test_two.py").write_text(TWO, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "test_two.py", "-rA"]
    environment = {**os.environ, "YOUYOU_REPLAY": token}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.long
def test_a_bad_token_is_one_sentence_without_the_source_of_the_kit(tmp_path):
    """Anyone who mistyped it sees what was wrong."""
    done = pytest_with(tmp_path, "test_a:yy1-zz9")

    assert "1 failed, 1 passed" in done.stdout
    assert "BadToken: 'yy1-zz9' cannot be read; copy the whole line of the report" in done.stdout
    assert "def decode" not in done.stdout


@pytest.mark.long
def test_a_token_belongs_to_the_test_that_it_names(tmp_path):
    """That one is replayed, the other runs as usual."""
    done = pytest_with(tmp_path, "test_b:yy1-a1")

    assert "2 passed" in done.stdout
    assert 1 == done.stdout.count(">>> cancel of root after step 1")


# Mistakes in a scenario.


def wrong_use() -> dict[str, Any]:
    """Each way to use the simulation wrongly, by what is said."""

    async def is_async() -> bool:
        return True

    return {
        "sim.always.. takes a plain function, which is_async": lambda sim: sim.always(is_async, "all is well"),
        "sim.eventually.. takes a plain function": lambda sim: sim.eventually(is_async, "all is well"),
        "sim.at_end.. takes a function that is called later; True": lambda sim: sim.at_end(True),
        "the message of sim.always.. is a text, not 3": lambda sim: sim.always(lambda: True, 3),
        "sim.shutdown_within.-1.; write seconds": lambda sim: sim.shutdown_within(-1),
        "sim.eventually.within=-1.; write seconds": lambda sim: sim.eventually(lambda: True, within=-1),
        "sim.scope.. takes a name and, if you have one": lambda sim: sim.scope("a", "b"),
        "sim.action.. takes functions that are called later": lambda sim: sim.action("a", 3),
        "sim.choose.0.; write how many possibilities": lambda sim: sim.choose(0),
        "bad target name 'a b'": lambda sim: sim.scope("a b"),
    }


@pytest.mark.parametrize("says", wrong_use())
def test_a_mistake_in_a_scenario_is_told_where_it_is_made(says):
    """In the scenario's own error, not as something else that follows from it."""

    async def scenario(sim: Simulation) -> None:
        wrong_use()[says](sim)
        await trio.sleep(1)

    (failure,) = sweep(scenario).failures
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(failure.message)


def test_a_scenario_without_a_checkpoint_is_told_so():
    """There is nothing to stop."""

    async def at_once(sim: Simulation) -> int:
        return 3

    assert ("the scenario ended before its first checkpoint; there is nothing to stop",) == sweep(at_once).missed

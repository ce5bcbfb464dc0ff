"""`@swept` makes an ordinary test of an async function."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import trio
from youyou.testing import Simulation, explored, swept
from youyou.testing.campaigns.decorator import ENVIRONMENT

RUNS: list[Path] = []


@pytest.fixture
def word() -> str:
    """Something of the test's own."""
    return "word"


@swept(points="every-location")
async def test_fixtures_reach_a_swept_test(sim: Simulation, tmp_path: Path, word: str):
    """This is such a test: called by pytest without pytest-trio, with its fixtures, many times."""
    RUNS.append(tmp_path)
    assert ("word", True) == (word, tmp_path.is_absolute())
    await trio.sleep(1)


@swept
async def test_options_may_be_left_out(sim: Simulation):
    """Then everything is cancelled at every step."""
    await trio.sleep(1)


@explored(schedules=5)
async def test_explored_runs_many_orders(sim: Simulation, word: str):
    """The same for `explore`."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        nursery.start_soon(trio.sleep, 1)


class TestInAClass:
    @pytest.mark.parametrize("seconds", [1, 2])
    @swept
    async def test_methods_and_parameters_work(self, sim: Simulation, seconds: int):
        """`self`, then the simulation, then what pytest gives."""
        await trio.sleep(seconds)


@swept
async def leaky(sim: Simulation, word: str) -> None:
    """Not a test of its own: the tests below call it."""
    slots = [1]
    sim.at_end(lambda: slots == [1], "the slot is back")
    await trio.sleep(1)
    slots.clear()
    await trio.sleep(1)
    slots.append(1)


def test_it_is_a_plain_function_that_asks_for_the_fixtures_only():
    """pytest-trio takes coroutine functions; this is none, and `sim` is not looked for as a fixture."""
    assert not inspect.iscoroutinefunction(leaky)
    assert ["word"] == list(inspect.signature(leaky).parameters)
    assert ("leaky", __name__) == (leaky.__name__, leaky.__module__)


def test_a_failure_is_one_assertion_with_the_smallest_case_and_its_token():
    """What to do next is in the message."""
    with pytest.raises(AssertionError) as caught:
        leaky(word="word")

    assert "the slot is back" in str(caught.value)
    assert f"{ENVIRONMENT}=leaky:yy2-a2-h" in str(caught.value)


def test_the_environment_variable_replays_one_run_and_prints_its_trace(monkeypatch, capsys):
    """Only the named run is made."""
    monkeypatch.setenv(ENVIRONMENT, "yy1-a2")
    with pytest.raises(AssertionError, match="replay of leaky"):
        leaky(word="word")
    assert ">>> cancel of root after step 2" in capsys.readouterr().out

    monkeypatch.setenv(ENVIRONMENT, "yy1")
    leaky(word="word")


def test_a_wrong_option_is_an_error_where_it_is_written():
    """Not when the test runs."""
    with pytest.raises(TypeError, match="pionts"):
        swept(pionts=3)
    with pytest.raises(TypeError, match="async def"):
        swept(lambda sim: None)

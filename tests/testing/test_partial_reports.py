"""However a campaign ends, what was found until then is kept."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
import trio
from youyou.testing import Interrupted, Simulation, explore, sweep


async def three(sim: Simulation) -> None:
    """Three tasks."""
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(trio.sleep, 1)


@pytest.mark.parametrize("engine", [sweep, explore])
def test_a_budget_ends_a_campaign_with_what_it_has(engine):
    """The undisturbed run is always made; the report says that there was more to do."""
    report = engine(three, budget=0.0)

    assert (True, 2) == (report.ok, report.runs)
    assert report.partial.startswith("the budget of 0 s ended it after 2 of ")
    assert ": ok so far; " in report.summary()
    assert report.partial in report.summary()
    assert report.partial == report.to_json()["partial"]


@pytest.mark.parametrize("engine", [sweep, explore])
def test_ctrl_c_carries_the_report(engine):
    """A `KeyboardInterrupt` still, with what was found."""

    def progress(done: int, planned: int, failed: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        engine(three, progress=progress)

    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.report.partial.startswith("stopped by Ctrl-C after 4 of ")


PRESSED = """
import os, signal, trio
runs = 0
async def scenario(sim):
    global runs
    runs += 1
    async with trio.open_nursery() as n:
        for _ in range(9): n.start_soon(trio.sleep, 1)
        if runs == 60:
            os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.long
def test_ctrl_c_ends_the_command_with_the_report_so_far(tmp_path):
    """Exit code 130, and what was found on stdout."""
    (tmp_path / "scen.py").write_text(PRESSED, encoding="utf-8")
    # With SIGINT as a terminal would have it, whatever started this test.
    words = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    words += "runpy.run_module('youyou', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", words, "explore", "scen.py:scenario", "--schedules", "1000000"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert signal.SIGINT + 128 == done.returncode, done.stderr
    assert "stopped by Ctrl-C after " in done.stdout

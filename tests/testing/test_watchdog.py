"""A step that does not come back is told, with the place, and ended."""

from __future__ import annotations

import threading

import pytest
import trio
from youyou.testing import Simulation, sweep
from youyou.testing.process import watchdog


async def endless(sim: Simulation) -> None:
    """Never gives anybody a turn, once it is cancelled."""

    async def spin() -> None:
        try:
            await trio.sleep(1)
        finally:
            while trio.current_effective_deadline() < 0:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(spin)


async def endless_check(sim: Simulation) -> None:
    """A promise that is never done with being looked at."""

    def look() -> bool:
        while sim.step > 1:
            pass
        return True

    sim.always(look, "looks")
    await trio.sleep(1)


@pytest.fixture
def impatient(monkeypatch, capsys):
    """A step may take a third of a second."""
    monkeypatch.setattr(watchdog, "PATIENCE", 0.3)


@pytest.mark.long
def test_an_endless_loop_in_a_task_is_ended_and_named(impatient):
    """With the task and the line."""
    report = sweep(endless)

    stuck = [failure for failure in report.failures if failure.kind == "stuck"]
    assert 1 == len(stuck)
    assert "in spin: a step has not come back for 0.3 s" in stuck[0].message
    assert "while trio.current_effective_deadline() < 0" in stuck[0].message or "spin" in stuck[0].message


def test_an_endless_check_is_ended_and_named(impatient):
    """It runs between two steps."""
    report = sweep(endless_check, cancel=None)

    assert ["stuck"] == [failure.kind for failure in report.failures]
    assert "look" in report.failures[0].message


def test_no_watchdog_is_left(impatient):
    """It ends with its campaign."""

    async def short(sim: Simulation) -> None:
        await trio.sleep(1)

    before = threading.active_count()
    sweep(short)

    assert before == threading.active_count()
    assert [] == watchdog.current

"""What happens when a program takes a cancel or Ctrl-C for one more error."""

from __future__ import annotations

import trio
from planted import by_sweep, mended, planted
from youyou.testing import Simulation


@planted(by_sweep(), "at_end", "yy1-a1", at="await trio.sleep(1)")
async def swallowed_cancelled(sim: Simulation) -> None:
    """A cancelled download is taken for a failed one, and a default is stored."""
    stored: list[str] = []
    sim.at_end(lambda: "default" not in stored, "nothing is stored that nobody downloaded")
    try:
        await trio.sleep(1)
        stored.append("page")
    except BaseException:  # noqa: ASYNC103  # planted
        stored.append("default")


@mended(swallowed_cancelled)
async def cancelled_let_through(sim: Simulation) -> None:
    """Catch what a download can raise, not everything."""
    stored: list[str] = []
    sim.at_end(lambda: "default" not in stored, "nothing is stored that nobody downloaded")
    try:
        await trio.sleep(1)
        stored.append("page")
    except OSError:
        stored.append("default")


@planted(by_sweep(max_steps=300), "steps", "yy1-a1", at="await trio.sleep(1)")
async def loops_through_cancels(sim: Simulation) -> None:
    """A worker that must never die takes every cancel for one more error."""
    jobs = [1, 2, 3]
    while jobs:
        try:
            await trio.sleep(1)
            jobs.pop()
        except BaseException:  # noqa: ASYNC103  # planted
            sim.note("a job failed")


@mended(loops_through_cancels)
async def loops_through_errors(sim: Simulation) -> None:
    """Errors are not the end of it, a cancel is."""
    jobs = [1, 2, 3]
    while jobs:
        try:
            await trio.sleep(1)
            jobs.pop()
        except Exception:
            sim.note("a job failed")


@planted(by_sweep(cancel="ctrl-c"), "shutdown", "yy1-a1.ctrl~c", at="await trio.sleep(1)")
async def interrupt_swallowed(sim: Simulation) -> None:
    """One bad request must not end the server, so Ctrl-C does not end it either."""
    sim.shutdown_within(2)
    for _ in range(5):
        try:
            await trio.sleep(1)
        except BaseException:  # noqa: ASYNC103  # planted
            sim.note("a request failed")


@mended(interrupt_swallowed)
async def interrupt_let_through(sim: Simulation) -> None:
    """Catch ``Exception`` at most."""
    sim.shutdown_within(2)
    for _ in range(5):
        try:
            await trio.sleep(1)
        except Exception:
            sim.note("a request failed")

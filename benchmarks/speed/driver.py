"""The workloads that every runtime runs. Each function returns the figures of one process.

A program is a module with `LOOP` and `session(mode, keep)`: an async context manager of something with `turn(text)`,
which returns how many deltas and results its reader saw. For W6 also `mode`, `cancel()` and perhaps `closed_at`.
"""

from __future__ import annotations

import gc
import math
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from .plan import expect

now, cpu = time.perf_counter, time.process_time
Figures = dict[str, float]
COMMON = ("W1", "W2", "W3", "W4", "W5", "W6")


def memory(key: str) -> float:
    """KiB of this process: `VmRSS` now, `VmHWM` at most."""
    with open("/proc/self/status") as lines:
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that ``part`` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


async def repeat(one: Callable[[], Awaitable[object]], seconds: float, repeats: int = 3) -> Figures:
    """Milliseconds of wall and of CPU for ``one``: the median of ``repeats`` batches of ``seconds`` each."""
    started, count = now(), 0
    while count < 5 or now() - started < seconds:
        await one()
        count += 1
    walls, cpus = [], []
    for _ in range(repeats):
        gc.collect()
        wall, used = now(), cpu()
        for _ in range(count):
            await one()
        walls.append((now() - wall) / count * 1e3)
        cpus.append((cpu() - used) / count * 1e3)
    return {"ms": statistics.median(walls), "cpu_ms": statistics.median(cpus)}


async def throughput(program: Any, mode: str, seconds: float) -> Figures:
    """W1 and W2: one turn after another."""
    async with program.session(mode, False) as session:
        expect(mode, await session.turn("hello"))
        return await repeat(lambda: session.turn("hello"), seconds)


async def long_session(program: Any, turns: int) -> Figures:
    """W3: the CPU time of the last 50 turns against that of the first 50, after a session that warms up."""
    async with program.session("long", True) as session:
        for _ in range(20):
            await session.turn("hello")
    costs: list[float] = []
    gc.collect()
    async with program.session("long", True) as session:
        for number in range(turns):
            used = cpu()
            seen = await session.turn(f"question {number}")
            costs.append(cpu() - used)
        expect("long", seen)
    return {
        "ms_first": sum(costs[:50]) * 20,
        "ms_last": sum(costs[-50:]) * 20,
        "growth": sum(costs[-50:]) / sum(costs[:50]),
    }


async def many_agents(program: Any, agents: int) -> Figures:
    """W4: so many at once, from opening to closing."""

    async def one() -> None:
        async with program.session("many", True) as session:
            expect("many", await session.turn("hello"))

    await program.LOOP.gather([one] * 5)
    gc.collect()
    before, wall, used = memory("VmRSS"), now(), cpu()
    await program.LOOP.gather([one] * agents)
    wall, used = now() - wall, cpu() - used
    return {"s": wall, "cpu_ms_an_agent": used / agents * 1e3, "peak_mib": (memory("VmHWM") - before) / 1024}


async def first_turn(program: Any) -> Figures:
    """W5: one turn in a process that has just begun; the wall time is taken outside."""
    async with program.session("tools", False) as session:
        expect("tools", await session.turn("hello"))
    return {"rss_mib": memory("VmHWM") / 1024, "modules": len(sys.modules)}


async def cancelled(program: Any, mode: str, times: int) -> Figures:
    """W6: from `cancel()` to the end of the reading loop, and to the close of the provider's stream."""
    ended, closed, late = [], [], 0
    for number in range(times + 2):
        async with program.session("short", True) as session:
            await session.turn("first")
            session.mode = mode
            at: dict[str, float] = {}

            async def turn(session: Any = session, at: dict[str, float] = at) -> None:
                try:
                    await session.turn("second")
                finally:
                    at["ended"] = now()

            async def cancel(session: Any = session, at: dict[str, float] = at) -> None:
                await program.LOOP.sleep(0.02)
                at["asked"] = now()
                assert "ended" not in at, "the turn ended by itself"
                session.cancel()

            in_time = await program.LOOP.beside(turn, cancel, 3)
            if number < 2:  # the first ones warm up
                continue
            late += not in_time
            since = session.tools_ended if mode == "ending" else at["asked"]
            if in_time:
                ended.append((at["ended"] - since) * 1e3)
            if in_time and getattr(session, "closed_at", None):
                closed.append((session.closed_at - since) * 1e3)
    figures: Figures = {"late": late}
    for name, values in (("ended", ended), ("closed", closed)):
        if values:
            figures |= {f"{name}_p50_ms": quantile(values, 0.5), f"{name}_p99_ms": quantile(values, 0.99)}
    return figures


def measure(program: Any, workload: str, seconds: float) -> Figures:
    """The figures of one workload, ``NAME`` or ``NAME:SIZE``."""
    name, _, size = workload.partition(":")
    match name:
        case "W1":
            work = throughput(program, "chat", seconds)
        case "W2":
            work = throughput(program, "tools", seconds)
        case "W3":
            work = long_session(program, int(size or 300))
        case "W4":
            work = many_agents(program, int(size or 200))
        case "W5":
            work = first_turn(program)
        case "W6":
            work = cancelled(program, "forever", int(size or 100))
        case _:
            raise SystemExit(f"no workload {workload!r}")

    async def run() -> Figures:
        return await work

    return program.LOOP.run(run)

"""How many injected runs a second, and how much dearer a run is than a bare `trio.run` of the same scenario.

python benchmarks/sweep_rate.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import trio
from trio.testing import MockClock
from youyou.testing import Simulation, explore, sweep


async def pipeline() -> None:
    """Three tasks, two memory channels, about a hundred steps."""
    to_worker, from_source = trio.open_memory_channel[int](2)
    to_sink, from_worker = trio.open_memory_channel[int](0)

    async def source() -> None:
        with to_worker:
            for number in range(16):
                await to_worker.send(number)
                await trio.sleep(0.1)

    async def worker() -> None:
        with from_source, to_sink:
            async for number in from_source:
                await to_sink.send(number * number)

    async def sink() -> None:
        with from_worker:
            async for _ in from_worker:
                await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(source)
        nursery.start_soon(worker)
        nursery.start_soon(sink)


async def scenario(sim: Simulation) -> None:
    """The pipeline, with one promise."""
    sim.shutdown_within(1)
    await pipeline()


def fastest(work: Callable[[], object], times: int) -> float:
    """Seconds of ``work`` when least disturbed by other programs."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def main() -> None:
    """Measure and print."""
    reports = [sweep(scenario)]
    reports[0].assert_ok()
    full = fastest(lambda: reports.append(sweep(scenario)), 12)
    runs = reports[0].runs
    bare = fastest(lambda: [trio.run(pipeline, clock=MockClock(autojump_threshold=0)) for _ in range(20)], 20) / 20
    whole = fastest(lambda: explore(scenario, schedules=100, strategy="plain"), 5) / 103
    print(f"scenario: {len(reports[0].baseline.steps)} steps, 3 tasks, 2 channels")
    print(f"sweep: {runs} runs in {full:.3f} s = {runs / full:.0f} runs/s")
    swept = full / runs
    print(f"bare trio.run: {bare * 1e3:.2f} ms; a swept run: {swept * 1e3:.2f} ms = {swept / bare:.2f} times")
    print(f"a simulated run that nothing cuts short: {whole * 1e3:.2f} ms = {whole / bare:.2f} times")


if __name__ == "__main__":
    main()

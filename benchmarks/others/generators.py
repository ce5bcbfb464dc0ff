"""trio-util under the kit: a generator in a task of its own, values that are waited for, periodic loops.

pip install . trio-util
python benchmarks/others/generators.py
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio
import trio_util
from youyou.testing import Simulation, explore, sweep


@trio_util.trio_async_generator
async def readings(log: list[str], last: trio.Event) -> AsyncIterator[int]:  # noqa: ASYNC900  # made safe by trio-util
    """Two numbers, and a third when somebody asks for it; notes when it is done."""
    log.append("open")
    try:
        yield 1
        yield 2
        await last.wait()
        yield 3
    finally:
        log.append("closed")


async def generator(sim: Simulation) -> None:
    """Everything is read."""
    sim.shutdown_within(2)
    log: list[str] = []
    last = trio.Event()
    last.set()
    sim.at_end(lambda: log in ([], ["open", "closed"]), "what was opened is closed")
    async with readings(log, last) as numbers:
        async for number in numbers:
            sim.note(f"read {number}")
            await trio.sleep(1)


async def generator_left_early(sim: Simulation) -> None:
    """The reader leaves after the second number, while the generator waits for something else."""
    last = trio.Event()
    async with readings([], last) as numbers:
        async for number in numbers:
            if number == 2:
                await trio.sleep(1)
                break


async def periodic(sim: Simulation) -> None:
    """Three ticks with work between them, written as its documentation says."""
    async for elapsed, _ in trio_util.periodic(5):
        if elapsed > 10:
            break
        await trio.sleep(1)


async def values(sim: Simulation) -> None:
    """A task that waits for a value hears of it, no matter who else stops waiting."""
    level = trio_util.AsyncValue(0)
    heard: list[int] = []
    sim.at_end(lambda: heard == [2], "the value is heard of once")

    async def other() -> None:
        with sim.scope("other"):
            await level.wait_value(2)

    async def listen() -> None:
        heard.append(await level.wait_value(2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        nursery.start_soon(listen)
        for number in (1, 2, 3):
            await trio.sleep(1)
            level.value = number


def main() -> None:
    """Print what is found."""
    print(sweep(generator), end="\n\n")
    print(explore(generator, schedules=200), end="\n\n")
    print(sweep(generator_left_early, cancel=None), end="\n\n")
    print(sweep(periodic), end="\n\n")
    print(sweep(values, cancel="other"), end="\n\n")
    print(explore(values, schedules=200))


if __name__ == "__main__":
    main()

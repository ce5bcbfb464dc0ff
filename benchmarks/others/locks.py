"""tricycle under the kit: its readers-writer lock and its service nursery.

pip install . tricycle
python benchmarks/others/locks.py
"""

from __future__ import annotations

import tricycle
import trio
from youyou.testing import Simulation, explore, sweep


async def readers_and_a_writer(sim: Simulation) -> None:
    """One reads for long, one wants to write and may give up, one more wants to read."""
    lock = tricycle.RWLock()

    def nobody_waits_for_nothing() -> bool:
        seen = lock.statistics()
        return bool(seen.locked == "write" or seen.writers_waiting or not seen.readers_waiting)

    sim.always(nobody_waits_for_nothing, "a reader waits only for a writer")

    async def read(delay: float) -> None:
        await trio.sleep(delay)
        async with lock.read_locked():
            await trio.sleep(10)

    async def write() -> None:
        await trio.sleep(1)
        with sim.scope("writer"):
            async with lock.write_locked():
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read, 0)
        nursery.start_soon(write)
        nursery.start_soon(read, 2)


async def reader_needs_a_reader(sim: Simulation) -> None:
    """Nobody cancels: the writer gives up by itself, and the first reader waits for the second."""
    lock, second = tricycle.RWLock(), trio.Event()

    async def write() -> None:
        with trio.move_on_after(5):
            async with lock.write_locked():
                sim.note("written")

    async def read() -> None:
        await trio.sleep(1)
        async with lock.read_locked():
            second.set()

    async with trio.open_nursery() as nursery, lock.read_locked():
        nursery.start_soon(write)
        nursery.start_soon(read)
        await second.wait()


async def service(sim: Simulation) -> None:
    """The body needs the service once more when it is cancelled, and gets it."""
    sim.shutdown_within(2)
    asked, ask = trio.open_memory_channel[trio.Event](0)
    said_goodbye: list[bool] = []

    async def answer() -> None:
        async for question in ask:
            await trio.sleep(1)
            question.set()

    async def say(what: trio.Event) -> None:
        await asked.send(what)
        await what.wait()

    async with tricycle.open_service_nursery() as nursery:
        nursery.start_soon(answer)
        sim.at_end(lambda: said_goodbye, "the service answers in the clean-up")
        try:
            await say(trio.Event())
        finally:
            with trio.move_on_after(3, shield=True):
                await say(trio.Event())
                said_goodbye.append(True)
        asked.close()


def main() -> None:
    """Print what is found."""
    print(sweep(readers_and_a_writer), end="\n\n")
    print(sweep(readers_and_a_writer, cancel="writer"), end="\n\n")
    print(explore(reader_needs_a_reader, schedules=50), end="\n\n")
    print(sweep(service), end="\n\n")
    print(explore(service, schedules=200))


if __name__ == "__main__":
    main()

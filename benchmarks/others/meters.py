"""aiometer (on AnyIO) under the kit: many calls, so many at once.

pip install . aiometer trio
python benchmarks/others/meters.py
"""

from __future__ import annotations

import functools

import aiometer
import trio
from youyou.testing import InjectedFault, Simulation, explore, sweep


class Server:
    """Counts who is being served."""

    def __init__(self) -> None:
        self.inside = 0
        self.served: list[int] = []

    async def fetch(self, number: int) -> int:
        """Takes ``number`` seconds."""
        self.inside += 1
        try:
            await trio.sleep(number)
            self.served.append(number)
            return number
        finally:
            self.inside -= 1


async def two_at_once(sim: Simulation) -> None:
    """Four calls, two at a time, in the order of the arguments."""
    sim.shutdown_within(0)
    server = Server()
    sim.always(lambda: server.inside <= 2, "two at once")
    sim.at_end(lambda: server.inside == 0, "nobody is inside")
    port = sim.port("server", server)
    try:
        results = await aiometer.run_on_each(port.fetch, [1, 2, 3, 4], max_at_once=2)
        assert results is None
        assert len(server.served) == 4, "all are served"
    except InjectedFault:
        sim.note("one failed")


async def first_answer(sim: Simulation) -> None:
    """The first of three answers is wanted."""
    server = Server()
    calls = [functools.partial(server.fetch, number) for number in (1, 20, 300)]
    answer = await aiometer.run_any(calls)
    assert answer == 1
    assert sim.now < 20, f"the answer of second 1 came at second {sim.now:g}"


async def left_early(sim: Simulation) -> None:
    """The consumer has seen enough after the first result."""
    server = Server()
    async with aiometer.amap(server.fetch, [1, 20, 300]) as results:
        async for _ in results:
            break
    assert sim.now < 20, f"left at second {sim.now:g}"


def main() -> None:
    """Print what is found."""
    print(sweep(two_at_once), end="\n\n")
    print(sweep(two_at_once, cancel=None, faults=("raise_before", "raise_after", "slow", "dies")), end="\n\n")
    print(explore(two_at_once, schedules=200), end="\n\n")
    print(sweep(first_answer), end="\n\n")
    print(sweep(left_early))


if __name__ == "__main__":
    main()

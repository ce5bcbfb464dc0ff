"""What one task gets wrong in its clean-up: lost, forgotten, left open, itself cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, closing
from io import BytesIO

import trio
from planted import by_sweep, mended, planted
from youyou.testing import Simulation


class Connection:
    """Counts how many are open."""

    def __init__(self) -> None:
        self.open = 0

    async def connect(self) -> None:
        """Cancellation: raises before anything is open."""
        await trio.lowlevel.checkpoint()
        self.open += 1

    async def aclose(self) -> None:
        """Cancellation: raises with the connection still open."""
        await trio.lowlevel.checkpoint()
        self.open -= 1


class Journal:
    """Lines that were written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def write(self, line: str) -> None:
        """Cancellation: raises with nothing written."""
        await trio.lowlevel.checkpoint()
        self.lines.append(line)


@planted(by_sweep(), "at_end", "yy1-a2", at="await trio.sleep(1)")
async def await_in_finally(sim: Simulation) -> None:
    """Closing takes an await, and every await in a cancelled scope raises again."""
    connection = Connection()
    sim.at_end(lambda: connection.open == 0, "the connection is closed")
    await connection.connect()
    try:
        await trio.sleep(1)
    finally:
        await connection.aclose()  # noqa: ASYNC102  # planted


@mended(await_in_finally)
async def shield_in_finally(sim: Simulation) -> None:
    """Close under a shield with a deadline."""
    connection = Connection()
    sim.at_end(lambda: connection.open == 0, "the connection is closed")
    await connection.connect()
    try:
        await trio.sleep(1)
    finally:
        with trio.move_on_after(5, shield=True):
            await connection.aclose()


@planted(by_sweep(), "at_end", "yy1-a2", at="await trio.sleep(1)")
async def record_left_to_a_cancelled_nursery(sim: Simulation) -> None:
    """The last line is written by a new task, in the nursery that is being cancelled."""
    journal = Journal()
    sim.at_end(lambda: len(journal.lines) != 1, "what was begun is noted as done or as cancelled")
    async with trio.open_nursery() as nursery:
        await journal.write("begun")
        try:
            await trio.sleep(1)
            nursery.start_soon(journal.write, "done")
        except trio.Cancelled:
            nursery.start_soon(journal.write, "cancelled")
            raise


@mended(record_left_to_a_cancelled_nursery)
async def record_written_at_once(sim: Simulation) -> None:
    """Write it before leaving, without an await."""
    journal = Journal()
    sim.at_end(lambda: len(journal.lines) != 1, "what was begun is noted as done or as cancelled")
    await journal.write("begun")
    last = "cancelled"
    try:
        await trio.sleep(1)
        last = "done"
    finally:
        journal.lines.append(last)


@planted(by_sweep(), "leak", "yy1-a1", at="await trio.sleep(1)")
async def never_awaited(sim: Simulation) -> None:
    """The path that only a cancel takes forgets an await."""
    journal = Journal()
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        journal.write("cancelled")
        raise


@mended(never_awaited)
async def awaited(sim: Simulation) -> None:
    """Await it."""
    journal = Journal()
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        with trio.move_on_after(5, shield=True):
            await journal.write("cancelled")
        raise


async def pages() -> AsyncIterator[int]:  # noqa: ASYNC900  # a generator is what is tested
    """Three pages, a second each, from a connection that is open meanwhile."""
    with closing(BytesIO()):
        for number in range(3):
            await trio.sleep(1)
            yield number


@planted(by_sweep(), "leak", "yy1-a2", at="await trio.sleep(2)")
async def generator_left_open(sim: Simulation) -> None:
    """A cancel in the body of the loop leaves the generator to the garbage collector."""
    async for _ in pages():
        await trio.sleep(2)


@mended(generator_left_open)
async def generator_closed(sim: Simulation) -> None:
    """Close it with ``aclosing``."""
    async with aclosing(pages()) as numbers:
        async for _ in numbers:
            await trio.sleep(2)


@planted(by_sweep(cancel="purchase", then="root"), "at_end", "yy1-a1.purchase-a2", at="await trio.sleep(1)")
async def cancelled_again_while_undoing(sim: Simulation) -> None:
    """A cancelled purchase is refunded, unless everything is cancelled meanwhile."""
    paid = bought = 0
    sim.at_end(lambda: paid == bought, "paid for what was bought")
    with sim.scope("purchase"):
        paid = 1
        await trio.sleep(1)
        bought = 1
    if not bought:
        await trio.sleep(1)
        paid = 0
    await trio.lowlevel.checkpoint()


@mended(cancelled_again_while_undoing)
async def undone_under_a_shield(sim: Simulation) -> None:
    """Refund under a shield with a deadline."""
    paid = bought = 0
    sim.at_end(lambda: paid == bought, "paid for what was bought")
    with sim.scope("purchase"):
        paid = 1
        await trio.sleep(1)
        bought = 1
    if not bought:
        with trio.move_on_after(5, shield=True):
            await trio.sleep(1)
            paid = 0
    await trio.lowlevel.checkpoint()

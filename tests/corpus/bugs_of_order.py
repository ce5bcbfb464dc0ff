"""What only some orders of tasks, or some late answers, bring out."""

from __future__ import annotations

import trio
from planted import by_exploring, mended, planted
from youyou.testing import Simulation


@planted(by_exploring(schedules=60), "at_end", "yy1-d2.1")
async def events_out_of_order(sim: Simulation) -> None:
    """Each event is published by a task of its own."""
    seen: list[int] = []
    sim.at_end(lambda: seen == sorted(seen), "events come in order")

    async def publish(number: int) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(publish, number)


@mended(events_out_of_order)
async def events_through_one_channel(sim: Simulation) -> None:
    """One task publishes all of them."""
    seen: list[int] = []
    sim.at_end(lambda: seen == sorted(seen), "events come in order")
    send, receive = trio.open_memory_channel[int](3)

    async def publish() -> None:
        async for number in receive:
            await trio.lowlevel.checkpoint()
            seen.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(publish)
        with send:
            for number in range(3):
                await send.send(number)


@planted(by_exploring(schedules=60), "at_end", "yy1-d1.1")
async def lost_update(sim: Simulation) -> None:
    """Two tasks read a number, wait, and write it back plus one."""
    account = {"balance": 0}
    sim.at_end(lambda: account["balance"] == 2, "both deposits count")

    async def deposit(delay: float) -> None:
        await trio.sleep(delay)
        balance = account["balance"]
        await trio.sleep(1)
        account["balance"] = balance + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(deposit, 1)
        nursery.start_soon(deposit, 2)


@mended(lost_update)
async def update_under_a_lock(sim: Simulation) -> None:
    """Read, wait and write under a lock."""
    account = {"balance": 0}
    lock = trio.Lock()
    sim.at_end(lambda: account["balance"] == 2, "both deposits count")

    async def deposit(delay: float) -> None:
        await trio.sleep(delay)
        async with lock:
            balance = account["balance"]
            await trio.sleep(1)
            account["balance"] = balance + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(deposit, 1)
        nursery.start_soon(deposit, 2)


@planted(by_exploring(schedules=60), "deadlock", "yy1-d1.1")
async def locks_in_both_orders(sim: Simulation) -> None:
    """One task takes A, then B; the other takes B, then A."""
    a, b = trio.Lock(), trio.Lock()

    async def one() -> None:
        async with a, b:
            await trio.lowlevel.checkpoint()

    async def other() -> None:
        await trio.lowlevel.checkpoint()
        async with b, a:
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        nursery.start_soon(other)


@mended(locks_in_both_orders)
async def locks_in_one_order(sim: Simulation) -> None:
    """Every task takes A first."""
    a, b = trio.Lock(), trio.Lock()

    async def one() -> None:
        async with a, b:
            await trio.lowlevel.checkpoint()

    async def other() -> None:
        await trio.lowlevel.checkpoint()
        async with a, b:
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        nursery.start_soon(other)


class Database:
    """Counts its connections."""

    def __init__(self) -> None:
        self.connections = 0

    async def connect(self) -> int:
        """A checkpoint."""
        await trio.lowlevel.checkpoint()
        self.connections += 1
        return self.connections


@planted(by_exploring(latency=True, schedules=60), "at_end", "yy1-d1.3-l")
async def opened_twice(sim: Simulation) -> None:
    """Two tasks see that there is no connection yet, and each opens one."""
    database = Database()
    port = sim.port("database", database)
    shared: list[int] = []
    sim.at_end(lambda: database.connections == 1, "there is one connection")

    async def user(delay: float) -> None:
        await trio.sleep(delay)
        if not shared:
            shared.append(await port.connect())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(user, 0)
        nursery.start_soon(user, 0.5)


@mended(opened_twice)
async def opened_under_a_lock(sim: Simulation) -> None:
    """Look and open under a lock."""
    database = Database()
    port = sim.port("database", database)
    shared: list[int] = []
    lock = trio.Lock()
    sim.at_end(lambda: database.connections == 1, "there is one connection")

    async def user(delay: float) -> None:
        await trio.sleep(delay)
        async with lock:
            if not shared:
                shared.append(await port.connect())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(user, 0)
        nursery.start_soon(user, 0.5)


class Guests:
    """Hears of everybody."""

    async def greet(self, name: str) -> str:
        """A checkpoint."""
        await trio.lowlevel.checkpoint()
        return name


@planted(by_exploring(latency=True, schedules=60), "error", "yy1-d0.3-l")
async def changed_while_iterating(sim: Simulation) -> None:
    """Somebody leaves while everybody is being greeted."""
    port, here = sim.port("guests", Guests()), {"ann": 1, "bob": 2}

    async def leave() -> None:
        await trio.sleep(0.5)
        del here["ann"]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        for name in here:
            await port.greet(name)


@mended(changed_while_iterating)
async def iterates_over_a_copy(sim: Simulation) -> None:
    """Greet those who were here when it began."""
    port, here = sim.port("guests", Guests()), {"ann": 1, "bob": 2}

    async def leave() -> None:
        await trio.sleep(0.5)
        del here["ann"]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave)
        for name in list(here):
            await port.greet(name)


@planted(by_exploring(schedules=60), "at_end", "yy1-d2.1")
async def cancel_overtakes_the_answer(sim: Simulation) -> None:
    """Who has sent the answer ends everybody, perhaps before it was kept."""
    kept: list[int] = []
    sim.at_end(lambda: kept == [1], "the answer is kept")
    send, receive = trio.open_memory_channel[int](0)

    async def keep() -> None:
        answer = await receive.receive()
        await trio.lowlevel.checkpoint()
        kept.append(answer)

    async def answer(everybody: trio.CancelScope) -> None:
        await send.send(1)
        await trio.lowlevel.checkpoint()
        everybody.cancel(reason="answered")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        nursery.start_soon(answer, nursery.cancel_scope)


@mended(cancel_overtakes_the_answer)
async def cancel_after_the_answer(sim: Simulation) -> None:
    """Who has kept it ends everybody."""
    kept: list[int] = []
    sim.at_end(lambda: kept == [1], "the answer is kept")
    send, receive = trio.open_memory_channel[int](0)

    async def keep(everybody: trio.CancelScope) -> None:
        answer = await receive.receive()
        await trio.lowlevel.checkpoint()
        kept.append(answer)
        everybody.cancel(reason="answered")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep, nursery.cancel_scope)
        nursery.start_soon(send.send, 1)

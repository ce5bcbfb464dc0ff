"""What goes wrong when the outside world fails, answers late, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import trio
from planted import by_exploring, by_sweep, mended, planted
from youyou.testing import Chaos, InjectedFault, Simulation


class Shop:
    """Orders that it has."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    async def order(self, what: str) -> str:
        """A checkpoint before and after the effect."""
        await trio.lowlevel.checkpoint()
        self.orders.append(what)
        await trio.lowlevel.checkpoint()
        return "ordered"

    async def order_once(self, what: str) -> str:
        """As `order`; a second time has no effect."""
        return "ordered" if what in self.orders else await self.order(what)

    async def create(self, what: str) -> None:
        """As `order`; a second time is an error."""
        if what in self.orders:
            raise FileExistsError(what)
        await self.order(what)

    async def items(self) -> AsyncIterator[str]:  # noqa: ASYNC900  # a generator is what is tested
        """Two items and a full stop."""
        for item in ("tea", "milk", "."):
            await trio.lowlevel.checkpoint()
            yield item


@planted(by_sweep(cancel=None, faults=("hang",)), "at_end", "yy1-f1.hang", at='await port.order("tea")')
async def timeout_taken_for_success(sim: Simulation) -> None:
    """``move_on_after`` moves on, and nobody asks why."""
    shop = Shop()
    port = sim.port("shop", shop)
    told: list[str] = []
    sim.at_end(lambda: told == shop.orders, "what the customer is told is true")
    with trio.move_on_after(5):
        await port.order("tea")
    told.append("tea")


@mended(timeout_taken_for_success)
async def timeout_told(sim: Simulation) -> None:
    """Say it only if it was done."""
    shop = Shop()
    port = sim.port("shop", shop)
    told: list[str] = []
    sim.at_end(lambda: told == shop.orders, "what the customer is told is true")
    with trio.move_on_after(5):
        await port.order("tea")
        told.append("tea")


@planted(
    by_sweep(cancel=None, faults=("hang",)), "deadlock", "yy1-f1.hang", at='await sim.port("shop", Shop()).order("tea")'
)
async def no_timeout(sim: Simulation) -> None:
    """Nobody limits how long the shop may take."""
    await sim.port("shop", Shop()).order("tea")


@mended(no_timeout)
async def with_a_timeout(sim: Simulation) -> None:
    """Limit it."""
    with trio.move_on_after(60):
        await sim.port("shop", Shop()).order("tea")


@planted(
    by_sweep(cancel=None, faults=("raise_before", "raise_after")),
    "at_end",
    "yy1-f1.raise_after",
    at='await port.order("tea")',
)
async def ordered_twice(sim: Simulation) -> None:
    """The order arrived, its answer was lost, and it is sent again."""
    shop = Shop()
    sim.at_end(lambda: shop.orders == ["tea"], "tea is ordered once")
    port = sim.port("shop", shop)
    for _ in range(3):
        try:
            await port.order("tea")
            break
        except InjectedFault:
            await trio.sleep(1)


@mended(ordered_twice)
async def ordered_with_a_key(sim: Simulation) -> None:
    """A key tells the shop that it is the same order."""
    shop = Shop()
    sim.at_end(lambda: shop.orders == ["tea"], "tea is ordered once")
    port = sim.port("shop", shop)
    for _ in range(3):
        try:
            await port.order_once("tea")
            break
        except InjectedFault:
            await trio.sleep(1)


@planted(
    by_sweep(cancel=None, faults=("raise_before", "raise_after"), max_steps=300),
    "steps",
    "yy1-f1.raise_after",
    at='await port.create("account")',
)
async def retries_forever(sim: Simulation) -> None:
    """What failed once is tried until it works, and after a lost answer it never does."""
    port = sim.port("shop", Shop())
    while True:
        try:
            await port.create("account")
            break
        except Exception:
            await trio.sleep(1)


@mended(retries_forever)
async def asks_what_is_wrong(sim: Simulation) -> None:
    """Know what a second attempt may be told."""
    port = sim.port("shop", Shop())
    while True:
        try:
            await port.create("account")
            break
        except FileExistsError:
            break
        except InjectedFault:
            await trio.sleep(1)


@planted(by_sweep(cancel=None, faults=("raise_before",)), "at_end", "yy1-f1.raise_before")
async def group_not_caught(sim: Simulation) -> None:
    """A nursery raises groups, and ``except`` does not look into them."""
    port, came = sim.port("shop", Shop()), []
    sim.at_end(lambda: bool(came), "there is tea or an apology")
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(port.order, "tea")
        came.append("tea")
    except InjectedFault:
        came.append("sorry")


@mended(group_not_caught)
async def group_caught(sim: Simulation) -> None:
    """Catch it with ``except*``."""
    port, came = sim.port("shop", Shop()), []
    sim.at_end(lambda: bool(came), "there is tea or an apology")
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(port.order, "tea")
        came.append("tea")
    except* InjectedFault:
        came.append("sorry")


@planted(
    by_sweep(cancel=None, faults=("raise_before",)),
    "error",
    "yy1-f1.raise_before",
    at='placed["tea"] = await port.order("tea")',
)
async def error_masked(sim: Simulation) -> None:
    """What ``finally`` raises takes the place of what went wrong."""
    port, placed = sim.port("shop", Shop()), {}
    try:
        placed["tea"] = await port.order("tea")
    finally:
        sim.note(placed["tea"])


@mended(error_masked)
async def error_kept(sim: Simulation) -> None:
    """Let the clean-up cope with what was not reached."""
    port, placed = sim.port("shop", Shop()), {}
    try:
        placed["tea"] = await port.order("tea")
    finally:
        sim.note(placed.get("tea", "nothing"))


@planted(by_sweep(cancel=None, faults=("cut",)), "at_end", "yy1-f2.cut", at="got = [item async for item in items]")
async def cut_taken_for_the_end(sim: Simulation) -> None:
    """A stream that stops early looks like one that is complete."""
    port = sim.port("shop", Shop())
    complete: list[str] = []
    sim.at_end(lambda: not complete or complete[-1] == ".", "what is called complete has its full stop")
    async with aclosing(port.items()) as items:
        got = [item async for item in items]
    complete.extend(got)


@mended(cut_taken_for_the_end)
async def end_looked_for(sim: Simulation) -> None:
    """Only the end mark says that it is complete."""
    port = sim.port("shop", Shop())
    complete: list[str] = []
    sim.at_end(lambda: not complete or complete[-1] == ".", "what is called complete has its full stop")
    async with aclosing(port.items()) as items:
        got = [item async for item in items]
    if got[-1:] == ["."]:
        complete.extend(got)


@planted(by_sweep(cancel=None, faults=("raise_before", "dies")), "at_end", "yy1-f1.dies", at='await port.order("tea")')
async def died_still_running(sim: Simulation) -> None:
    """What dies with something else than an ``Exception`` is listed as running forever."""
    port, status = sim.port("shop", Shop()), ["running"]
    sim.at_end(lambda: status != ["running"], "nothing is running")
    try:
        await port.order("tea")
        status[0] = "done"
    except Exception:
        status[0] = "failed"


@mended(died_still_running)
async def died_and_noted(sim: Simulation) -> None:
    """Decide in ``finally``."""
    port, status = sim.port("shop", Shop()), ["running"]
    sim.at_end(lambda: status != ["running"], "nothing is running")
    last = "failed"
    try:
        await port.order("tea")
        last = "done"
    finally:
        status[0] = last


@planted(by_exploring(chaos=Chaos(heal=30), schedules=40), "time", "yy1-d1.1,2.1,4.1-c013.30,600")
async def breaker_never_closes(sim: Simulation) -> None:
    """After three failures nobody tries any more, so nobody notices that the shop is back."""
    port, failures, left = sim.port("shop", Shop()), 0, ["tea", "milk", "salt"]
    while left:
        if failures < 3:
            try:
                await port.order(left[0])
                left.pop(0)
            except InjectedFault:
                failures += 1
        await trio.sleep(5)


@mended(breaker_never_closes)
async def breaker_tries_again(sim: Simulation) -> None:
    """Try once in a while."""
    port, failures, left = sim.port("shop", Shop()), 0, ["tea", "milk", "salt"]
    while left:
        try:
            await port.order(left[0])
            left.pop(0)
            failures = 0
        except InjectedFault:
            failures += 1
        await trio.sleep(5 if failures < 3 else 30)

"""What a program gets wrong when it ends: too late, never, in the wrong order, or not at all."""

from __future__ import annotations

import math

import trio
from planted import by_sweep, mended, planted
from youyou.testing import Simulation


@planted(by_sweep(), "shutdown", "yy1-a7", at="await trio.sleep(1)")
async def shield_without_deadline(sim: Simulation) -> None:
    """What is left is sent under a shield, however much that is."""
    sim.shutdown_within(5)
    left: list[int] = []
    try:
        for number in range(10):
            await trio.sleep(1)
            left.append(number)
        left.clear()
    finally:
        with trio.CancelScope(shield=True):
            for _ in left:
                await trio.sleep(1)  # noqa: ASYNC102  # planted


@mended(shield_without_deadline)
async def shield_with_deadline(sim: Simulation) -> None:
    """Give the shield a deadline."""
    sim.shutdown_within(5)
    left: list[int] = []
    try:
        for number in range(10):
            await trio.sleep(1)
            left.append(number)
        left.clear()
    finally:
        with trio.move_on_after(5, shield=True):
            for _ in left:
                await trio.sleep(1)


@planted(by_sweep(), "shutdown", "yy1-a2", at="await trio.sleep(10)")
async def graces_add_up(sim: Simulation) -> None:
    """Inner and outer clean-up each take the whole grace, one after the other."""
    sim.shutdown_within(3)

    async def tidy() -> None:
        with trio.move_on_after(3, shield=True):
            await trio.sleep(2)

    try:
        await trio.sleep(1)
        try:
            await trio.sleep(10)
        finally:
            await tidy()  # noqa: ASYNC102  # planted
    finally:
        await tidy()  # noqa: ASYNC102  # planted


@mended(graces_add_up)
async def one_deadline_for_all(sim: Simulation) -> None:
    """Fix one point in time at the first clean-up, and let all end there."""
    sim.shutdown_within(3)
    end = math.inf

    async def tidy() -> None:
        nonlocal end
        end = min(end, trio.current_time() + 3)
        with trio.CancelScope(shield=True, deadline=end):
            await trio.sleep(2)

    try:
        await trio.sleep(1)
        try:
            await trio.sleep(10)
        finally:
            await tidy()  # noqa: ASYNC102  # shields itself
    finally:
        await tidy()  # noqa: ASYNC102  # shields itself


@planted(by_sweep(), "deadlock", "yy1-a2")
async def start_with_a_shield(sim: Simulation) -> None:
    """A cancelled ``start()`` waits for a task that is shielded until told to stop, and nobody tells it."""
    stop = trio.Event()

    async def service(*, task_status: trio.TaskStatus[None]) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
            task_status.started()
            await stop.wait()

    async with trio.open_nursery() as nursery:
        try:
            await trio.sleep(1)
            await nursery.start(service)
            await trio.sleep(1)
        finally:
            stop.set()


@mended(start_with_a_shield)
async def start_soon_and_an_event(sim: Simulation) -> None:
    """Spawn it with ``start_soon`` and wait for an event, which a cancel interrupts."""
    stop, started = trio.Event(), trio.Event()

    async def service() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
            started.set()
            await stop.wait()

    async with trio.open_nursery() as nursery:
        try:
            await trio.sleep(1)
            nursery.start_soon(service)
            await started.wait()
            await trio.sleep(1)
        finally:
            stop.set()


class Store:
    """Refuses what is written after it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, line: str) -> None:
        """Not a checkpoint."""
        if self.closed:
            raise RuntimeError(f"{line} written to a closed store")


@planted(by_sweep(), "error", "yy1-a2", at="await trio.sleep(5)")
async def closed_in_the_wrong_order(sim: Simulation) -> None:
    """The store is closed inside the nursery whose tasks still write to it when they are cancelled."""
    store = Store()

    async def worker() -> None:
        last = "unfinished"
        try:
            await trio.sleep(3)
            last = "finished"
        finally:
            store.write(last)

    async with trio.open_nursery() as nursery:
        try:
            await trio.sleep(1)
            nursery.start_soon(worker)
            await trio.sleep(5)
        finally:
            store.closed = True


@mended(closed_in_the_wrong_order)
async def closed_after_its_users(sim: Simulation) -> None:
    """Close it outside the nursery: what was opened first is closed last."""
    store = Store()

    async def worker() -> None:
        last = "unfinished"
        try:
            await trio.sleep(3)
            last = "finished"
        finally:
            store.write(last)

    try:
        async with trio.open_nursery() as nursery:
            await trio.sleep(1)
            nursery.start_soon(worker)
            await trio.sleep(5)
    finally:
        store.closed = True


@planted(by_sweep(), "leak", "yy1-a1", at="await trio.sleep(1)")
async def system_task_left_running(sim: Simulation) -> None:
    """A heartbeat without a parent is stopped only on the way that nobody cancels."""
    scope = trio.CancelScope()

    async def heartbeat() -> None:
        with scope:
            await trio.sleep_forever()

    trio.lowlevel.spawn_system_task(heartbeat)
    await trio.sleep(1)
    scope.cancel(reason="no longer needed")
    await trio.sleep(1)


@mended(system_task_left_running)
async def heartbeat_in_a_nursery(sim: Simulation) -> None:
    """Give it a parent."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep(1)
        nursery.cancel_scope.cancel(reason="no longer needed")


@planted(by_sweep(cancel="loader"), "deadlock", "yy1-a2.loader", at="await trio.sleep(1)")
async def event_never_set(sim: Simulation) -> None:
    """Who is cancelled does not say that it has ended, and who waits for it waits forever."""
    loaded = trio.Event()

    async def loader() -> None:
        with sim.scope("loader"):
            await trio.sleep(1)
            loaded.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(loader)
        await loaded.wait()


@mended(event_never_set)
async def event_set_in_finally(sim: Simulation) -> None:
    """Tell in ``finally``, whatever came of it."""
    loaded = trio.Event()

    async def loader() -> None:
        try:
            with sim.scope("loader"):
                await trio.sleep(1)
        finally:
            loaded.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(loader)
        await loaded.wait()


class Session:
    """Takes a second to close."""

    def __init__(self) -> None:
        self.closing = False
        self.closed = trio.Event()

    async def aclose(self) -> None:
        """Close, unless somebody does already."""
        if not self.closing:
            self.closing = True
            await trio.sleep(1)
            self.closed.set()


@planted(by_sweep(cancel="close"), "error", "yy1-b2.close")
async def second_close_returns_early(sim: Simulation) -> None:
    """Who closes second is told at once that it is closed, while the first is still closing."""
    session = Session()
    sim.action("close", session.aclose)
    await trio.sleep(1)
    await trio.sleep(0.5)
    await session.aclose()
    assert session.closed.is_set(), "closed when told so"


@mended(second_close_returns_early)
async def second_close_waits(sim: Simulation) -> None:
    """Whoever closes waits until it is closed."""
    session = Session()

    async def close() -> None:
        await session.aclose()
        await session.closed.wait()

    sim.action("close", close)
    await trio.sleep(1)
    await trio.sleep(0.5)
    await close()
    assert session.closed.is_set(), "closed when told so"

"""What a cancelled task leaves wrong behind: counters, locks, slots, flags."""

from __future__ import annotations

import trio
from planted import by_sweep, mended, planted
from youyou.testing import Simulation


@planted(by_sweep(), "at_end", "yy1-a1", at="await trio.lowlevel.checkpoint()")
async def counted_before_the_checkpoint(sim: Simulation) -> None:
    """The counter goes up, then entering is cancelled, and nobody counts down."""
    inside = 0
    sim.at_end(lambda: inside == 0, "nobody is counted as inside")

    async def enter() -> None:
        nonlocal inside
        inside += 1
        await trio.lowlevel.checkpoint()

    await enter()
    try:
        await trio.sleep(1)
    finally:
        inside -= 1


@mended(counted_before_the_checkpoint)
async def counted_after_the_checkpoint(sim: Simulation) -> None:
    """Count when nothing can fail any more."""
    inside = 0
    sim.at_end(lambda: inside == 0, "nobody is counted as inside")

    async def enter() -> None:
        nonlocal inside
        await trio.lowlevel.checkpoint()
        inside += 1

    await enter()
    try:
        await trio.sleep(1)
    finally:
        inside -= 1


@planted(by_sweep(cancel="job"), "deadlock", "yy1-a2.job", at="await trio.sleep(1)")
async def lock_leaked(sim: Simulation) -> None:
    """A cancelled job keeps the lock, and the task that holds it now waits for one that needs it."""
    lock, done = trio.Lock(), trio.Event()

    async def first() -> None:
        with sim.scope("job"):
            await lock.acquire()
            await trio.sleep(1)
            lock.release()
        await done.wait()

    async def second() -> None:
        await trio.sleep(2)
        async with lock:
            done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)


@mended(lock_leaked)
async def lock_in_a_block(sim: Simulation) -> None:
    """Hold the lock with ``async with``."""
    lock, done = trio.Lock(), trio.Event()

    async def first() -> None:
        with sim.scope("job"):
            async with lock:
                await trio.sleep(1)
        await done.wait()

    async def second() -> None:
        await trio.sleep(2)
        async with lock:
            done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)


@planted(by_sweep(), "at_end", "yy1-a4", at="await trio.sleep(1)")
async def slot_leaked_in_a_child(sim: Simulation) -> None:
    """A child gives its slot back only if nothing goes wrong."""
    free = [1, 2]
    sim.at_end(lambda: len(free) == 2, "every slot is free again")

    async def child() -> None:
        await trio.lowlevel.checkpoint()
        slot = free.pop()
        await trio.sleep(1)
        free.append(slot)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        nursery.start_soon(child)


@mended(slot_leaked_in_a_child)
async def slot_given_back_by_the_child(sim: Simulation) -> None:
    """Give it back in ``finally``."""
    free = [1, 2]
    sim.at_end(lambda: len(free) == 2, "every slot is free again")

    async def child() -> None:
        await trio.lowlevel.checkpoint()
        slot = free.pop()
        try:
            await trio.sleep(1)
        finally:
            free.append(slot)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        nursery.start_soon(child)


@planted(by_sweep(), "always", "yy1-a1", at="await trio.sleep(1)")
async def released_twice(sim: Simulation) -> None:
    """The handler releases the semaphore, and so does ``finally``."""
    places = trio.Semaphore(2)
    sim.always(lambda: places.value <= 2, "there are two places")
    await places.acquire()
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        places.release()
        raise
    finally:
        places.release()


@mended(released_twice)
async def released_once(sim: Simulation) -> None:
    """Release in one place."""
    places = trio.Semaphore(2)
    sim.always(lambda: places.value <= 2, "there are two places")
    await places.acquire()
    try:
        await trio.sleep(1)
    finally:
        places.release()


@planted(by_sweep(cancel="refresh"), "at_end", "yy1-a1.refresh", at="await trio.sleep(1)")
async def stale_and_called_fresh(sim: Simulation) -> None:
    """The cache is marked fresh before the fetch that a cancel may stop."""
    cache = {"value": "old", "fresh": "no"}
    sim.at_end(lambda: cache["fresh"] == "no" or cache["value"] == "new", "what is called fresh is new")
    with sim.scope("refresh"):
        cache["fresh"] = "yes"
        await trio.sleep(1)
        cache["value"] = "new"


@mended(stale_and_called_fresh)
async def fresh_when_fetched(sim: Simulation) -> None:
    """Mark it when the value is there."""
    cache = {"value": "old", "fresh": "no"}
    sim.at_end(lambda: cache["fresh"] == "no" or cache["value"] == "new", "what is called fresh is new")
    with sim.scope("refresh"):
        await trio.sleep(1)
        cache.update(value="new", fresh="yes")

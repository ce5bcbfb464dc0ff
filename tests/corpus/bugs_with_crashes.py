"""What is wrong on the disk when the process dies."""

from __future__ import annotations

from contextlib import suppress

import trio
from planted import by_sweep, mended, planted
from youyou.testing import DurableLog, Simulation


class World:
    """What was told to the customer, and what was paid: no crash undoes that."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.paid: list[str] = []


def disk(sim: Simulation) -> tuple[DurableLog[str], World]:
    """What outlives a crash."""
    return sim.durable("log", DurableLog[str]()), sim.durable("world", World())


async def find_accepted(sim: Simulation) -> None:
    """Look foreverything that was accepted."""
    log, world = disk(sim)
    assert set(world.told) <= set(log), "accepted but lost"


@planted(by_sweep(cancel=None, crash=find_accepted), "error", "yy1-x1.1")
async def accepted_not_durable(sim: Simulation) -> None:
    """The customer is told before the entry is safe."""
    log, world = disk(sim)
    log.append("order 1")
    world.told.append("order 1")
    await trio.lowlevel.checkpoint()
    log.sync()


@mended(accepted_not_durable)
async def durable_then_accepted(sim: Simulation) -> None:
    """First make it safe, then tell."""
    log, world = disk(sim)
    log.append("order 1")
    await trio.lowlevel.checkpoint()
    log.sync()
    world.told.append("order 1")


async def read_transfers(sim: Simulation) -> None:
    """A transfer is both halves."""
    log, _ = disk(sim)
    halves = " ".join(log).split()
    assert halves.count("take") == halves.count("give"), "half a transfer"


@planted(by_sweep(cancel=None, crash=read_transfers), "error", "yy1-x2.1")
async def torn_batch(sim: Simulation) -> None:
    """Two entries that belong together are written one after the other, and made safe together."""
    log, _ = disk(sim)
    await trio.lowlevel.checkpoint()
    log.append("take")
    log.append("give")
    await trio.lowlevel.checkpoint()
    log.sync()
    await trio.lowlevel.checkpoint()


@mended(torn_batch)
async def batch_in_one_entry(sim: Simulation) -> None:
    """What belongs together is one entry."""
    log, _ = disk(sim)
    await trio.lowlevel.checkpoint()
    log.append("take give")
    await trio.lowlevel.checkpoint()
    log.sync()
    await trio.lowlevel.checkpoint()


def files(sim: Simulation) -> tuple[DurableLog[str], DurableLog[str]]:
    """An old file and a new one."""
    return sim.durable("old", DurableLog(["settings"], synced=1)), sim.durable("new", DurableLog[str]())


async def read_settings(sim: Simulation) -> None:
    """The new file if there is one, else the old one."""
    old, new = files(sim)
    assert "settings" in [*old, *new], "the settings are gone"


@planted(by_sweep(cancel=None, crash=read_settings), "error", "yy1-x1")
async def deleted_before_written(sim: Simulation) -> None:
    """Between two safe writes the settings are in neither file."""
    old, new = files(sim)
    old.entries.clear()
    old.sync()
    await trio.lowlevel.checkpoint()
    new.append("settings")
    new.sync()
    await trio.lowlevel.checkpoint()


@mended(deleted_before_written)
async def written_before_deleted(sim: Simulation) -> None:
    """Write the new one first."""
    old, new = files(sim)
    new.append("settings")
    new.sync()
    await trio.lowlevel.checkpoint()
    old.entries.clear()
    old.sync()
    await trio.lowlevel.checkpoint()


async def pay_what_is_open(sim: Simulation) -> None:
    """Pay whatever the log does not call paid, unless the bank knows its key."""
    log, world = disk(sim)
    sim.at_end(lambda: len(world.paid) <= 1, "paid at most once")
    if "ordered" in log and "paid" not in log:
        with suppress(KeyError):
            await pay(world, "key" if "key" in log else "")


async def pay(world: World, key: str) -> None:
    """The bank refuses a key that it has seen.

    Raises:
        KeyError: it has.
    """
    await trio.lowlevel.checkpoint()
    if key and key in world.paid:
        raise KeyError(key)
    world.paid.append(key)


@planted(by_sweep(cancel=None, crash=pay_what_is_open), "at_end", "yy1-x2")
async def repeated_by_recovery(sim: Simulation) -> None:
    """It was paid, but the note of it was not written yet."""
    log, world = disk(sim)
    log.append("ordered")
    log.sync()
    await pay(world, "")
    await trio.lowlevel.checkpoint()
    log.append("paid")
    log.sync()


@mended(repeated_by_recovery)
async def repeated_with_the_same_key(sim: Simulation) -> None:
    """Write down the key before it is used, and use it again."""
    log, world = disk(sim)
    log.append("key")
    log.append("ordered")
    log.sync()
    await pay(world, "key")
    await trio.lowlevel.checkpoint()
    log.append("paid")
    log.sync()

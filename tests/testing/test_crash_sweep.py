"""Crash after every step, recover from everything that may be left, check."""

from __future__ import annotations

import pytest
import trio
from youyou.testing import DurableLog, Simulation, replay, sweep


class Bank:
    """The world outside: what it did stays done."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    async def pay(self, what: str) -> None:
        await trio.lowlevel.checkpoint()
        self.paid.append(what)
        await trio.lowlevel.checkpoint()


class Client:
    """Anyone who was told that the order is safe."""

    def __init__(self) -> None:
        self.told: list[str] = []


def parts(sim: Simulation) -> tuple[DurableLog[str], Bank, Client]:
    """What outlives a crash."""
    return sim.durable("log", DurableLog[str]()), sim.durable("bank", Bank()), sim.durable("client", Client())


def shop(*, synced: bool):
    """Takes an order, says so, pays, notes the payment."""

    async def scenario(sim: Simulation) -> None:
        log, bank, client = parts(sim)
        log.append("ordered")
        if synced:
            log.sync()
        await trio.lowlevel.checkpoint()
        client.told.append("ordered")
        await trio.lowlevel.checkpoint()
        await sim.port("bank", bank).pay("order 1")
        log.append("paid")
        log.sync()
        await trio.lowlevel.checkpoint()

    return scenario


def recovery(*, key: bool):
    """Reads the log and pays what seems unpaid; with ``key`` the bank is asked first."""

    async def recover(sim: Simulation) -> None:
        log, bank, client = parts(sim)
        sim.at_end(lambda: len(bank.paid) <= 1, "paid once")
        assert not client.told or "ordered" in log, "accepted but lost"
        if "ordered" in log and "paid" not in log and not (key and bank.paid):
            await sim.port("bank", bank).pay("order 1")

    return recover


@pytest.mark.parametrize(
    ("synced", "key", "expected"),
    [(True, True, set()), (False, True, {"accepted but lost"}), (True, False, {"paid once"})],
)
def test_what_a_crash_brings_out(synced, key, expected):
    """An unsynced answer and a repeated effect are found; the right program is not accused."""
    report = sweep(shop(synced=synced), cancel=None, crash=recovery(key=key))

    said = " ".join(f.message for f in report.failures)
    assert expected == {what for what in ("accepted but lost", "paid once") if what in said}
    assert report.runs > 2 * report.planned


def test_a_crash_can_be_replayed_from_its_token():
    """Given the recovery again; without it the token is refused."""
    failing = sweep(shop(synced=False), cancel=None, crash=recovery(key=True))
    token = failing.failures[0].token

    again = replay(shop(synced=False), token, crash=recovery(key=True))

    assert failing.failures[0].message == again.failures[0].message
    assert "=== recovery" in again.trace
    with pytest.raises(ValueError, match="crash="):
        replay(shop(synced=False), token)


def test_clean_up_after_a_crash_does_not_reach_the_world():
    """The process is dead: its `finally` blocks change neither what is durable nor what ports did."""
    banks = []

    async def scenario(sim: Simulation) -> None:
        log, bank, _ = parts(sim)
        banks.append(bank)
        try:
            await trio.sleep(1)
        finally:
            log.append("ended")
            log.sync()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
                await sim.port("bank", bank).pay("goodbye")

    async def recover(sim: Simulation) -> None:
        log, bank, _ = parts(sim)
        assert ("ended" in log) >= bool(bank.paid)
        sim.note(f"{len(log)} entries")

    report = sweep(scenario, cancel=None, crash=recover)

    report.assert_ok()
    assert [] == banks[2].paid


def test_what_was_not_synced_may_be_lost_in_part():
    """All prefixes that hold the synced part, the whole log first."""
    log = DurableLog(["a", "b", "c"], synced=1)

    assert [["a", "b", "c"], ["a", "b"], ["a"]] == [list(state) for state in log.crash_states()]

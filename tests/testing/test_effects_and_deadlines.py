"""Every way in which a call can end, done and not done; and answers that come exactly when nobody waits any more."""

from __future__ import annotations

import pytest
import trio
from youyou.testing import FaultPlan, Simulation, explore, sweep


class Bank:
    """Takes a second to take money."""

    def __init__(self) -> None:
        self.paid = 0

    async def charge(self) -> None:
        """Take it."""
        await trio.sleep(1)
        self.paid += 1


async def buys(sim: Simulation) -> None:
    """Takes a cancelled payment for one that was not made."""
    real, count = Bank(), {"stock": 1, "sold": 0, "unknown": 0}
    bank = sim.port("bank", real)
    sim.at_end(lambda: real.paid <= count["sold"] + count["unknown"], "what is paid is sold")
    count["stock"] -= 1
    try:
        await bank.charge()
    except trio.Cancelled:
        count["stock"] += 1
        raise
    except Exception:
        count["unknown"] += 1
    else:
        count["sold"] += 1


def test_a_cancel_after_the_effect_is_tried():
    """The money was taken, and a real cancel came in place of the answer."""
    assert sweep(buys, faults=("raise_before", "raise_after", "slow"), pairs=30).ok
    report = sweep(buys, cancel=None, faults=("cancel_after",))

    assert ["what is paid is sold: is False"] == [failure.message for failure in report.failures]
    assert ("cancel_after at bank.charge#1 (port call 1)",) == report.failures[0].injected
    assert (1, 1) == (report.planned, report.delivered)


def test_a_cancel_after_the_effect_behind_a_shield_has_no_effect():
    """The call returns, and the report counts it."""

    async def scenario(sim: Simulation) -> None:
        bank = sim.port("bank", Bank())
        with trio.CancelScope(shield=True):
            await bank.charge()

    report = sweep(scenario, cancel=None, faults=("cancel_after",))

    assert (1, 0, 1) == (report.planned, report.delivered, report.without_effect)


@pytest.mark.parametrize("end", ["hang", "slow", "dies"])
@pytest.mark.parametrize("done", [False, True])
def test_each_end_of_a_call_comes_before_and_after_its_effect(end, done):
    """The two cases of each."""
    seen: list[int] = []

    async def scenario(sim: Simulation) -> None:
        real = Bank()
        bank = sim.port("bank", real)
        sim.at_end(lambda: seen.append(real.paid))
        with trio.move_on_after(10):
            await bank.charge()

    sweep(scenario, cancel=None, faults=(f"{end}_after" if done else end,))

    # Twice undisturbed, broken, and undisturbed once more for the drawing.
    assert [1, 1, int(done), 1] == seen


def test_a_cancel_after_the_effect_needs_a_simulation():
    """A plan by itself does not know what to cancel."""
    with pytest.raises(ValueError, match="needs a simulation"):
        FaultPlan().at("bank", "charge", mode="cancel_after")


class Server:
    """Answers at once; its lateness is the kit's."""

    async def get(self) -> None:
        """Nothing to do."""


@pytest.mark.parametrize("limit", [0.5, 1, 2, 17, 3600])
def test_a_race_at_a_deadline_is_found_whatever_the_deadline(limit):
    """Latencies are drawn from the program's own deadlines as well."""

    async def scenario(sim: Simulation) -> None:
        server, got = sim.port("server", Server()), trio.Event()

        async def reply() -> None:
            await server.get()
            got.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(reply)
            with trio.move_on_after(limit) as scope:
                await got.wait()
            assert not (got.is_set() and scope.cancelled_caught), "an answer came and was thrown away"
            nursery.cancel_scope.cancel()

    assert not explore(scenario, schedules=400, latency=True).ok

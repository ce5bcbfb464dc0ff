"""A host under the kit: stopped after every step, in any way, it leaves nothing open and loses nothing."""

from __future__ import annotations

import pytest
import trio
import youyou
from youyou.core.randomness import randomness
from youyou.testing import AgentInvariants, Simulation, explore, sweep

from .conftest import House

pytestmark = pytest.mark.long  # some hundred runs for each test


async def visits(sim: Simulation) -> None:
    """Three people on two places: a new session each, one turn with a tool, and a second turn later."""
    randomness.set(sim.random)
    house = House(seconds=0.1)
    invariants = AgentInvariants(stored=house.storage.events)
    sim.at_end(invariants.check)
    sim.at_end(lambda: sum(p.entered for p in house.providers) == sum(p.left for p in house.providers), "all is left")
    sim.at_end(lambda: house.log.count("plugin begins") == house.log.count("plugin ends"), "each plugin ends")

    async def execute(given: youyou.ToolInput) -> youyou.ToolOutput:
        await trio.sleep(0.1)
        return youyou.ToolOutput("done")

    house.tools = [youyou.Tool("work", "Works.", {"type": "object"}, execute)]

    async def turn(session: youyou.Session, text: str) -> None:
        turn = await session.send_message(text)
        async for _ in invariants.follow(turn, session):
            pass

    async def visit(number: int) -> None:
        try:
            async with host.open() as session:
                invariants.open(session)
                await turn(session, "call work")
            await trio.sleep(number)
            async with host.open(session.id) as again:
                if again is not session:
                    invariants.open(again)
                await turn(again, "hi")
        except (youyou.AgentClosed, youyou.SessionClosed):
            assert drained

    drained: list[bool] = []

    async def drain() -> None:
        drained.append(True)
        await host.drain(grace=0.05)

    async with house.host(max_open=2, idle_ms=500) as host:
        sim.action("drain", drain)
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(visit, number, name=f"visitor {number}")


@pytest.mark.parametrize("target", ["root", "drain", "ctrl-c"])
def test_a_host_that_is_stopped_anywhere_leaves_nothing_open(target):
    """A sample of the steps; the long suite tries them all."""
    sweep(visits, cancel=target, points=6).assert_ok()


@pytest.mark.long
@pytest.mark.parametrize("target", ["root", "drain", "ctrl-c"])
def test_a_host_that_is_stopped_after_any_step_leaves_nothing_open(target):
    """Every step, and again while the first stop is being cleaned up."""
    sweep(visits, cancel=target).assert_ok()


@pytest.mark.long
def test_a_drain_that_is_cancelled_leaves_nothing_open():
    """The host is cancelled while it drains."""
    sweep(visits, cancel="drain", points=100, then="root", then_points=3).assert_ok()


def test_a_host_works_in_any_order_of_tasks():
    """Orders of tasks change nothing."""
    explore(visits, schedules=4).assert_ok()

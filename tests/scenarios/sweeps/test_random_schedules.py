"""Three thousand random schedules of one mixed scenario: tools, a stop at any time, readers of any speed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
import youyou
from youyou.testing import Simulation, explore
from youyou.testing.agents.scripted import call, calls, say

pytestmark = pytest.mark.long

SCHEDULES = 3_000


async def mixed(world: Any, sim: Simulation) -> None:
    """One turn with a batch of tools, read or not, and perhaps stopped; every choice is the schedule's."""

    def pick(*options: Any) -> Any:
        return options[sim.choose(len(options))]

    world.configure(max_concurrent_tools=pick(8, 1, 2), event_buffer=pick(64, 1, 2))
    world.store.delay = pick(0.0, 0.1)
    mutating = pick(False, True)
    names = [f"tool{number}" for number in range(pick(3, 0, 1, 5))]
    for name in names:
        world.tool(name, takes=pick(1.0, 0.0, 2.0), mutating=mutating and pick(True, False))
    world.says(calls(*[call(name) for name in names], text="well") if names else say("hi"), say("done"))
    world.kind = pick("none", "turn", "close", "shutdown", "host")
    world.grace = pick(None, 0.0, 0.5)
    at, pause = pick(0.0, 0.05, 0.2, 1.0, 1.5), pick(0.0, 0.3)

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as host:

            async def stop() -> None:
                await trio.sleep(at)
                match world.kind:
                    case "turn":
                        world._cancel_turn()
                    case "close":
                        await world._close()
                    case "shutdown":
                        await world._shutdown()
                    case "host":
                        host.cancel("the host is cancelled")

            async with world.builder().build() as world.running:
                if await world.open():
                    async with world.opened:
                        nursery.start_soon(stop)
                        try:
                            await world.read(await world.send("go"), pause=pause)
                        except (youyou.SessionClosed, youyou.AgentClosed):
                            assert world.kind in ("close", "shutdown")
        nursery.cancel_scope.cancel()


def test_three_thousand_random_schedules(make_world: Any) -> None:
    """One terminal event, each call answered once, log and history agree, whatever was chosen."""

    seen: Counter[str] = Counter()

    async def scenario(sim: Simulation) -> None:
        world = make_world(sim, closing=5.0)
        await mixed(world, sim)
        seen[f"stopped by {world.kind}"] += 1
        if world.asking is not None:
            seen[f"turn {world.asking.status}"] += 1

    report = explore(scenario, schedules=SCHEDULES)
    print(f"{report.runs} runs in {report.seconds:.0f} s: {dict(seen)}")
    report.assert_ok()
    assert all(seen[f"stopped by {kind}"] > SCHEDULES // 20 for kind in ("turn", "close", "shutdown", "host")), seen
    assert min(seen["turn completed"], seen["turn cancelled"]) > SCHEDULES // 20, seen

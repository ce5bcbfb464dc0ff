"""Many orders of a scenario over all cores, kept in a file; says what they covered.

    python scripts/campaigns/orders.py --runs 1000000                       # three tasks that hand on and count
    python scripts/campaigns/orders.py --scenario agent --runs 100000       # a turn of our runtime with two tools
    python scripts/campaigns/orders.py --runs 1000000 --save orders.campaign    # stopped with Ctrl-C, it goes on there

Prints the report's line with the rate; exits with 1 on any failure.
"""

from __future__ import annotations

import argparse
import os
import sys

import trio
import youyou
from youyou.testing import Interrupted, ScriptedProvider, Simulation, call, calls, explore, say


async def counting(sim: Simulation) -> None:
    """Two producers and a consumer; each value arrives once, whatever the order."""
    send, receive = trio.open_memory_channel[int](1)
    seen: list[int] = []
    sim.at_end(lambda: sorted(seen) == [0, 1, 2, 3], "each arrives once")

    async def produce(first: int, out: trio.MemorySendChannel[int]) -> None:
        async with out:
            for number in (first, first + 1):
                await out.send(number)
                if number % 2 == 0:
                    await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        async with send:
            nursery.start_soon(produce, 0, send.clone())
            nursery.start_soon(produce, 2, send.clone())
        seen.extend([number async for number in receive])


async def agent(sim: Simulation) -> None:
    """A turn with two tool calls at once, then a text."""
    ran: list[str] = []
    sim.at_end(lambda: sorted(ran) == ["a", "b"], "each call ran once")

    @youyou.tool
    async def look_up(key: str) -> str:
        """Takes a second."""
        await trio.sleep(1)
        ran.append(key)
        return key

    asked = calls(call("look_up", {"key": "a"}, id="1"), call("look_up", {"key": "b"}, id="2"))
    provider = ScriptedProvider([asked, say("done")])
    config = youyou.AgentConfig(default_model="scripted")
    builder = youyou.AgentBuilder(config).register_model_provider(provider).register_tool(look_up)
    async with builder.build() as agent, agent.new_session() as session:
        turn = await session.send_message("go")
        result = await turn.result()
        assert result.status is youyou.TurnStatus.COMPLETED


SCENARIOS = {"counting": counting, "agent": agent}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), default="counting")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--budget", type=float, help="seconds")
    parser.add_argument("--save", metavar="FILE")
    options = parser.parse_args()
    print(f"{options.scenario}, {options.runs:,} orders, {options.workers} workers, seed {options.seed}", flush=True)
    try:
        report = explore(
            SCENARIOS[options.scenario],
            schedules=options.runs,
            seed=options.seed,
            workers=options.workers,
            budget=options.budget,
            save=options.save,
            strategy=("walk", "pct2", "guided", "pct3"),
        )
    except Interrupted as interrupted:
        print(interrupted.report)
        return 130
    print(report)
    print(f"{report.runs:,} runs in {report.seconds:,.0f} s, {report.rate:,.0f} a second")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())

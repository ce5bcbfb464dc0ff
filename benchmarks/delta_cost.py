"""What a delta costs on its way from a provider to a reader, and how much of them is held at a time (semantics 6).

python benchmarks/delta_cost.py
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio

from youyou import Agent, AgentBuilder, AgentConfig, ChatEvent, ChatRequest, Done, ModelInfo, Session, TextDelta
from youyou.messages.chat import SystemPrompt

DELTAS = 100_000
REPEATS = 3


class Talking:
    """Says a word 100 000 times."""

    id = "talking"

    def models(self) -> Sequence[ModelInfo]:
        """One model."""
        return [ModelInfo("talking", "Talking", 1_000_000_000)]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """As fast as it can, with a checkpoint now and then as a network would have it."""
        for number in range(DELTAS):
            if number % 20 == 0:
                await trio.lowlevel.checkpoint()
            yield TextDelta("word ")
        yield Done()


async def bare() -> float:
    """Seconds for the stream alone."""
    started = time.perf_counter()
    async for _ in Talking().chat(ChatRequest("talking", SystemPrompt(), ())):
        pass
    return time.perf_counter() - started


@asynccontextmanager
async def talking() -> AsyncIterator[tuple[Agent, Session]]:
    """An agent whose model talks, and a session."""
    builder = AgentBuilder(AgentConfig("talking")).register_model_provider(Talking())
    async with builder.build() as agent, await agent.new_session() as session:
        yield agent, session


async def read(way: str) -> tuple[float, int]:
    """Seconds of a turn that is read, or ``detached``, and the most events that waited."""
    async with talking() as (agent, session):
        turn = await session.send_message("go")
        started = time.perf_counter()
        peak = 0
        if way == "detached":
            turn.detach()
        async for event in turn:
            if event.sequence % 1_000 == 0:
                peak = max(peak, agent.statistics().peak_events)
        await turn.result()
        return time.perf_counter() - started, peak


async def stalled() -> tuple[int, int]:
    """Bytes that one second of a turn holds, and events that wait, when its reader reads one event and stops."""
    async with talking() as (agent, session):
        gc.collect()
        tracemalloc.start()
        turn = await session.send_message("go")
        await anext(turn)
        with trio.move_on_after(1):
            await trio.sleep_forever()
        waiting = agent.statistics().events_waiting
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        turn.cancel()
        await turn.result()
        return most, waiting


def main() -> None:
    """Measure and print."""
    alone = min(trio.run(bare) for _ in range(REPEATS))
    print(f"the stream alone: {DELTAS / alone:.0f} deltas/s")
    for way in ("read", "detached"):
        taken, peak = min(trio.run(read, way) for _ in range(REPEATS))
        held = f", at most {peak} events waiting" if way == "read" else ""
        print(f"{way}: {DELTAS / taken:.0f} events/s, {taken / alone:.1f} times the stream alone{held}")
    most, waiting = trio.run(stalled)
    print(f"a reader that stops: {waiting} events wait, {most / 1024:.0f} KiB held at most")


if __name__ == "__main__":
    main()

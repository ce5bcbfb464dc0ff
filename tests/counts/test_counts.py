"""What a turn costs in things that can be counted: steps, passes, writes, flushes, calls, blocks. No clock.

The figures are exact, so that a change which makes a turn dearer is seen in the change itself. A change that makes it
cheaper writes its new figures into the tables below; `pytest tests/counts` prints them next to the old ones.

Steps and passes depend on the order in which Trio runs the tasks that are ready. Trio tosses a coin for every batch;
here the coin always shows the same side, so each figure is given for both.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio._core._run as trio_run
import trio.testing
import youyou
from youyou import (
    AgentBuilder,
    AgentConfig,
    ChatEvent,
    ChatRequest,
    Done,
    ModelInfo,
    RunningTurn,
    Session,
    SessionEvent,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnCancelled,
)
from youyou.actors.recorder.recorder import Recorder
from youyou.testing import InMemorySessionStorage

CHAT, TOOLS, ONE_CALL = (0, 200), (8, 20), (1, 5)
"""Calls, then deltas: one answer of 200 deltas; 8 calls and an answer of 20; one call and an answer of 5."""

STEPS_AND_PASSES = {
    # workload, store: in the order in which tasks were woken; in the reverse order
    (CHAT, False): ((21, 12), (15, 9)),
    (CHAT, True): ((32, 17), (27, 15)),
    (TOOLS, False): ((31, 10), (22, 9)),
    (TOOLS, True): ((53, 20), (41, 19)),
    (ONE_CALL, False): ((14, 8), (15, 9)),
    (ONE_CALL, True): ((34, 19), (34, 19)),
}
WRITES_AND_FLUSHES = {
    # workload, with a store: as above
    CHAT: ((2, 2), (2, 2)),
    TOOLS: ((5, 5), (4, 4)),
    ONE_CALL: ((4, 4), (4, 4)),
}
PER_DELTA = {
    # Python: function calls (of Python and of C) from provider to reader; blocks of memory that a waiting one holds
    (3, 11): (28, 4),
    (3, 12): (28, 4),
    (3, 13): (28, 4),
}


class Scripted:
    """Calls at once, then deltas, without a single wait of its own."""

    id = "scripted"

    def __init__(self, calls: int, deltas: int) -> None:
        self.calls, self.deltas = calls, deltas

    def models(self) -> Sequence[ModelInfo]:
        """One model, whose window is never full."""
        return [ModelInfo("scripted", "Scripted", 10**9)]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Calls until it sees a result."""
        if self.calls and not isinstance(request.messages[-1], ToolResult):
            for number in range(self.calls):
                yield ToolCall(f"c{number}", "look", {"x": number})
        else:
            for _ in range(self.deltas):
                yield TextDelta("token ")
        yield Done()


class Paused(Scripted):
    """A delta; once told, the rest of them; then nothing more."""

    def __init__(self, deltas: int) -> None:
        super().__init__(0, deltas)
        self.go = trio.Event()

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Never ends by itself."""
        yield TextDelta("token ")
        await self.go.wait()
        for _ in range(self.deltas):
            yield TextDelta("token ")
        await trio.sleep_forever()


@youyou.tool
async def look(x: int) -> str:
    """Does nothing, at once."""
    return "ok"


class CountingStorage(InMemorySessionStorage):
    """Counts its writes."""

    writes = 0

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        """One more."""
        self.writes += 1
        await super().save_events(session_id, events)


class StepCounter(trio.abc.Instrument):
    """How often a task ran, and how often the loop went round."""

    steps = passes = 0

    def before_task_step(self, _: trio.lowlevel.Task) -> None:
        """One more step."""
        self.steps += 1

    def after_io_wait(self, _: float) -> None:
        """One more pass."""
        self.passes += 1


class Coin(random.Random):
    """Always shows the same side: 1.0 leaves a batch in its order, 0.0 turns it round."""

    side = 1.0

    def random(self) -> float:
        """The side."""
        return self.side


@pytest.fixture(params=[1.0, 0.0], ids=["woken order", "reverse order"])
def order(request, monkeypatch):
    """Trio's order of tasks, fixed. 0 or 1: where a table has its figure."""
    coin = Coin()
    coin.side = request.param
    monkeypatch.setattr(trio_run, "_r", coin)
    monkeypatch.setattr(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", False)  # Hypothesis sets it when it is imported
    return int(request.param == 0.0)


@asynccontextmanager
async def opened(
    provider: Scripted, storage: InMemorySessionStorage | None = None, event_buffer: int = 64
) -> AsyncIterator[Session]:
    """An agent with one session."""
    builder = AgentBuilder(AgentConfig("scripted", event_buffer=event_buffer))
    builder.register_model_provider(provider).register_tool(look)
    if storage is not None:
        builder.register_session_storage(storage)
    async with builder.build() as agent, await agent.new_session() as session:
        yield session


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    """In a loop whose clock stands still: what is done once a millisecond must not depend on the machine."""
    return trio.run(main, clock=trio.testing.MockClock())


async def read_turn(session: Session) -> None:
    """One turn, read to its end."""
    async for _ in await session.send_message("hello"):
        pass


def each_of(figures: set[tuple[int, int]]) -> tuple[int, int]:
    """The one figure that all turns had."""
    (figure,) = figures
    return figure


@pytest.mark.parametrize(("workload", "stored"), STEPS_AND_PASSES)
def test_the_steps_and_passes_of_a_turn(workload, stored, order):
    """From `send_message` to the terminal event; the same in every turn of a session."""

    async def main() -> set[tuple[int, int]]:
        counter, seen = StepCounter(), set()
        async with opened(Scripted(*workload), InMemorySessionStorage() if stored else None) as session:
            trio.lowlevel.add_instrument(counter)
            for _ in range(5):
                await trio.testing.wait_all_tasks_blocked()
                steps, passes = counter.steps, counter.passes
                await read_turn(session)
                seen.add((counter.steps - steps, counter.passes - passes))
            trio.lowlevel.remove_instrument(counter)
        return seen

    assert STEPS_AND_PASSES[workload, stored][order] == each_of(run(main))


@pytest.mark.parametrize("workload", WRITES_AND_FLUSHES)
def test_the_writes_and_flushes_of_a_turn(workload, order, monkeypatch):
    """How often the storage is called, and how often somebody waits for it."""
    flushes = 0
    plain = Recorder.flush

    async def counted(*args: Any) -> None:
        nonlocal flushes
        flushes += 1
        await plain(*args)

    async def main() -> set[tuple[int, int]]:
        storage, seen = CountingStorage(), set()
        async with opened(Scripted(*workload), storage) as session:
            for _ in range(5):
                await trio.testing.wait_all_tasks_blocked()
                before = storage.writes, flushes
                await read_turn(session)
                await trio.testing.wait_all_tasks_blocked()
                seen.add((storage.writes - before[0], flushes - before[1]))
        return seen

    monkeypatch.setattr(Recorder, "flush", counted)
    assert WRITES_AND_FLUSHES[workload][order] == each_of(run(main))


def calls_of(deltas: int) -> int:
    """The function calls of one turn of so many deltas, after a turn that warms up."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    async def main() -> None:
        async with opened(Scripted(0, deltas)) as session:
            await read_turn(session)
            await trio.testing.wait_all_tasks_blocked()
            sys.setprofile(count)
            await read_turn(session)
            sys.setprofile(None)

    run(main)
    return calls


def calls_of_opening(tools: int) -> int:
    """The function calls of opening and closing a session of an agent with so many tools, after one that warms up."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    async def main() -> None:
        builder = AgentBuilder(AgentConfig("scripted")).register_model_provider(Scripted(0, 1))
        for number in range(tools):
            builder.register_tool(attrs.evolve(look, name=f"look_{number}"))
        async with builder.build() as agent:
            async with await agent.new_session():
                pass
            await trio.testing.wait_all_tasks_blocked()
            sys.setprofile(count)
            async with await agent.new_session():
                pass
            sys.setprofile(None)

    run(main)
    return calls


def drain_free_lists() -> list[object]:
    """What the interpreter keeps of freed objects for reuse, taken out of it, so that a new object is a new block."""
    taken: list[object] = [float(number) for number in range(300)]
    taken += [tuple(range(size)) for size in range(1, 21) for _ in range(2_100)]
    return taken + [[] for _ in range(200)] + [{} for _ in range(200)]


def blocks_of(waiting: int) -> int:
    """The blocks of memory that so many deltas hold while they wait for a reader that has stopped."""
    provider = Paused(waiting)

    async def main() -> int:
        async with opened(provider, event_buffer=waiting + 64) as session:
            turn = await session.send_message("hello")
            await trio.testing.wait_all_tasks_blocked()
            taken = drain_free_lists()
            gc.collect()
            before = sys.getallocatedblocks()
            provider.go.set()
            await trio.testing.wait_all_tasks_blocked()
            after = sys.getallocatedblocks()
            del taken
            turn.cancel(grace=0)
            await turn.result()
            return after - before

    return run(main)


def test_the_passes_from_the_last_tools_end_to_the_terminal_event(order):
    """A stopped turn waits for tools that run: the task of the turn is woken, then the reader."""
    counter, gates, ended = StepCounter(), [trio.Event() for _ in range(8)], 0

    @youyou.tool(name="look")
    async def waiting(x: int) -> str:
        """Ends when it is let go."""
        nonlocal ended
        await gates[x].wait()
        ended = counter.passes
        return "ok"

    async def stop(turn: RunningTurn) -> None:
        await trio.testing.wait_all_tasks_blocked()
        turn.cancel()
        for gate in gates:
            await trio.testing.wait_all_tasks_blocked()
            gate.set()

    async def main() -> int:
        trio.lowlevel.add_instrument(counter)
        builder = AgentBuilder(AgentConfig("scripted")).register_model_provider(Scripted(8, 0)).register_tool(waiting)
        async with builder.build() as agent, await agent.new_session() as session, trio.open_nursery() as nursery:
            turn = await session.send_message("hello")
            nursery.start_soon(stop, turn)
            async for event in turn:
                last, terminal = event.payload, counter.passes
            assert isinstance(last, TurnCancelled)
        trio.lowlevel.remove_instrument(counter)
        return terminal - ended

    assert 2 == run(main)


@pytest.mark.parametrize("order", [1.0], indirect=True)
def test_a_session_opens_as_fast_with_a_hundred_tools_as_with_one(order):
    """What follows from the registry alone is made once, for all sessions."""
    assert calls_of_opening(1) == calls_of_opening(100)


@pytest.mark.skipif(sys.version_info[:2] not in PER_DELTA, reason="calls and blocks are those of one version of Python")
@pytest.mark.parametrize("order", [1.0], indirect=True)
def test_the_calls_and_blocks_of_a_delta(order):
    """The slope: what one delta more adds to a turn that is read, and to one that is not."""
    calls = (calls_of(64 * 5) - calls_of(64)) / (64 * 4)
    blocks = (blocks_of(2_000) - blocks_of(1_000)) / 1_000
    assert PER_DELTA[sys.version_info[:2]] == (round(calls), round(blocks))

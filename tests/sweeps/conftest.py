"""A world for sweeps of the runtime: one agent, one storage, tools that count, and an oracle that judges at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import youyou
from youyou.core.chance import randomness
from youyou.testing import InMemoryMemoryStorage, InMemorySessionStorage, Simulation
from youyou.testing.invariants import AgentInvariants
from youyou.testing.scripted import StrictProvider, say

GRACE, CLOSING = 5.0, 2.0


@attrs.define(eq=False)
class World:
    """Everything of one simulated run."""

    sim: Simulation
    rounds: list[Any]
    grace: float | None = None
    config: dict[str, Any] = attrs.Factory(dict)
    plugins: list[Any] = attrs.Factory(list)
    memories: bool = False
    storage: Any = attrs.Factory(InMemorySessionStorage)
    runs: Counter[str] = attrs.Factory(Counter)
    provider: StrictProvider = attrs.field(init=False)
    invariants: AgentInvariants = attrs.field(init=False)
    agent: youyou.Agent | None = None
    session: youyou.Session | None = None
    turn: youyou.RunningTurn | None = None

    def __attrs_post_init__(self) -> None:
        randomness.set(self.sim.random)
        self.provider = StrictProvider([*self.rounds, *[say("and on") for _ in range(12)]])
        self.invariants = AgentInvariants(self.storage.events, (self.provider,))
        self.sim.at_end(self.invariants.check)
        self.sim.at_end(lambda: not self.provider.violations)
        self.sim.at_end(lambda: max(self.runs.values(), default=0) <= 1, "no call ran twice")

    def tool(self, name: str, seconds: float, mutating: bool = False) -> youyou.Tool:
        async def execute(given: youyou.ToolInput) -> youyou.ToolOutput:
            self.runs[given.call_id] += 1
            await trio.sleep(seconds)
            return youyou.ToolOutput(f"{name} ran")

        return youyou.Tool(name, f"Does {name}.", {"type": "object"}, execute, mutating=mutating)

    def builder(self) -> Any:
        config = youyou.AgentConfig(
            "scripted",
            shutdown_grace_ms=int(GRACE * 1000) if self.grace is None else int(self.grace * 1000),
            closing_ms=int(CLOSING * 1000),
            **self.config,
        )
        builder = youyou.AgentBuilder(config).register_model_provider(self.provider)
        builder.register_session_storage(self.storage)
        if self.memories:
            builder.register_memory_storage(InMemoryMemoryStorage())
        for number, seconds in enumerate((1.0, 2.0, 3.0), 1):
            builder.register_tool(self.tool(f"read{number}", seconds))
            builder.register_tool(self.tool(f"write{number}", seconds, mutating=True))
        for plugin in self.plugins:
            builder.register_plugin(plugin)
        return builder

    @asynccontextmanager
    async def talking(self) -> AsyncIterator[youyou.Session]:
        """An agent with an open session, and the things that may be done to it."""
        async with self.builder().build() as self.agent:
            async with await self.agent.new_session() as self.session:
                self.sim.action("close", self.close)
                self.sim.action("shutdown", self.shutdown)
                yield self.session

    async def close(self) -> None:
        assert self.session is not None
        await self.session.close(grace=self.grace)

    async def shutdown(self) -> None:
        assert self.agent is not None
        await self.agent.shutdown(grace=self.grace)

    def cancel_turn(self) -> bool:
        return self.turn is not None and self.turn.cancel(grace=self.grace)

    async def say(self, text: str = "go") -> youyou.TurnResult | None:
        """One turn, read to its end. None: the session is closed."""
        assert self.session is not None
        try:
            self.turn = await self.session.send_message(text)
        except (youyou.SessionClosed, youyou.AgentClosed):
            return None
        turn = self.turn
        self.sim.action("turn", self.cancel_turn, done=lambda: turn.status in FINAL)
        async for _ in self.invariants.follow(turn, self.session):
            pass
        return await turn.result()

    async def resumes(self) -> None:
        """What was stored can be opened again and goes on."""
        if self.session is None:
            return
        await self.invariants.check()
        self.invariants.followed.clear()
        async with self.builder().build() as agent:
            try:
                session = await agent.resume_session(self.session.id)
            except youyou.SessionNotFound:
                return
            async with session:
                turn = await session.send_message("still there?")
                async for _ in self.invariants.follow(turn, session):
                    pass
                result = await turn.result()
                assert result.status is youyou.TurnStatus.COMPLETED, result


FINAL = (youyou.TurnStatus.COMPLETED, youyou.TurnStatus.FAILED, youyou.TurnStatus.CANCELLED)


@pytest.fixture
def world() -> Callable[..., World]:
    """Makes the world of one simulated run: ``world(sim, rounds, ...)``."""
    return World

"""youyou: one agent, one open session, a provider in the process; a turn is read with `async for`."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio
import youyou
from youyou import (
    AgentBuilder,
    AgentConfig,
    ChatEvent,
    ChatRequest,
    Done,
    ModelInfo,
    RunningTurn,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallEnd,
    ToolResult,
    TurnComplete,
)

from .loops import Trio
from .plan import DELTA_WAIT, MODEL_WAIT, TOOL, TOOL_WAIT, WORD, answer

PACKAGES = ("youyou", "trio")
LOOP = Trio()
ids = itertools.count()


class Model:
    """Says what the plan has, and notes when its stream is closed."""

    id = "model"

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.closed_at: float | None = None

    def models(self) -> Sequence[ModelInfo]:
        """One model, whose window is never full."""
        return [ModelInfo("model", "Model", 10**9)]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """One answer."""
        kind, count = answer(self.mode, isinstance(request.messages[-1], ToolResult))
        if self.mode == "many":
            await trio.sleep(MODEL_WAIT)
        if kind == "text":
            for _ in range(count):
                yield TextDelta(WORD)
        elif kind == "forever":
            try:
                while True:
                    await trio.sleep(DELTA_WAIT)
                    yield TextDelta(WORD)
            finally:
                self.closed_at = time.perf_counter()
        else:
            for number in range(count):
                yield ToolCall(f"c{next(ids)}", TOOL.get(self.mode, "noop"), {"x": number})
        yield Done()


@youyou.tool
async def noop(x: int) -> str:
    """Does nothing."""
    return "ok"


@youyou.tool
async def hang(x: int) -> str:
    """Takes an hour."""
    await trio.sleep(3600)
    return "ok"


@youyou.tool
async def ending(x: int) -> str:
    """Ends by itself."""
    await trio.sleep(TOOL_WAIT)
    Session.tools_ended = time.perf_counter()
    return "ok"


TOOLS: tuple[Tool, ...] = (noop, hang, ending)


class Session:
    """One session and its model."""

    tools_ended = 0.0

    def __init__(self, model: Model, session: youyou.Session) -> None:
        self.model, self.session = model, session
        self.running: RunningTurn | None = None

    @property
    def mode(self) -> str:
        """What the model says."""
        return self.model.mode

    @mode.setter
    def mode(self, mode: str) -> None:
        self.model.mode = mode

    @property
    def closed_at(self) -> float | None:
        """When the model's stream was closed."""
        return self.model.closed_at

    async def turn(self, text: str) -> tuple[int, int]:
        """One turn, read to its end: the deltas and results that came."""
        deltas = results = 0
        self.running = turn = await self.session.send_message(text)
        async for event in turn:
            payload = event.payload
            if isinstance(payload, TextDelta):
                deltas += 1
            elif isinstance(payload, ToolCallEnd):
                results += 1
            elif isinstance(payload, TurnComplete):
                assert payload.error is None, payload.error
        return deltas, results

    def cancel(self) -> None:
        """As documented."""
        assert self.running is not None
        self.running.cancel()


def builder(model: Model, storage: Any = None, tools: Sequence[Tool] = TOOLS) -> AgentBuilder:
    """An agent with the plan's tools."""
    making = AgentBuilder(AgentConfig("model", max_tool_calls_per_turn=100)).register_model_provider(model)
    for tool in tools:
        making.register_tool(tool)
    return making if storage is None else making.register_session_storage(storage)


@asynccontextmanager
async def opened(mode: str, storage: Any = None) -> AsyncIterator[Session]:
    """An agent with one session, which all turns are in."""
    model = Model(mode)
    async with builder(model, storage).build() as agent, await agent.new_session() as session:
        yield Session(model, session)


class Anew:
    """A session is opened and closed for each turn, as the other runtimes do it."""

    LOOP, PACKAGES = LOOP, PACKAGES

    def __init__(self, agent: youyou.Agent, model: Model) -> None:
        self.agent, self.model = agent, model

    async def turn(self, text: str) -> tuple[int, int]:
        """Open, ask, read, close."""
        async with await self.agent.new_session() as session:
            return await Session(self.model, session).turn(text)

    @staticmethod
    @asynccontextmanager
    async def session(mode: str, keep: bool) -> AsyncIterator[Anew]:
        """One agent."""
        model = Model(mode)
        async with builder(model).build() as agent:
            yield Anew(agent, model)


def session(mode: str, keep: bool) -> AbstractAsyncContextManager[Session]:
    """For the driver. ``keep`` makes no difference: history is kept always."""
    return opened(mode)

"""pydantic-ai: `FunctionModel`, `Agent.run_stream_events()`; history is `message_history=`, from the result."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.messages import (
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from .loops import Asyncio
from .plan import DELTA_WAIT, MODEL_WAIT, TOOL, WORD, answer

PACKAGES = ("pydantic-ai-slim",)
LOOP = Asyncio()
ids = itertools.count()
agent = Agent()


@agent.tool_plain
async def noop(x: int) -> str:
    return "ok"


@agent.tool_plain
async def hang(x: int) -> str:
    await asyncio.sleep(3600)
    return "ok"


class Session:
    """One agent for all sessions; a model and a history for each."""

    def __init__(self, mode: str, keep: bool) -> None:
        self.mode, self.keep = mode, keep
        self.history: list[Any] = []
        self.model = FunctionModel(stream_function=self.stream)

    async def stream(self, messages: list[Any], _: Any) -> AsyncIterator[Any]:
        """The model: what the plan has."""
        kind, count = answer(self.mode, any(isinstance(part, ToolReturnPart) for part in messages[-1].parts))
        if self.mode == "many":
            await asyncio.sleep(MODEL_WAIT)
        if kind == "calls":
            name = TOOL.get(self.mode, "noop")
            for n in range(count):
                yield {n: DeltaToolCall(name=name, json_args=f'{{"x": {n}}}', tool_call_id=f"c{next(ids)}")}
            return
        for _ in range(count) if kind == "text" else itertools.count():
            if kind == "forever":
                await asyncio.sleep(DELTA_WAIT)
            yield WORD

    async def turn(self, text: str) -> tuple[int, int]:
        deltas = results = 0
        history = self.history if self.keep and self.history else None
        try:
            async with agent.run_stream_events(text, model=self.model, message_history=history) as self.events:
                async for event in self.events:
                    if isinstance(event, PartDeltaEvent):
                        deltas += isinstance(event.delta, TextPartDelta)
                    elif isinstance(event, PartStartEvent):
                        deltas += isinstance(event.part, TextPart)
                    elif isinstance(event, FunctionToolResultEvent):
                        results += 1
                    elif isinstance(event, AgentRunResultEvent):
                        self.history = event.result.all_messages()
        except RunCancelled as stopped:
            self.history = stopped.all_messages()
            raise
        return deltas, results

    def cancel(self) -> None:
        self.events.cancel()


@asynccontextmanager
async def session(mode: str, keep: bool) -> AsyncIterator[Session]:
    """For the driver."""
    yield Session(mode, keep)

"""openai-agents: a `Model` of our own, `Runner.run_streamed().stream_events()`; history is `SQLiteSession` in memory.

Tracing is off: it would send what it sees over the network.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, Model, Runner, SQLiteSession, function_tool, set_tracing_disabled

from ..openai_events import Answer
from .loops import Asyncio
from .plan import DELTA_WAIT, MODEL_WAIT, TOOL, WORD, answer

PACKAGES = ("openai-agents",)
LOOP = Asyncio()
ids = itertools.count()
set_tracing_disabled(True)


class Fake(Model):
    """Says what the plan has, in the events of the Responses API."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream_response(self, _: Any, input: Any, *__: Any, **___: Any) -> AsyncIterator[Any]:
        mode = self.session.mode
        last = input[-1] if isinstance(input, list) else None
        kind, count = answer(mode, isinstance(last, dict) and last.get("type") == "function_call_output")
        if mode == "many":
            await asyncio.sleep(MODEL_WAIT)
        says = Answer()
        if kind == "calls":
            name = TOOL.get(mode, "noop")
            for number in range(count):
                for event in says.call(f"call_{next(ids)}", name, f'{{"x": {number}}}'):
                    yield event
        else:
            for event in says.text_begins():
                yield event
            for _ in range(count) if kind == "text" else itertools.count():
                if kind == "forever":
                    await asyncio.sleep(DELTA_WAIT)
                yield says.delta(WORD)
            for event in says.text_ends():
                yield event
        yield says.completed()


@function_tool
async def noop(x: int) -> str:
    return "ok"


@function_tool
async def hang(x: int) -> str:
    await asyncio.sleep(3600)
    return "ok"


class Session:
    """An agent, and a stored history where it is kept."""

    def __init__(self, mode: str, keep: bool) -> None:
        self.mode = mode
        self.agent = Agent(name="a", model=Fake(self), tools=[noop, hang])
        self.stored = SQLiteSession(f"s{next(ids)}") if keep else None

    async def turn(self, text: str) -> tuple[int, int]:
        deltas = results = 0
        self.run = Runner.run_streamed(self.agent, text, session=self.stored)
        async for event in self.run.stream_events():
            if event.type == "raw_response_event":
                deltas += event.data.type == "response.output_text.delta"
            elif event.type == "run_item_stream_event":
                results += event.name == "tool_output"
        return deltas, results

    def cancel(self) -> None:
        self.run.cancel()


@asynccontextmanager
async def session(mode: str, keep: bool) -> AsyncIterator[Session]:
    """For the driver."""
    yield Session(mode, keep)

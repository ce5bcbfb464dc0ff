"""langgraph with langchain's `create_agent`: `astream(stream_mode="messages")`; history: `InMemorySaver`, a thread id.

One compiled graph for all sessions, as its documentation advises. A stream is cancelled with its task.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from .loops import Asyncio
from .plan import DELTA_WAIT, MODEL_WAIT, TOOL, WORD, answer

PACKAGES = ("langgraph", "langchain")
LOOP = Asyncio()
ids = itertools.count()


class Fake(BaseChatModel):
    """Says what the plan has. Sessions that run at once all have the same mode."""

    session: Any = None

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, *_: Any, **__: Any) -> Fake:
        return self

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def _astream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        mode, name = self.session.mode, f"run-{next(ids)}"
        kind, count = answer(mode, isinstance(messages[-1], ToolMessage))
        if mode == "many":
            await asyncio.sleep(MODEL_WAIT)
        for n in range(count) if kind != "forever" else itertools.count():
            if kind == "forever":
                await asyncio.sleep(DELTA_WAIT)
            last = "last" if n == count - 1 else None
            if kind == "calls":
                call = {
                    "name": TOOL.get(mode, "noop"),
                    "args": f'{{"x": {n}}}',
                    "id": f"call_{next(ids)}",
                    "index": n,
                    "type": "tool_call_chunk",
                }
                message = AIMessageChunk(content="", id=name, tool_call_chunks=[call], chunk_position=last)
            else:
                message = AIMessageChunk(content=WORD, id=name, chunk_position=last)
            yield ChatGenerationChunk(message=message)


@tool
async def noop(x: int) -> str:
    "Does nothing."
    return "ok"


@tool
async def hang(x: int) -> str:
    "Takes an hour."
    await asyncio.sleep(3600)
    return "ok"


model = Fake()
graphs = {keep: create_agent(model, [noop, hang], checkpointer=InMemorySaver() if keep else None) for keep in (0, 1)}


class Session:
    """A thread of the graph."""

    def __init__(self, mode: str, keep: bool) -> None:
        self.mode, self.graph = mode, graphs[keep]
        self.config: Any = {"configurable": {"thread_id": f"t{next(ids)}"}} if keep else {}

    async def turn(self, text: str) -> tuple[int, int]:
        deltas = results = 0
        model.session = self
        asked = {"messages": [{"role": "user", "content": text}]}
        async for message, _ in self.graph.astream(asked, self.config, stream_mode="messages"):
            if isinstance(message, AIMessageChunk):
                deltas += bool(message.content)
            elif isinstance(message, ToolMessage):
                results += 1
        return deltas, results

    def cancel(self) -> None:
        LOOP.task.cancel()


@asynccontextmanager
async def session(mode: str, keep: bool) -> AsyncIterator[Session]:
    """For the driver."""
    yield Session(mode, keep)

"""langchain's `create_agent` on langgraph: `InMemorySaver` and a thread id; stop: `RunControl.request_drain()`.

One tool after another: `max_concurrency=1`. Retry: `ModelRetryMiddleware`, its own opt-in. Killed and resumed:
`AsyncSqliteSaver`.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.runtime import RunControl

from .world import MUTATING, Item, World

NAME = "langgraph"
WAYS = ["request_drain()"]
DURABLE = True
WITHOUT: dict[str, str] = {}
ids = itertools.count()


def items(messages: Any) -> list[Item]:
    """A request in the world's words."""
    found: list[Item] = []
    for message in messages:
        text = message.content if isinstance(message.content, str) else str(message.content)
        if message.type == "human":
            found.append(("user", text))
        elif message.type == "tool":
            found.append(("result", message.tool_call_id, text))
        elif message.type != "system":
            found.append(("assistant", text, [call["id"] for call in message.tool_calls]))
    return found


class Fake(BaseChatModel):
    """The world's model."""

    world: Any = None

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, *_: Any, **__: Any) -> Fake:
        return self

    def _generate(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def _astream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        name = f"run-{next(ids)}"
        async for event in self.world.model(items(messages)):
            if event[0] == "text":
                yield ChatGenerationChunk(message=AIMessageChunk(content=event[1], id=name))
            else:
                call = {
                    "name": event[2],
                    "args": f'{{"x": {event[3]}}}',
                    "id": event[1],
                    "index": event[3],
                    "type": "tool_call_chunk",
                }
                yield ChatGenerationChunk(message=AIMessageChunk(content="", id=name, tool_call_chunks=[call]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", id=name, chunk_position="last"))


class Session:
    """A thread of a graph."""

    def __init__(self, world: World, way: str, folder: Path | None = None) -> None:
        @tool
        async def read(x: int) -> str:
            "Reads."
            return await world.tool("read", x)

        @tool
        async def slow(x: int) -> str:
            "Takes long."
            return await world.tool("slow", x)

        @tool
        async def write(x: int) -> str:
            "Writes."
            return await world.tool("write", x)

        @tool
        def block(x: int) -> str:
            "Blocks its thread."
            return world.block(x)

        more: dict[str, Any] = {}
        if world.scenario == "retry":
            more["middleware"] = [ModelRetryMiddleware(max_retries=3)]
        tools = [read, slow, write, block]
        self.folder = folder
        self.make = lambda saver: create_agent(Fake(world=world), tools, checkpointer=saver, **more)
        self.graph = self.make(InMemorySaver())
        self.config: dict[str, Any] = {"configurable": {"thread_id": "t"}}
        if world.scenario in MUTATING:
            self.config["max_concurrency"] = 1

    async def turn(self, text: str, saw: Callable[[str], None]) -> str:
        if not self.folder:
            return await self.asked(text, saw)
        async with AsyncSqliteSaver.from_conn_string(str(self.folder / "threads.db")) as saver:
            self.graph = self.make(saver)
            return await self.asked(text, saw)

    async def asked(self, text: str, saw: Callable[[str], None]) -> str:
        self.control = RunControl()
        asked = {"messages": [{"role": "user", "content": text}]}
        async for message, _ in self.graph.astream(asked, self.config, stream_mode="messages", control=self.control):
            saw(message.content if isinstance(message, AIMessageChunk) else "")
        return "returned"

    def stop(self) -> bool:
        self.control.request_drain()
        return True

"""openai-agents: `SQLiteSession`, in memory or in a file; stop: `result.cancel()`, or `cancel(mode="after_turn")`.

One tool after another: `ToolExecutionConfig(max_function_tool_concurrency=1)`. Retry: `ModelSettings(retry=...)`, an
opt-in of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    Model,
    ModelSettings,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from agents.retry import ModelRetrySettings
from agents.run_config import ToolExecutionConfig

from ..openai_events import Answer
from .world import MUTATING, Item, World

NAME = "openai_agents"
WAYS = ["cancel()", 'cancel(mode="after_turn")']
DURABLE = True
WITHOUT: dict[str, str] = {}
ids = itertools.count()
set_tracing_disabled(True)


def items(asked: Any) -> list[Item]:
    """A request in the world's words: a message and the calls next to it are one assistant message to a chat API."""
    found: list[Item] = []
    for item in [asked] if isinstance(asked, str) else asked:
        if isinstance(item, str):
            found.append(("user", item))
            continue
        kind = item.get("type", "message")
        if kind == "function_call_output":
            found.append(("result", item["call_id"], str(item["output"])))
        elif kind == "function_call":
            if not found or found[-1][0] != "assistant":
                found.append(("assistant", "", []))
            found[-1][2].append(item["call_id"])
        elif kind == "message":
            content = item["content"]
            text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
            found.append(("user", text) if item["role"] == "user" else ("assistant", text, []))
    return found


class Fake(Model):
    """The world's model."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def get_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream_response(self, _: Any, input: Any, *__: Any, **___: Any) -> AsyncIterator[Any]:
        says, talking = Answer(), False
        async for event in self.world.model(items(input)):
            if event[0] == "text":
                if not talking:
                    talking = True
                    for one in says.text_begins():
                        yield one
                yield says.delta(event[1])
                continue
            if talking:
                talking = False
                for one in says.text_ends():
                    yield one
            for one in says.call(event[1], event[2], f'{{"x": {event[3]}}}'):
                yield one
        if talking:
            for one in says.text_ends():
                yield one
        yield says.completed()


class Session:
    """An agent and a stored session."""

    def __init__(self, world: World, way: str, folder: Path | None = None) -> None:
        self.mode = "after_turn" if "after_turn" in way else "immediate"

        @function_tool
        async def read(x: int) -> str:
            return await world.tool("read", x)

        @function_tool
        async def slow(x: int) -> str:
            return await world.tool("slow", x)

        @function_tool
        async def write(x: int) -> str:
            return await world.tool("write", x)

        @function_tool
        def block(x: int) -> str:
            return world.block(x)

        more: dict[str, Any] = {}
        if world.scenario == "retry":
            more["model_settings"] = ModelSettings(retry=ModelRetrySettings(max_retries=3, policy=lambda _: True))
        self.agent = Agent(name="a", model=Fake(world), tools=[read, slow, write, block], **more)
        self.stored = SQLiteSession("s", folder / "sessions.db") if folder else SQLiteSession(f"s{next(ids)}")
        one = RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))
        self.config = one if world.scenario in MUTATING else None
        self.run: Any = None

    async def turn(self, text: str, saw: Callable[[str], None]) -> str:
        self.run = None
        self.run = Runner.run_streamed(self.agent, text, session=self.stored, run_config=self.config)
        async for event in self.run.stream_events():
            text_of = event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
            saw(event.data.delta if text_of else "")
        return "returned"

    def stop(self) -> bool:
        if self.run is None:
            return False
        self.run.cancel(mode=self.mode)
        return True

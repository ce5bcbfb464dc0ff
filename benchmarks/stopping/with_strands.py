"""strands-agents: an `Agent` is the session; stop: `agent.cancel()`, or `cancel(after_current_tools=True)`.

Killed and resumed: `FileSessionManager`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager
from strands.tools.executors import SequentialToolExecutor
from strands.types.exceptions import ModelThrottledException

from .world import MUTATING, Busy, Item, World

NAME = "strands"
WAYS = ["cancel()", "cancel(after_current_tools=True)"]
DURABLE = True
WITHOUT: dict[str, str] = {}


def items(messages: Any) -> list[Item]:
    """A request in the world's words."""
    found: list[Item] = []
    for message in messages:
        text, calls, results = "", [], []
        for block in message["content"]:
            text += block.get("text", "")
            if "toolUse" in block:
                calls.append(block["toolUse"]["toolUseId"])
            if "toolResult" in block:
                result = block["toolResult"]
                said = " ".join(part.get("text", "") for part in result["content"])
                results.append(("result", result["toolUseId"], said))
        found += results
        if message["role"] == "assistant":
            found.append(("assistant", text, calls))
        elif text or not results:
            found.append(("user", text))
    return found


class Fake(Model):
    """The world's model."""

    def __init__(self, world: World) -> None:
        self.world = world

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[dict[str, Any]]:
        started = open_ = False
        reason = "end_turn"
        try:
            async for event in self.world.model(items(messages)):
                if not started:
                    started = True
                    yield {"messageStart": {"role": "assistant"}}
                if event[0] == "text":
                    if not open_:
                        open_ = True
                        yield {"contentBlockStart": {"start": {}}}
                    yield {"contentBlockDelta": {"delta": {"text": event[1]}}}
                    continue
                if open_:
                    open_ = False
                    yield {"contentBlockStop": {}}
                reason = "tool_use"
                yield {"contentBlockStart": {"start": {"toolUse": {"name": event[2], "toolUseId": event[1]}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": f'{{"x": {event[3]}}}'}}}}
                yield {"contentBlockStop": {}}
        except Busy as error:
            raise ModelThrottledException(str(error)) from error
        if open_:
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": reason}}
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}


class Session:
    """One agent."""

    def __init__(self, world: World, way: str, folder: Path | None = None) -> None:
        self.way = way

        @tool
        async def read(x: int) -> str:
            """Reads."""
            return await world.tool("read", x)

        @tool
        async def slow(x: int) -> str:
            """Takes long."""
            return await world.tool("slow", x)

        @tool
        async def write(x: int) -> str:
            """Writes."""
            return await world.tool("write", x)

        @tool
        def block(x: int) -> str:
            """Blocks its thread."""
            return world.block(x)

        more: dict[str, Any] = {"tool_executor": SequentialToolExecutor()} if world.scenario in MUTATING else {}
        if folder:
            more["session_manager"] = FileSessionManager("s", storage_dir=str(folder))
        self.agent = Agent(model=Fake(world), tools=[read, slow, write, block], callback_handler=None, **more)

    async def turn(self, text: str, saw: Callable[[str], None]) -> str:
        reason = "no result"
        async for event in self.agent.stream_async(text):
            saw(event.get("data", ""))
            if "result" in event:
                reason = event["result"].stop_reason
        return reason

    def stop(self) -> bool:
        self.agent.cancel(after_current_tools="after" in self.way)
        return True

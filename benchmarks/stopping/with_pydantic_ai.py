"""pydantic-ai: `message_history=`, from the result, or from `RunCancelled` after a stop; stop: `events.cancel()`.

One tool after another: `sequential=True`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.exceptions import RunCancelled
from pydantic_ai.messages import (
    ModelRequest,
    PartDeltaEvent,
    PartStartEvent,
    RetryPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from .world import Item, World

NAME = "pydantic_ai"
WAYS = ["events.cancel()"]
DURABLE = False
WITHOUT = {"retry": "no retry of its own by default: HTTP transport or FallbackModel"}


def items(messages: Any) -> list[Item]:
    """A request in the world's words."""
    found: list[Item] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    found.append(("user", str(part.content)))
                elif isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name):
                    found.append(("result", part.tool_call_id, str(part.content)))
                elif isinstance(part, RetryPromptPart):
                    found.append(("user", str(part.content)))
        else:
            text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
            calls = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            if text or calls:  # its adapters for OpenAI and Anthropic leave out an empty response, too
                found.append(("assistant", text, calls))
    return found


class Session:
    """An agent and a history."""

    def __init__(self, world: World, way: str) -> None:
        self.history: list[Any] = []
        self.events: Any = None

        async def stream(messages: list[Any], _: Any) -> AsyncIterator[Any]:
            async for event in world.model(items(messages)):
                if event[0] == "text":
                    yield event[1]
                else:
                    call = DeltaToolCall(name=event[2], json_args=f'{{"x": {event[3]}}}', tool_call_id=event[1])
                    yield {event[3]: call}

        self.agent = Agent(FunctionModel(stream_function=stream))

        @self.agent.tool_plain
        async def read(x: int) -> str:
            return await world.tool("read", x)

        @self.agent.tool_plain
        async def slow(x: int) -> str:
            return await world.tool("slow", x)

        @self.agent.tool_plain(sequential=True)
        async def write(x: int) -> str:
            return await world.tool("write", x)

        @self.agent.tool_plain
        def block(x: int) -> str:
            return world.block(x)

    async def turn(self, text: str, saw: Callable[[str], None]) -> str:
        self.events = None
        try:
            async with self.agent.run_stream_events(text, message_history=self.history or None) as events:
                self.events = events
                async for event in events:
                    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                        saw(event.delta.content_delta)
                    elif isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                        saw(event.part.content)
                    else:
                        saw("")
                    if isinstance(event, AgentRunResultEvent):
                        self.history = event.result.all_messages()
        except RunCancelled as stopped:
            self.history = stopped.all_messages() or self.history
            raise
        except asyncio.CancelledError as error:
            found = RunCancelled.from_cancellation(error)
            if found is not None:
                self.history = found.all_messages() or self.history
            raise
        return "returned"

    def stop(self) -> bool:
        if self.events is None:
            return False
        self.events.cancel()
        return True

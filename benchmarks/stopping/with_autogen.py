"""autogen-agentchat: `AssistantAgent` and its context are the session; stop: `CancellationToken.cancel()`.

Tools run at once; there is no documented way to run them one after another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ModelClientStreamingChunkEvent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelFamily,
    RequestUsage,
    UserMessage,
)

from .world import Item, World

NAME = "autogen"
WAYS = ["token.cancel()"]
DURABLE = False
WITHOUT = {"retry": "no retry of its own: left to the client of the model"}
USAGE = RequestUsage(prompt_tokens=1, completion_tokens=1)
ABILITIES = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "family": ModelFamily.UNKNOWN,
    "structured_output": False,
}


def items(messages: Any) -> list[Item]:
    """A request in the world's words."""
    found: list[Item] = []
    for message in messages:
        if isinstance(message, UserMessage):
            found.append(("user", str(message.content)))
        elif isinstance(message, AssistantMessage):
            if isinstance(message.content, str):
                found.append(("assistant", message.content, []))
            else:
                found.append(("assistant", message.thought or "", [call.id for call in message.content]))
        elif isinstance(message, FunctionExecutionResultMessage):
            found += [("result", result.call_id, str(result.content)) for result in message.content]
    return found


class Fake(ChatCompletionClient):
    """The world's model."""

    component_type = "model"
    component_config_schema = None

    def __init__(self, world: World) -> None:
        self.world = world

    async def create(self, *_: Any, **__: Any) -> CreateResult:
        raise NotImplementedError

    async def create_stream(
        self, messages: Any, *, cancellation_token: Any = None, **_: Any
    ) -> AsyncIterator[str | CreateResult]:
        text, calls = "", []
        events = self.world.model(items(messages))
        while True:
            # As the OpenAI client of autogen-ext does it: each pending chunk is a future that is linked to the token.
            pending = asyncio.ensure_future(anext(events, None))
            if cancellation_token:
                cancellation_token.link_future(pending)
            event = await pending
            if event is None:
                break
            if event[0] == "text":
                text += event[1]
                yield event[1]
            else:
                calls.append(FunctionCall(id=event[1], name=event[2], arguments=f'{{"x": {event[3]}}}'))
        reason = "function_calls" if calls else "stop"
        thought = text if calls else None
        yield CreateResult(finish_reason=reason, content=calls or text, usage=USAGE, cached=False, thought=thought)

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return USAGE

    def total_usage(self) -> RequestUsage:
        return USAGE

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 1

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1_000

    @property
    def capabilities(self) -> Any:
        return ABILITIES

    @property
    def model_info(self) -> Any:
        return ABILITIES


class Session:
    """One agent."""

    def __init__(self, world: World, way: str) -> None:
        async def read(x: int) -> str:
            "Reads."
            return await world.tool("read", x)

        async def slow(x: int) -> str:
            "Takes long."
            return await world.tool("slow", x)

        async def write(x: int) -> str:
            "Writes."
            return await world.tool("write", x)

        def block(x: int) -> str:
            "Blocks its thread."
            return world.block(x)

        self.agent = AssistantAgent(
            "a",
            model_client=Fake(world),
            tools=[read, slow, write, block],
            model_client_stream=True,
            max_tool_iterations=5,
        )

    async def turn(self, text: str, saw: Callable[[str], None]) -> str:
        self.token = CancellationToken()
        async for message in self.agent.run_stream(task=text, cancellation_token=self.token):
            saw(message.content if isinstance(message, ModelClientStreamingChunkEvent) else "")
        return "returned"

    def stop(self) -> bool:
        self.token.cancel()
        return True

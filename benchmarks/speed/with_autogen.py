"""autogen-agentchat: a `ChatCompletionClient` of our own, `AssistantAgent.run_stream()`; history: the agent's context.

`ReplayChatCompletionClient` of autogen-ext can neither stream forever nor wait nor be cancelled.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, ToolCallExecutionEvent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelFamily,
    RequestUsage,
)

from .loops import Asyncio
from .plan import DELTA_WAIT, MODEL_WAIT, TOOL, WORD, answer

PACKAGES = ("autogen-agentchat", "autogen-core")
LOOP = Asyncio()
ids = itertools.count()
USAGE = RequestUsage(prompt_tokens=1, completion_tokens=1)
ABILITIES = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "family": ModelFamily.UNKNOWN,
    "structured_output": False,
}
spare: list[AssistantAgent] = []


class Fake(ChatCompletionClient):
    """Says what the plan has."""

    component_type = "model"
    component_config_schema = None
    session: Session

    async def create(self, *_: Any, **__: Any) -> CreateResult:
        raise NotImplementedError

    async def create_stream(
        self, messages: Any, *, cancellation_token: Any = None, **_: Any
    ) -> AsyncIterator[str | CreateResult]:
        mode = self.session.mode
        kind, count = answer(mode, isinstance(messages[-1], FunctionExecutionResultMessage))
        if mode == "many":
            await asyncio.sleep(MODEL_WAIT)
        if kind == "calls":
            name = TOOL.get(mode, "noop")
            calls = [FunctionCall(id=f"c{next(ids)}", name=name, arguments=f'{{"x": {n}}}') for n in range(count)]
            yield CreateResult(finish_reason="function_calls", content=calls, usage=USAGE, cached=False)
            return
        for _ in range(count) if kind == "text" else itertools.count():
            if kind == "forever":  # as its OpenAI client does: each pending chunk is linked to the token
                waiting = asyncio.ensure_future(asyncio.sleep(DELTA_WAIT))
                if cancellation_token:
                    cancellation_token.link_future(waiting)
                await waiting
            yield WORD
        yield CreateResult(finish_reason="stop", content=WORD * count, usage=USAGE, cached=False)

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


async def noop(x: int) -> str:
    """Does nothing."""
    return "ok"


async def hang(x: int) -> str:
    """Takes an hour."""
    await asyncio.sleep(3600)
    return "ok"


def make() -> AssistantAgent:
    """An agent."""
    return AssistantAgent("a", model_client=Fake(), tools=[noop, hang], model_client_stream=True, max_tool_iterations=5)


class Session:
    """An agent is a session; where history is not kept, agents are used again after `on_reset()`."""

    def __init__(self, mode: str, keep: bool) -> None:
        self.mode, self.keep = mode, keep
        self.agent = make() if keep else None

    async def turn(self, text: str) -> tuple[int, int]:
        agent = self.agent or (spare.pop() if spare else make())
        agent._model_client.session = self
        deltas = results = 0
        self.token = CancellationToken()
        async for message in agent.run_stream(task=text, cancellation_token=self.token):
            if isinstance(message, ModelClientStreamingChunkEvent):
                deltas += 1
            elif isinstance(message, ToolCallExecutionEvent):
                results += len(message.content)
        if not self.keep:
            await agent.on_reset(CancellationToken())
            spare.append(agent)
        return deltas, results

    def cancel(self) -> None:
        self.token.cancel()


@asynccontextmanager
async def session(mode: str, keep: bool) -> AsyncIterator[Session]:
    """For the driver."""
    yield Session(mode, keep)

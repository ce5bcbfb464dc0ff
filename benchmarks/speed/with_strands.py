"""strands-agents: a `Model` of our own, `Agent.stream_async()`; history is `agent.messages`.

`callback_handler=None`, as the default prints. `NullConversationManager`: the default forgets all but 40 messages.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models import Model

from .loops import Asyncio
from .plan import DELTA_WAIT, MODEL_WAIT, TOOL, WORD, answer

PACKAGES = ("strands-agents",)
LOOP = Asyncio()
ids = itertools.count()
spare: list[Agent] = []


class Fake(Model):
    """Says what the plan has."""

    session: Session

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[dict[str, Any]]:
        mode = self.session.mode
        kind, count = answer(mode, any("toolResult" in block for block in messages[-1]["content"]))
        if mode == "many":
            await asyncio.sleep(MODEL_WAIT)
        yield {"messageStart": {"role": "assistant"}}
        if kind == "calls":
            name = TOOL.get(mode, "noop")
            for number in range(count):
                yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": f"c{next(ids)}"}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": f'{{"x": {number}}}'}}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            for _ in range(count) if kind == "text" else itertools.count():
                if kind == "forever":
                    await asyncio.sleep(DELTA_WAIT)
                yield {"contentBlockDelta": {"delta": {"text": WORD}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}


@tool
async def noop(x: int) -> str:
    """Does nothing."""
    return "ok"


@tool
async def hang(x: int) -> str:
    """Takes an hour."""
    await asyncio.sleep(3600)
    return "ok"


class Session:
    """An agent is a session; where history is not kept, agents are used again with their messages cleared."""

    def __init__(self, mode: str, keep: bool) -> None:
        self.mode, self.keep = mode, keep
        self.agent = make() if keep else None

    async def turn(self, text: str) -> tuple[int, int]:
        agent = self.agent or (spare.pop() if spare else make())
        agent.model.session = self
        deltas = results = 0
        async for event in agent.stream_async(text):
            if "data" in event:
                deltas += 1
            elif "message" in event:
                results += sum("toolResult" in block for block in event["message"]["content"])
        if not self.keep:
            agent.messages.clear()
            spare.append(agent)
        return deltas, results

    def cancel(self) -> None:
        self.agent.cancel()


def make() -> Agent:
    """An agent."""
    manager = NullConversationManager()
    return Agent(model=Fake(), tools=[noop, hang], callback_handler=None, conversation_manager=manager)


@asynccontextmanager
async def session(mode: str, keep: bool) -> AsyncIterator[Session]:
    """For the driver."""
    yield Session(mode, keep)

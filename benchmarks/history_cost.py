"""What a round costs the runtime with a long history, as a multiple of what it costs with a short one (semantics 5).

python benchmarks/history_cost.py
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

import trio

from youyou import (
    AgentBuilder,
    AgentConfig,
    AssistantMessage,
    ChatEvent,
    ChatRequest,
    Done,
    Message,
    ModelInfo,
    StopReason,
    TextDelta,
    Tool,
    ToolCall,
    ToolInput,
    ToolOutput,
    UserMessage,
)
from youyou.messages.hook_payloads import utc_now
from youyou.messages.records import SessionEvent
from youyou.testing import InMemorySessionStorage

SHORT, LONG = 50, 5_000
ROUNDS = 40
REPEATS = 7


class Looking:
    """Asks for a tool in every round but the last; looks at the length of what it is sent, and at nothing else."""

    id = "looking"

    def __init__(self) -> None:
        self.asked = 0
        self.longest = 0

    def models(self) -> Sequence[ModelInfo]:
        """One model, whose window is never full."""
        return [ModelInfo("looking", "Looking", 1_000_000_000)]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """One round."""
        self.asked += 1
        self.longest = max(self.longest, len(request.messages))
        yield TextDelta("well")
        if self.asked < ROUNDS:
            yield ToolCall("", "look", {"n": self.asked})
        yield Done(None, StopReason.TOOL_USE)


async def look(_: ToolInput) -> ToolOutput:
    """The cheapest tool."""
    return ToolOutput("seen")


async def seconds_per_round(messages: int) -> float:
    """One turn of a session that begins with so many messages."""
    said: list[Message] = [UserMessage("hello"), AssistantMessage("hello, what can I do?")] * (messages // 2)
    store, provider = InMemorySessionStorage(), Looking()
    await store.save_events("s", [SessionEvent(seq, utc_now(), message) for seq, message in enumerate(said, 1)])
    config = AgentConfig("looking", max_tool_calls_per_turn=ROUNDS)
    builder = AgentBuilder(config).register_model_provider(provider).register_session_storage(store)
    builder.register_tool(Tool("look", "Looks.", {"type": "object"}, look))
    async with builder.build() as agent, await agent.resume_session("s") as session:
        await (await session.send_message("warm up")).result()
        provider.asked = 0
        turn = await session.send_message("go")
        started = time.perf_counter()
        result = await turn.result()
        taken = time.perf_counter() - started
    assert (result.status, provider.asked) == ("completed", ROUNDS), result
    return taken / ROUNDS


def main() -> None:
    """Measure and print."""
    short, long = (min(trio.run(seconds_per_round, messages) for _ in range(REPEATS)) for messages in (SHORT, LONG))
    print(f"a round of a session with {SHORT} messages: {short * 1e6:.0f} us")
    print(f"a round of a session with {LONG} messages: {long * 1e6:.0f} us")
    print(f"ratio: {long / short:.2f}")


if __name__ == "__main__":
    main()

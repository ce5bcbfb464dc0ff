"""What is done with every server: talk, cancel fifty times in a row, be three at once, leave no connection open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import trio
import youyou as y
from youyou.adapters.anthropic import AnthropicProvider
from youyou.adapters.openai import OpenAIProvider

APIS = ("chat", "responses", "messages")
CANCELS = 50
AGENTS = 3


def provider_of(api: str, openai_url: str, anthropic_url: str, key: str = "sesame", model: str = "m") -> Any:
    """The provider that speaks this API."""
    if api == "messages":
        return AnthropicProvider([model], base_url=anthropic_url, api_key=key)
    return OpenAIProvider([model], base_url=openai_url, api_key=key, api=api)  # type: ignore[arg-type]


@attrs.define(eq=False)
class Client:
    """Agents on one provider, with tools that note what they were called with."""

    provider: Any
    model: str = "m"
    config: dict[str, Any] = attrs.field(factory=dict)
    tools: bool = True
    # A machine that is busy with other work makes a server late; one that does not answer at all is found by this.
    bound: float = 120.0
    ran: list[tuple[str, Any]] = attrs.field(factory=list)

    def builder(self, **config: Any) -> Any:
        """A builder for an agent with the tools ``look`` (reads) and ``act`` (changes something)."""

        @y.tool
        async def look(city: str) -> str:
            """Look at the weather."""
            self.ran.append(("look", city))
            return f"rain in {city}"

        @y.tool(mutating=True)
        async def act(city: str = "nowhere") -> str:
            """Close the windows."""
            self.ran.append(("act", city))
            return "closed"

        settings = {"retry": y.RetryPolicy(attempts=1), **self.config, **config}
        builder = y.AgentBuilder(y.AgentConfig(self.model, **settings)).register_model_provider(self.provider)
        return builder.register_tool(look).register_tool(act) if self.tools else builder

    async def ask(self, *texts: str, **config: Any) -> list[y.TurnResult]:
        """One session; the results of its turns."""
        with trio.fail_after(self.bound):
            async with self.builder(**config).build() as agent, await agent.new_session() as session:
                return [await (await session.send_message(text)).result() for text in texts]

    async def events(self, text: str, **config: Any) -> list[Any]:
        """One turn; what a host sees of it."""
        with trio.fail_after(self.bound):
            async with self.builder(**config).build() as agent, await agent.new_session() as session:
                return [event.payload async for event in await session.send_message(text)]

    async def cancel_again_and_again(self, text: str, then: str) -> tuple[set[y.TurnStatus], y.TurnResult]:
        """Cancel a turn at its first text, ``CANCELS`` times in a session: how they ended, and the turn after them."""
        ends: set[y.TurnStatus] = set()
        with trio.fail_after(self.bound):
            async with self.builder().build() as agent, await agent.new_session() as session:
                for _ in range(CANCELS):
                    turn = await session.send_message(text)
                    async for event in turn:
                        if isinstance(event.payload, y.TextDelta):
                            turn.cancel()
                    ends.add((await turn.result()).status)
                return ends, await (await session.send_message(then)).result()

    async def at_once(self, text: str) -> list[y.TurnResult]:
        """``AGENTS`` agents on this one provider, concurrently."""
        results: list[y.TurnResult] = []

        async def one() -> None:
            results.extend(await self.ask(text))

        async with trio.open_nursery() as nursery:
            for _ in range(AGENTS):
                nursery.start_soon(one)
        return results


async def none_left(count: Callable[[], int]) -> bool:
    """Whether the last connection goes away within a bound: a server learns of it a moment later."""
    with trio.move_on_after(10):
        while count():
            await trio.lowlevel.checkpoint()
        return True
    return False

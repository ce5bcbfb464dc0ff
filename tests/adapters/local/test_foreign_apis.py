"""The llama.cpp server of the extra ``local`` as a foreign server: chat, responses and messages, by their SDKs."""

from __future__ import annotations

import pytest
import trio
import youyou as y
from youyou.adapters.anthropic import AnthropicProvider
from youyou.adapters.local.server import ServerSettings, serving
from youyou.adapters.local.weights import find_weights
from youyou.adapters.openai import OpenAIProvider
from youyou.messages.errors import InvalidConfig

pytestmark = pytest.mark.long
CANCELS = 50


@pytest.fixture(scope="module")
def weights():
    """The model file, or a reason why there is none."""
    pytest.importorskip("xllamacpp")
    try:
        return find_weights()
    except InvalidConfig as error:
        pytest.skip(str(error))


def provider_of(api, address):
    """The provider that speaks this API, at the engine's address."""
    if api == "messages":
        return AnthropicProvider(["m"], base_url=address.base_url.removesuffix("/v1"), api_key=address.api_key)
    return OpenAIProvider(["m"], base_url=address.base_url, api_key=address.api_key, api=api)


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
async def test_a_conversation_with_the_engine(weights, api):
    """Two turns, a cancel 50 times in a row with the next message right, and three agents at once."""
    with trio.fail_after(300):
        async with serving(weights, ServerSettings()) as address:
            provider = provider_of(api, address)
            config = y.AgentConfig("m", max_tokens=8, retry=y.RetryPolicy(attempts=1))
            builder = y.AgentBuilder(config).register_model_provider(provider)

            async def talks(times):
                async with builder.build() as agent, await agent.new_session() as session:
                    for _ in range(times):
                        result = await (await session.send_message("Say hi.")).result()
                        assert (result.status, bool(result.text), result.error) == (y.TurnStatus.COMPLETED, True, None)

            await talks(2)
            async with builder.build() as agent, await agent.new_session() as session:
                for _ in range(CANCELS):
                    turn = await session.send_message("Say hi.")
                    async for event in turn:
                        if isinstance(event.payload, y.TextDelta):
                            turn.cancel()
                    assert (await turn.result()).status in (y.TurnStatus.CANCELLED, y.TurnStatus.COMPLETED)
            await talks(1)
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(talks, 1)

"""The llama.cpp server of the extra ``local`` as a foreign server: chat, responses and messages, by their SDKs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import youyou as y
from youyou.adapters.local.server import Address, ServerSettings, serving
from youyou.adapters.local.weights import find_weights
from youyou.messages.errors import InvalidConfig

from .conversations import AGENTS, APIS, Client, none_left, provider_of
from .running import connections

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def weights() -> Path:
    """The model file, or a reason why there is none."""
    pytest.importorskip("xllamacpp")
    try:
        return find_weights()
    except InvalidConfig as error:
        pytest.skip(str(error))


@pytest.fixture
async def address(weights: Path) -> AsyncIterator[Address]:
    """The engine, as long as the test takes."""
    async with serving(weights, ServerSettings()) as address:
        yield address


@pytest.mark.parametrize("api", APIS)
async def test_a_conversation_with_the_engine(address: Any, api: str) -> None:
    """Two turns; a cancel fifty times in a row, and the next message right; three agents; no connection left."""
    root = address.base_url.removesuffix("/v1")
    client = Client(
        provider_of(api, address.base_url, root, address.api_key), config={"max_tokens": 8}, tools=False, bound=300
    )
    for result in await client.ask("Say hi.", "Say hi again."):
        assert (y.TurnStatus.COMPLETED, True, None) == (result.status, bool(result.text), result.error)
    ends, after = await client.cancel_again_and_again("Say hi.", "Say hi.")
    # The small model may have said all of its eight words before the cancel comes.
    assert ends <= {y.TurnStatus.CANCELLED, y.TurnStatus.COMPLETED}
    assert (y.TurnStatus.COMPLETED, True) == (after.status, bool(after.text))
    at_once = await client.at_once("Say hi.")
    assert [(y.TurnStatus.COMPLETED, True)] * AGENTS == [(result.status, bool(result.text)) for result in at_once]
    port = urlsplit(address.base_url).port
    assert port is not None
    assert await none_left(lambda: connections(port))


@pytest.mark.parametrize("api", APIS)
async def test_a_wrong_key(address: Any, api: str) -> None:
    """The engine's own words, and no retry."""
    root = address.base_url.removesuffix("/v1")
    [result] = await Client(provider_of(api, address.base_url, root, "wrong")).ask("Say hi.")
    assert result.error is not None
    assert ("PROVIDER_ERROR", False, True) == (
        result.error.code,
        result.error.retryable,
        "Invalid API Key" in result.error.message,
    )

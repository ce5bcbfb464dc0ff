"""LiteLLM's proxy in front of aimock: what a gateway does to three APIs. Large to install, so for the night."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import youyou as y

from .conversations import AGENTS, APIS, Client, none_left, provider_of
from .running import Running, free_port, installed, running

pytestmark = [pytest.mark.long, pytest.mark.nightly]
KEY = f"sk-{secrets.token_hex(8)}"
SCRIPT = Path(__file__).with_name("aimock.json")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The proxy, and behind it the scripted server."""
    proxy, scripted = installed("litellm/bin/litellm"), installed("aimock/node_modules/.bin/llmock")
    folder, port, behind = tmp_path_factory.mktemp("litellm"), free_port(), free_port()
    upstream = {"model": "openai/m", "api_base": f"http://127.0.0.1:{behind}/v1", "api_key": "k", "max_retries": 0}
    config = {
        "model_list": [{"model_name": "m", "litellm_params": upstream}],
        "general_settings": {"master_key": KEY},  # it does not start without one
        # A refusal of the server behind it must not keep the next test out.
        "router_settings": {"disable_cooldowns": True, "num_retries": 0},
        "litellm_settings": {"telemetry": False, "num_retries": 0},
    }
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    command = [scripted, "-p", str(behind), "-h", "127.0.0.1", "-f", str(SCRIPT)]
    with running(command, behind, folder, seconds=60):
        command = [proxy, "--config", "config.yaml", "--port", str(port), "--host", "127.0.0.1"]
        with running(command, port, folder, seconds=240, LITELLM_LOCAL_MODEL_COST_MAP="True") as server:
            yield server


@pytest.fixture(params=APIS)
def client(request: Any, server: Running) -> Client:
    """An agent's side."""
    return Client(provider_of(request.param, f"{server.url}/v1", server.url, KEY))


async def test_two_turns(client: Client) -> None:
    """The second request holds the first answer, in a form that the gateway takes."""
    results = await client.ask("greet", "greet")
    assert [("Good morning to you.", None)] * 2 == [(result.text, result.error) for result in results]


async def test_parallel_calls(client: Client) -> None:
    """Each runs once, with its arguments, and the model hears of all."""
    [result] = await client.ask("two calls")
    assert ("It rains in both.", None) == (result.text, result.error)
    assert [("act", "Oslo"), ("look", "Bergen"), ("look", "Oslo")] == sorted(client.ran)


async def test_an_error_from_behind(client: Client) -> None:
    """The words of the server behind the gateway."""
    [result] = await client.ask("status 401")
    assert result.error is not None
    assert (False, True) == (result.error.retryable, "who are you" in result.error.message)


async def test_a_conversation_that_is_too_long(client: Client) -> None:
    """It leads to compaction, whatever the gateway calls it."""
    [result] = await client.ask("overflow")
    assert result.error is not None
    assert result.error.code == "CONTEXT_LENGTH_EXCEEDED"


async def test_a_cancel_again_and_again(client: Client, server: Running) -> None:
    """Fifty times in one session; then the next message is right, and no connection is left."""
    ends, after = await client.cancel_again_and_again("slowly", "greet")
    assert ({y.TurnStatus.CANCELLED}, "Good morning to you.") == (ends, after.text)
    assert await none_left(server.connections)


async def test_three_agents_at_once(client: Client, server: Running) -> None:
    """One provider serves them, and its client closes with the last."""
    assert ["Good morning to you."] * AGENTS == [result.text for result in await client.at_once("greet")]
    assert await none_left(server.connections)

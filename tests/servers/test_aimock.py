"""``@copilotkit/aimock``: a scripted server for all three APIs, with parallel tools, reasoning, errors and cuts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import youyou as y

from .conversations import AGENTS, APIS, Client, none_left, provider_of
from .running import Running, free_port, installed, running

pytestmark = pytest.mark.long
SCRIPT = Path(__file__).with_name("aimock.json")


@pytest.fixture(scope="module", params=APIS)
def api(request: Any) -> Any:
    """Each of the APIs, with a server of its own: the script counts what it was asked."""
    return request.param


@pytest.fixture(scope="module")
def server(api: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The server."""
    program, port = installed("aimock/node_modules/.bin/llmock"), free_port()
    command = [program, "-p", str(port), "-h", "127.0.0.1", "-f", str(SCRIPT)]
    with running(command, port, tmp_path_factory.mktemp("aimock"), seconds=60) as server:
        yield server


@pytest.fixture
def client(server: Running, api: str) -> Client:
    """An agent's side."""
    return Client(provider_of(api, f"{server.url}/v1", server.url))


async def test_two_turns(client: Client) -> None:
    """The second request holds the first answer, in a form that the server takes."""
    results = await client.ask("greet", "greet")
    assert [("Good morning to you.", None)] * 2 == [(result.text, result.error) for result in results]


async def test_parallel_calls(client: Client) -> None:
    """Each runs once, with its arguments, and the model hears of all."""
    [result] = await client.ask("two calls")
    assert ("It rains in both.", None) == (result.text, result.error)
    assert [("look", "Bergen"), ("look", "Oslo")] == sorted(client.ran[:2])
    assert [("act", "Oslo")] == client.ran[2:]


async def test_a_call_before_the_text(client: Client) -> None:
    """The order in which the model made them does not matter."""
    events = await client.events("a call, then text")
    texts = [event.text for event in events if isinstance(event, y.TextDelta)]
    assert ("I am looking.It rains in both.", [("look", "Oslo")]) == ("".join(texts), client.ran)


async def test_reasoning(client: Client) -> None:
    """It is told apart from the text."""
    events = await client.events("think")
    thought = "".join(event.text for event in events if isinstance(event, y.ReasoningDelta))
    said = "".join(event.text for event in events if isinstance(event, y.TextDelta))
    assert ("Two and two.", "Four.") == (thought, said)


@pytest.mark.parametrize("how", ["filtered", "too short"])
async def test_calls_of_a_response_that_ended_badly_do_not_run(client: Client, api: str, how: str) -> None:
    """Whatever name the API has for such an end: the model is told; where the server says "failed", the turn fails."""
    [result] = await client.ask(how)
    failed = (api, how) == ("responses", "filtered")
    assert ("" if failed else "It rains in both.", failed, []) == (result.text, result.error is not None, client.ran)


@pytest.mark.parametrize(
    ("status", "words", "retryable", "after_ms"),
    [
        (400, "what is this", False, None),
        (401, "who are you", False, None),
        (404, "no such model", False, None),
        (429, "slow down", True, 7_000),
        (500, "it broke", True, None),
        (503, "come back later", True, None),
        (529, "overloaded", True, None),
    ],
)
async def test_an_error(client: Client, status: int, words: str, retryable: bool, after_ms: int | None) -> None:
    """The server's words, whether to try again, and when."""
    [result] = await client.ask(f"status {status}")
    error = result.error
    assert error is not None
    assert ("PROVIDER_ERROR", retryable, after_ms) == (error.code, error.retryable, error.retry_after_ms)
    assert words in error.message


async def test_a_busy_server_is_asked_again_when_it_says(client: Client) -> None:
    """Not at once, and not never."""
    events = await client.events("busy once", retry=y.RetryPolicy(attempts=2, base_ms=1))
    [retry] = [event for event in events if isinstance(event, y.RetryScheduled)]
    said = "".join(event.text for event in events if isinstance(event, y.TextDelta))
    assert (1_000, "Now.") == (retry.delay_ms, said)


@pytest.mark.parametrize("how", ["cut", "hang up"])
async def test_a_stream_that_breaks_off(client: Client, how: str) -> None:
    """The turn fails, says so, and keeps what was said; the next session works."""
    [result] = await client.ask(how)
    assert result.error is not None
    assert ("STREAM_INTERRUPTED", True) == (result.error.code, result.error.retryable)
    assert [None] == [result.error for result in await client.ask("greet")]


async def test_a_body_that_nobody_can_read(client: Client) -> None:
    """It is quoted."""
    [result] = await client.ask("malformed")
    assert result.error is not None
    assert "malformed" in result.error.message


async def test_a_cancel_again_and_again(client: Client, server: Running) -> None:
    """Fifty times in one session; then the next message is right, and no connection is left."""
    ends, after = await client.cancel_again_and_again("slowly", "greet")
    assert ({y.TurnStatus.CANCELLED}, "Good morning to you.") == (ends, after.text)
    assert await none_left(server.connections)


async def test_three_agents_at_once(client: Client, server: Running) -> None:
    """One provider serves them, and its client closes with the last."""
    assert ["Good morning to you."] * AGENTS == [result.text for result in await client.at_once("greet")]
    assert await none_left(server.connections)

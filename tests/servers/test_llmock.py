"""``llmock``: twenty-two faults on each API, and its verdict on us as a client, against a list that is written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import attrs
import pytest
import youyou as y

from .conversations import AGENTS, APIS, Client, none_left, provider_of
from .running import Running, free_port, installed, running

pytestmark = pytest.mark.long
CITY = {"name": "look", "arguments": {"city": "Oslo"}}
CALL = {"type": "reply", "tool_calls": [CITY]}
TEXT = {"type": "reply", "text": "The weather is fine today, and it will be so tomorrow."}


def fails(status: int, **more: Any) -> dict[str, Any]:
    """A refusal."""
    return {"type": "fail", "status": status, **more}


def breaks(kind: str, after: int, **more: Any) -> dict[str, Any]:
    """A stream with something wrong after so many chunks."""
    return {"type": "stream_fault", "kind": kind, "after_chunks": after, **more}


@attrs.frozen
class Fault:
    """What the server does, how the turn ends, and what the server finds to say about us."""

    behaviours: list[dict[str, Any]]
    end: str = "completed"
    findings: tuple[str, ...] = ()
    ran: int = 0


FAULTS: dict[str, Fault] = {
    "429 twice, with Retry-After": Fault([fails(429, times=2, retry_after=0.2), TEXT]),
    "500": Fault([fails(500), TEXT]),
    "503": Fault([fails(503), TEXT]),
    "529": Fault([fails(529), TEXT]),
    "408": Fault([fails(408), TEXT]),
    "409": Fault([fails(409), TEXT]),
    "400": Fault([fails(400), TEXT], "PROVIDER_ERROR"),
    "401": Fault([fails(401), TEXT], "PROVIDER_ERROR"),
    "404": Fault([fails(404), TEXT], "PROVIDER_ERROR"),
    "413": Fault([fails(413), TEXT], "CONTEXT_LENGTH_EXCEEDED"),
    "422": Fault([fails(422), TEXT], "PROVIDER_ERROR"),
    "disconnect before any text": Fault([breaks("disconnect", 0), TEXT]),
    # After visible text a response is not asked for again (semantics 4). This server cannot see that the turn failed,
    # and takes a client that does not come back for one that took half an answer for a whole one.
    "disconnect after text": Fault([breaks("disconnect", 6), TEXT], "STREAM_INTERRUPTED", ("gave_up",)),
    "truncated after text": Fault([breaks("truncate", 6), TEXT], "STREAM_INTERRUPTED", ("truncated_stream_accepted",)),
    "a chunk that is not JSON": Fault(
        [breaks("malformed", 6), TEXT], "STREAM_INTERRUPTED", ("malformed_chunk_ignored",)
    ),
    "a stall": Fault([breaks("stall", 6, stall_seconds=60), TEXT], "PROVIDER_TIMEOUT"),
    "a slow first token": Fault([{"type": "slow_first_token", "seconds": 0.5}, TEXT]),
    "arguments that are not JSON": Fault([{"type": "tool_fault", "kind": "malformed_arguments"}]),
    "an unknown tool": Fault([{"type": "tool_fault", "kind": "unknown_tool"}]),
    "two calls": Fault([{"type": "reply", "tool_calls": [CITY, CITY]}], ran=2),
    "a call cut in the middle": Fault([CALL, breaks("disconnect", 2)], ran=1),
    "a call truncated": Fault([CALL, breaks("truncate", 2)], ran=1),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The server, slow enough for a cancel in mid-stream."""
    program, port = installed("llmock/bin/llmock"), free_port()
    command = [program, "serve", "-h", "127.0.0.1", "-p", str(port), "--stream-chunk-delay-ms", "20"]
    with running(command, port, tmp_path_factory.mktemp("llmock"), seconds=60) as server:
        yield server


def control(server: Running, method: str, path: str, body: Any = None) -> Any:
    """The server's own interface for tests."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{server.url}/_llmock/{path}", data, method=method), timeout=30) as answer:
        return json.load(answer)


@pytest.fixture(params=APIS)
def client(request: Any, server: Running) -> Client:
    """An agent's side; the server forgets what was before."""
    control(server, "POST", "reset", {})
    provider = provider_of(request.param, f"{server.url}/v1", f"{server.url}/anthropic", model="gpt-4o")
    return Client(provider, "gpt-4o", {"retry": y.RetryPolicy(attempts=3, base_ms=50)})


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault(client: Client, server: Running, fault: str) -> None:
    """The turn ends as it should, and the next one works whatever was before it."""
    expected = FAULTS[fault]
    control(server, "POST", "scenario", {"behaviors": expected.behaviours})
    client.config["stream_idle_timeout_ms"] = 1_500
    # No tools where none are called: this server calls what it is offered.
    client.tools = not any(behaviour is TEXT for behaviour in expected.behaviours)
    [result] = await client.ask("What is the weather in Oslo?")
    end = "completed" if result.error is None else result.error.code
    verdict = control(server, "GET", "verdict")
    findings = tuple(sorted({finding["code"] for finding in verdict["findings"]}))
    assert (expected.end, expected.findings, expected.ran) == (end, findings, len(client.ran))
    control(server, "POST", "reset", {})
    client.tools = False
    assert [None] == [again.error for again in await client.ask("And tomorrow?")]


async def test_two_turns(client: Client) -> None:
    """The second request holds the first answer, in a form that the server takes."""
    client.tools = False
    results = await client.ask("Say something.", "Say more.")
    assert [(y.TurnStatus.COMPLETED, True)] * 2 == [(result.status, bool(result.text)) for result in results]


async def test_a_cancel_again_and_again(client: Client, server: Running) -> None:
    """Fifty times in one session; then the next message is right, and no connection is left."""
    client.tools = False
    control(server, "POST", "scenario", {"behaviors": [{**TEXT, "times": None}]})
    ends, after = await client.cancel_again_and_again("Say something.", "Say more.")
    assert ({y.TurnStatus.CANCELLED}, TEXT["text"]) == (ends, after.text)
    assert await none_left(server.connections)


async def test_three_agents_at_once(client: Client, server: Running) -> None:
    """One provider serves them, and its client closes with the last."""
    client.tools = False
    results = await client.at_once("Say something.")
    assert [(y.TurnStatus.COMPLETED, True)] * AGENTS == [(result.status, bool(result.text)) for result in results]
    assert await none_left(server.connections)

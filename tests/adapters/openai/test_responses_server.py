"""OpenAIProvider with the responses API against a real server on the loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from youyou.adapters.openai import OpenAIProvider
from youyou.core.ports.protocols import ModelCapabilities, ModelInfo
from youyou.messages.chat import Done, ReasoningDelta, StopReason, SystemPrompt, TextDelta, TokenUsage, ToolSpec
from youyou.messages.content import ImageBlock, TextBlock
from youyou.messages.errors import ContextLengthExceeded, ProviderError, StreamInterrupted
from youyou.messages.history import AssistantMessage, SystemMessage, ToolCall, ToolOutcome, ToolResult, UserMessage
from youyou.testing.agents.conformance_provider import check_model_provider

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"}
OUTPUT = [REASONING, {"type": "message", "characters": 2}, {"type": "function_call"}]


def kept(server: Any) -> dict[str, Any]:
    """What the provider of these tests leaves with a message."""
    origin = {"api": "openai-responses", "provider": "openai", "base_url": f"{server.url}/v1", "model": "m1"}
    return {"output": OUTPUT, "from": origin}


def assistant(text: str, id: str) -> dict[str, Any]:
    """A message of the model, as an item of the input."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}


def sse(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def done(kind: str, **fields: Any) -> bytes:
    return sse("response.output_item.done", item={"type": kind, **fields})


def completed(**fields: Any) -> bytes:
    return sse("response.completed", response={"status": "completed", "error": None, **fields})


@pytest.fixture
async def provider(server: Any) -> AsyncIterator[OpenAIProvider]:
    models = [ModelInfo("m1", "M1", 8_000, ModelCapabilities(vision=True))]
    http_client = httpx2.AsyncClient(verify=False)
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sesame", http_client=http_client) as client:
        yield OpenAIProvider(models, client=client, api="responses")


async def test_text_reasoning_calls_and_usage(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Everything a response can hold arrives, and its reasoning items are kept for the next request."""
    usage = {
        "input_tokens": 12,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 8},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    server.say(
        sse("response.created", response={"status": "in_progress", "error": None}),
        sse("response.reasoning_summary_text.delta", delta="hm"),
        sse("response.output_item.done", item=REASONING | {"status": "completed"}),
        sse("response.output_text.delta", delta="so"),
        done("message", content=[]),
        sse("response.function_call_arguments.delta", delta='{"a"'),
        done("function_call", id="fc_1", call_id="c0", name="add", arguments='{"a": 1}'),
        completed(usage=usage),
    )

    *events, last = await hear(provider, ask())

    assert events == [ReasoningDelta("hm"), TextDelta("so"), ToolCall("c0", "add", {"a": 1})]
    assert last == Done(TokenUsage(12, 5, 8, 0, 2), StopReason.TOOL_USE, kept(server))
    assert server.seen[0].path == "/v1/responses"


async def test_the_body_of_a_request(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A conversation goes out whole, its reasoning items where they were, and nothing is kept on the server."""
    server.say(completed())
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    await hear(
        provider,
        ask(
            UserMessage([TextBlock("look"), ImageBlock("iVBORw0KGgo=", "image/png")]),
            AssistantMessage("so", response_id="r1", provider_data=kept(server)),
            ToolCall("c0", "add", {"a": 1}, response_id="r1"),
            ToolCall("c1", "now", {}, response_id="r1"),
            ToolResult("c0", "2"),
            ToolResult("c1", "no", ToolOutcome.FAILED),
            SystemMessage("a note"),
            UserMessage("and?"),
            system=SystemPrompt("Be brief."),
            tools=(ToolSpec("add", "Adds.", schema),),
            temperature=0,
            max_tokens=50,
            reasoning_effort="low",
            response_schema=schema,
        ),
    )

    assert server.seen[0].body == {
        "model": "m1",
        "instructions": "Be brief.",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "temperature": 0,
        "max_output_tokens": 50,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", "name": "response", "schema": schema, "strict": False}},
        "tools": [{"type": "function", "name": "add", "description": "Adds.", "parameters": schema, "strict": False}],
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
                ],
            },
            REASONING,
            assistant("so", server.seen[0].body["input"][2]["id"]),
            {"type": "function_call", "call_id": "c0", "name": "add", "arguments": '{"a":1}'},
            {"type": "function_call", "call_id": "c1", "name": "now", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c0", "output": "2"},
            {"type": "function_call_output", "call_id": "c1", "output": "no"},
            {"role": "system", "content": "a note"},
            {"role": "user", "content": [{"type": "input_text", "text": "and?"}]},
        ],
    }


async def test_provider_data_of_another_api_is_left_alone(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """What another provider left with a message is not sent to this one."""
    server.say(completed())
    origin = kept(server)["from"]
    others = [{"api": "anthropic-messages"}, {"provider": "mine"}, {"base_url": "http://elsewhere/v1"}, {"model": "m2"}]
    messages = [
        AssistantMessage("so", response_id=f"r{i}", provider_data={"output": OUTPUT, "from": origin | other})
        for i, other in enumerate(others)
    ]

    await hear(provider, ask(UserMessage("hi"), *messages, UserMessage("and?")))

    _, *said, _ = server.seen[0].body["input"]
    assert said == [assistant("so", item["id"]) for item in said]
    assert len({item["id"] for item in said}) == len(others)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("max_output_tokens", StopReason.LENGTH), ("content_filter", StopReason.CONTENT_FILTER)],
)
async def test_an_incomplete_response(
    server: Any, provider: Any, ask: Any, hear: Any, reason: str, expected: StopReason
) -> None:
    """A response cut by the server says why."""
    server.say(sse("response.incomplete", response={"incomplete_details": {"reason": reason}, "error": None}))

    assert await hear(provider, ask()) == [Done(None, expected)]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            sse("response.failed", response={"error": {"code": "server_error", "message": "oops"}}),
            ProviderError("oops", retryable=True),
        ),
        (
            sse("response.failed", response={"error": {"code": "invalid_prompt", "message": "bad"}}),
            ProviderError("bad", retryable=False),
        ),
        (
            sse("error", code="context_length_exceeded", message="too long"),
            ContextLengthExceeded("too long"),
        ),
    ],
)
async def test_a_failed_response(
    server: Any, provider: Any, ask: Any, hear: Any, event: bytes, expected: Exception
) -> None:
    """A failure told in the stream is raised with its meaning."""
    server.say(sse("response.output_text.delta", delta="so"), event)

    with pytest.raises(type(expected)) as caught:
        await hear(provider, ask())

    assert caught.value == expected


async def test_a_stream_without_its_last_event_was_cut(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A response that was never declared over is an interruption that names what is missing."""
    server.say(sse("response.output_text.delta", delta="so"), done("message"))

    with pytest.raises(StreamInterrupted, match=r"before the last event .response.completed."):
        await hear(provider, ask())


async def test_it_conforms(server: Any, provider: Any) -> None:
    """The provider keeps every promise of the published suite."""
    deltas = (sse("response.output_text.delta", delta=text) for text in ("one ", "two"))
    server.always(*deltas, sse("response.output_item.done", item=REASONING), done("message"), completed())

    await check_model_provider(lambda: provider)

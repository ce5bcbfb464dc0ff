"""AnthropicProvider against a real server on the loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import httpx2
import pytest
import trio
from anthropic import AsyncAnthropic
from youyou.adapters.anthropic import AnthropicProvider
from youyou.messages.chat import Done, ReasoningDelta, StopReason, SystemPrompt, TextDelta, TokenUsage, ToolSpec
from youyou.messages.content import FileBlock, ImageBlock, ReasoningBlock, TextBlock
from youyou.messages.errors import ContextLengthExceeded, ProviderError, StreamInterrupted
from youyou.messages.history import (
    AssistantMessage,
    MessageStatus,
    SystemMessage,
    ToolCall,
    ToolOutcome,
    ToolResult,
    UserMessage,
)
from youyou.testing.agents.conformance_provider import check_model_provider

THINKING = {"type": "thinking", "thinking": "hm, yes", "signature": "sig-1"}
REDACTED = {"type": "redacted_thinking", "data": "opaque"}
USAGE = {"input_tokens": 9, "output_tokens": 1}
STOP = b'event: message_stop\ndata: {"type": "message_stop"}\n\n'
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def sse(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def start(**usage: int) -> bytes:
    message = {"id": "msg_1", "role": "assistant", "content": [], "usage": USAGE | usage}
    return sse("message_start", message=message)


def block(index: int, begin: dict[str, Any], *deltas: dict[str, Any]) -> bytes:
    begun = sse("content_block_start", index=index, content_block=begin)
    pieces = b"".join(sse("content_block_delta", index=index, delta=delta) for delta in deltas)
    return begun + pieces + sse("content_block_stop", index=index)


def text(index: int, *pieces: str) -> bytes:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def tool_use(index: int, id: str, name: str, *pieces: str) -> bytes:
    begin = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return block(index, begin, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def end(reason: str, **usage: Any) -> bytes:
    return sse("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)


def kept(server: Any, content: list[Any], model: str = "claude-haiku-4-5") -> dict[str, Any]:
    """What the provider of these tests leaves with a message."""
    origin = {"api": "anthropic-messages", "provider": "anthropic", "base_url": server.url, "model": model}
    return {"content": content, "from": origin}


@pytest.fixture
async def provider(server: Any) -> AsyncIterator[AnthropicProvider]:
    # A client of the provider's own would read the system's certificates for each test.
    http_client = httpx2.AsyncClient(verify=False)
    async with AsyncAnthropic(base_url=server.url, api_key="sesame", http_client=http_client) as client:
        yield AnthropicProvider(["claude-haiku-4-5", "claude-opus-4-7"], client=client)


def pool_of(provider: AnthropicProvider) -> list[Any]:
    """The connections of the provider's HTTP client that are not ready for another request."""
    connections = provider._endpoint.holder.get()._client._transport._pool.connections
    return [connection for connection in connections if not connection.is_idle()]


async def test_text_and_usage(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Text streams, and cached tokens are counted as a part of the input."""
    server.say(
        start(cache_read_input_tokens=20, cache_creation_input_tokens=5),
        PING,
        text(0, "Good ", "day"),
        end("end_turn", output_tokens=7, output_tokens_details={"thinking_tokens": 3}),
        STOP,
    )

    events = await hear(provider, ask())

    assert events == [TextDelta("Good "), TextDelta("day"), Done(TokenUsage(34, 7, 20, 5, 3))]
    assert server.seen[0].path == "/v1/messages"
    assert server.seen[0].headers["authorization"] == "Bearer sesame"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [({}, TokenUsage(9, 1)), ({"output_tokens": 7}, TokenUsage(9, 7)), ({"input_tokens": 11}, TokenUsage(11, 1))],
)
async def test_usage_is_cumulative(
    server: Any, provider: Any, ask: Any, hear: Any, usage: dict[str, int], expected: TokenUsage
) -> None:
    """What the last report says holds, what it leaves out stays as the first one had it."""
    server.say(start(), text(0, "a"), end("end_turn", **usage), STOP)

    assert (await hear(provider, ask()))[-1] == Done(expected)


async def test_thinking_and_calls(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Thinking streams as reasoning, calls come whole, and the order of the blocks is kept with their signatures."""
    server.say(
        start(),
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm, "},
            {"type": "thinking_delta", "thinking": "yes"},
            {"type": "signature_delta", "signature": "sig-1"},
        ),
        block(1, REDACTED),
        text(2, "so"),
        tool_use(3, "c0", "add", '{"a"', ": 1}"),
        tool_use(4, "c1", "now"),
        end("tool_use", output_tokens=7),
        STOP,
    )

    *events, last = await hear(provider, ask())

    calls = [ToolCall("c0", "add", {"a": 1}), ToolCall("c1", "now", {})]
    assert events == [ReasoningDelta("hm, "), ReasoningDelta("yes"), TextDelta("so"), *calls]
    order = [THINKING, REDACTED, {"type": "text", "characters": 2}, {"type": "tool_use"}, {"type": "tool_use"}]
    assert last == Done(TokenUsage(9, 7), StopReason.TOOL_USE, kept(server, order, "m1"))


async def test_arguments_that_are_no_object_stay_as_text(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Arguments that do not parse travel as raw text."""
    server.say(start(), tool_use(0, "c0", "add", '{"a": '), end("max_tokens"), STOP)

    events = await hear(provider, ask())

    assert events[0] == ToolCall("c0", "add", {}, raw_arguments='{"a": ')
    assert events[1].stop_reason == StopReason.LENGTH


async def test_interleaved_blocks(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Blocks may be open at the same time; each piece goes to its own."""
    use = {"type": "tool_use", "name": "add", "input": {}}
    piece = {"type": "input_json_delta"}
    server.say(
        start(),
        sse("content_block_start", index=0, content_block=use | {"id": "c0"}),
        sse("content_block_start", index=1, content_block=use | {"id": "c1"}),
        sse("content_block_delta", index=1, delta=piece | {"partial_json": '{"b": 2}'}),
        sse("content_block_delta", index=0, delta=piece | {"partial_json": '{"a": 1}'}),
        sse("content_block_stop", index=0),
        sse("content_block_stop", index=1),
        end("tool_use"),
        STOP,
    )

    events = await hear(provider, ask())

    assert events[:2] == [ToolCall("c0", "add", {"a": 1}), ToolCall("c1", "add", {"b": 2})]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", StopReason.END_TURN),
        ("stop_sequence", StopReason.END_TURN),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("refusal", StopReason.REFUSAL),
        ("pause_turn", StopReason.PAUSE),
        ("something_new", StopReason.OTHER),
    ],
)
async def test_stop_reasons(server: Any, provider: Any, ask: Any, hear: Any, reason: str, expected: StopReason) -> None:
    """Each stop reason has its meaning."""
    server.say(start(), text(0, "a"), end(reason), STOP)

    assert (await hear(provider, ask()))[-1].stop_reason == expected


async def test_characters_split_over_packets(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Text whose UTF-8 is cut anywhere between TCP segments arrives whole."""
    body = start() + text(0, "你好 🚀") + end("end_turn") + STOP
    server.say(*(body[i : i + 7] for i in range(0, len(body), 7)))

    assert (await hear(provider, ask()))[0] == TextDelta("你好 🚀")


async def test_a_stream_that_was_not_declared_over_was_cut(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A body that ends early is an interruption that names what is missing; a call still arriving is dropped."""
    begin = {"type": "tool_use", "id": "c0", "name": "add", "input": {}}
    server.say(start(), text(0, "a"), sse("content_block_start", index=1, content_block=begin))

    with pytest.raises(StreamInterrupted, match=r"before the last event .message_stop."):
        await hear(provider, ask())


async def test_a_connection_cut_in_mid_stream(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A connection that breaks in mid-stream is a broken stream, worth a retry."""
    server.say(start(), text(0, "a"), "cut")

    with pytest.raises(StreamInterrupted) as caught:
        await hear(provider, ask())

    assert caught.value.retryable


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"type": "overloaded_error", "message": "busy"}, ProviderError("busy", retryable=True)),
        ({"type": "invalid_request_error", "message": "bad"}, ProviderError("bad", retryable=False)),
        (
            {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"},
            ContextLengthExceeded("prompt is too long: 9 tokens > 8 maximum"),
        ),
    ],
)
async def test_an_error_in_mid_stream(
    server: Any, provider: Any, ask: Any, hear: Any, error: Any, expected: Exception
) -> None:
    """An error event inside the stream is raised with its meaning."""
    server.say(start(), text(0, "a"), sse("error", error=error))

    with pytest.raises(type(expected)) as caught:
        await hear(provider, ask())

    assert caught.value == expected


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (401, "authentication_error", False),
        (403, "permission_error", False),
        (404, "not_found_error", False),
        (400, "invalid_request_error", False),
        (429, "rate_limit_error", True),
        (500, "api_error", True),
        (529, "overloaded_error", True),
    ],
)
async def test_refusals(
    server: Any, provider: Any, ask: Any, hear: Any, status: int, kind: str, retryable: bool
) -> None:
    """Every refusal is a provider error that says whether trying again makes sense; the SDK itself does not."""
    server.refuse(status, {"type": "error", "error": {"type": kind, "message": "no"}}, retry_after="2")

    with pytest.raises(ProviderError, match=f"HTTP {status}: no") as caught:
        await hear(provider, ask())

    assert (caught.value.retryable, caught.value.retry_after_ms) == (retryable, 2_000)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
        (400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000"),
        (413, "request_too_large", "Request exceeds the maximum size"),
    ],
)
async def test_too_long(server: Any, provider: Any, ask: Any, hear: Any, status: int, kind: str, message: str) -> None:
    """A request that is too long is told apart."""
    server.refuse(status, {"type": "error", "error": {"type": kind, "message": message}})

    with pytest.raises(ContextLengthExceeded):
        await hear(provider, ask())


async def test_a_schema_goes_out_as_the_api_takes_it(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Closed, and what the API does not enforce is in the description; the runtime validates the rest."""
    server.say(start(), text(0, '{"age": 3}'), end("end_turn"), STOP)
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}

    await hear(provider, ask(UserMessage("hi"), response_schema=schema))

    sent = server.seen[0].body["output_config"]["format"]["schema"]
    assert {"type": "integer", "description": "{minimum: 0}"} == sent["properties"]["age"]
    assert False is sent["additionalProperties"]


@pytest.mark.parametrize("field", [{"type": "object", "additionalProperties": {"type": "integer"}}, {}, True])
async def test_a_schema_that_the_api_does_not_take_is_told(
    server: Any, provider: Any, ask: Any, hear: Any, field: Any
) -> None:
    """Names of the model's own, or values of any kind: the system prompt has the schema then."""
    server.say(start(), text(0, "{}"), end("end_turn"), STOP)
    schema = {"type": "object", "properties": {"counts": field}, "additionalProperties": False}

    await hear(provider, ask(UserMessage("hi"), response_schema=schema))

    body = server.seen[0].body
    assert "output_config" not in body
    assert '"counts"' in body["system"][-1]["text"]


async def test_the_body_of_a_request(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A conversation with everything in it goes out as the API wants it."""
    server.say(start(), text(0, "ok"), end("end_turn"), STOP)
    order = [THINKING, {"type": "text", "characters": 5}, REDACTED, {"type": "text", "characters": 4}]
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    await hear(
        provider,
        ask(
            UserMessage("hi"),
            AssistantMessage(
                [ReasoningBlock("hm"), TextBlock("first then")],
                response_id="r1",
                provider_data=kept(server, [*order, {"type": "tool_use"}]),
            ),
            ToolCall("c0", "add", {"a": 1}, response_id="r1"),
            ToolCall("odd.id", "now", {}, raw_arguments="{oops", response_id="r1"),
            ToolResult("c0", "2"),
            ToolResult("odd.id", "no JSON", ToolOutcome.FAILED),
            SystemMessage("a note"),
            UserMessage([TextBlock("look"), ImageBlock("iVBORw0KGgo=", "image/png"), FileBlock("a.txt", "xy")]),
            AssistantMessage("half a th", MessageStatus.INCOMPLETE, "cancelled", response_id="r2"),
            SystemMessage("that was cut short"),
            UserMessage("and?"),
            model_id="claude-haiku-4-5",
            system=SystemPrompt("Be brief.", "It is noon."),
            tools=(ToolSpec("add", "Adds.", schema),),
            temperature=0.5,
            max_tokens=99,
            response_schema=schema,
        ),
    )

    odd = f"odd_id_{sha256(b'0 odd.id').hexdigest()[:12]}"
    assert server.seen[0].body == {
        "model": "claude-haiku-4-5",
        "stream": True,
        "temperature": 0.5,
        "max_tokens": 99,
        "output_config": {"format": {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}},
        "system": [
            {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "It is noon."},
        ],
        "tools": [{"name": "add", "description": "Adds.", "input_schema": schema}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "content": [
                    THINKING,
                    {"type": "text", "text": "first"},
                    REDACTED,
                    {"type": "text", "text": " the"},
                    {"type": "tool_use", "id": "c0", "name": "add", "input": {"a": 1}},
                    {"type": "text", "text": "n"},
                    {"type": "tool_use", "id": odd, "name": "now", "input": {"invalid_json": "{oops"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c0", "content": "2"},
                    {"type": "tool_result", "tool_use_id": odd, "content": "no JSON", "is_error": True},
                    {"type": "text", "text": "<system>\na note\n</system>"},
                    {"type": "text", "text": "look"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
                    },
                    {"type": "text", "text": '<file name="a.txt">\nxy\n</file>'},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "half a th"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "<system>\nthat was cut short\n</system>"},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
    }


async def test_the_plainest_body(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """What was not asked for is not sent."""
    server.say(start(), text(0, "ok"), end("end_turn"), STOP)

    await hear(provider, ask())

    assert server.seen[0].body == {
        "model": "m1",
        "max_tokens": 8192,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    }


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 2148}),
        ("claude-opus-4-7", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}, "max_tokens": 100}),
    ],
)
async def test_reasoning_effort(
    server: Any, provider: Any, ask: Any, hear: Any, model: str, expected: dict[str, Any]
) -> None:
    """An effort turns thinking on the way the model understands, and takes the temperature out."""
    server.say(start(), text(0, "ok"), end("end_turn"), STOP)

    await hear(provider, ask(model_id=model, reasoning_effort="low", max_tokens=100, temperature=0.5))

    body = server.seen[0].body
    assert {name: body[name] for name in expected} == expected
    assert "temperature" not in body


async def test_no_thinking_in_the_middle_of_a_turn_without(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A turn whose calls were made without thinking goes on without: the API refuses anything else."""
    server.say(start(), text(0, "ok"), end("end_turn"), STOP)
    history = (UserMessage("hi"), ToolCall("c0", "add", {}, response_id="r1"), ToolResult("c0", "2"))

    await hear(provider, ask(*history, reasoning_effort="low"))

    assert "thinking" not in server.seen[0].body


async def test_a_conversation_that_begins_with_the_assistant(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """The user speaks first, for this API wants it so."""
    server.say(start(), text(0, "ok"), end("end_turn"), STOP)

    await hear(provider, ask(AssistantMessage("welcome"), UserMessage("hi")))

    assert [message["role"] for message in server.seen[0].body["messages"]] == ["user", "assistant", "user"]


async def test_a_connection_serves_one_request_after_the_other(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A reader that leaves right after `Done` still leaves the connection ready for the next request."""
    for _ in range(2):
        server.say(start(), text(0, "ok"), end("end_turn"), STOP)
        async with provider.chat(ask()) as stream:
            async for event in stream:
                if isinstance(event, Done):
                    break

    assert server.connections == 1


async def test_a_server_that_never_ends_its_body(server: Any, provider: Any, ask: Any) -> None:
    """A body that stays open after the last event does not hold up the reader."""
    server.say(start(), text(0, "ok"), end("end_turn"), STOP, "stall")

    with trio.fail_after(1):
        async with provider.chat(ask()) as stream:
            async for event in stream:
                if isinstance(event, Done):
                    break
        await server.until(lambda: server.hung_up == 1)


async def test_an_own_client_is_closed_and_made_again(server: Any, ask: Any, hear: Any) -> None:
    """Leaving closes the provider's own client; entering again works."""
    provider = AnthropicProvider(["m1"], base_url=server.url, api_key="sesame")
    for _ in range(2):
        server.say(start(), text(0, "ok"), end("end_turn"), STOP)
        async with provider:
            client = provider._endpoint.holder.get()
            await hear(provider, ask())
        assert (client.is_closed(), client.max_retries) == (True, 0)


async def test_it_conforms(server: Any, provider: Any) -> None:
    """The provider keeps every promise of the published suite, and leaves no connection busy."""
    thinking = block(0, REDACTED)
    server.always(start(), thinking, text(1, "one ", "two"), end("end_turn"), STOP)

    await check_model_provider(lambda: provider)

    assert pool_of(provider) == []

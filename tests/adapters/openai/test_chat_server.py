"""OpenAIProvider with the chat API against a real server on the loopback."""

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
from youyou.messages.content import FileBlock, ImageBlock, TextBlock
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
from youyou.messages.jsonvalue import thaw
from youyou.testing.agents.conformance_provider import check_model_provider

DONE = b"data: [DONE]\n\n"


def sse(**chunk: Any) -> bytes:
    fields = {"id": "x", "object": "chat.completion.chunk", **chunk}
    return f"data: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return sse(choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


def tool_piece(index: int | None, arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    piece: dict[str, Any] = {"function": {"arguments": arguments, **({"name": name} if name else {})}}
    return piece | ({} if index is None else {"index": index}) | ({"id": id, "type": "function"} if id else {})


@pytest.fixture
async def provider(server: Any) -> AsyncIterator[OpenAIProvider]:
    models = [
        ModelInfo("m1", "M1", 8_000, ModelCapabilities(vision=True)),
        ModelInfo("leading", "Leading", 8_000, ModelCapabilities(system_messages=False)),
        ModelInfo("whole", "Whole", 8_000, ModelCapabilities(streaming=False)),
        ModelInfo("toolless", "Toolless", 8_000, ModelCapabilities(tool_use=False)),
    ]
    # A client of the provider's own would read the system's certificates for each test.
    http_client = httpx2.AsyncClient(verify=False)
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sesame", http_client=http_client) as client:
        yield OpenAIProvider(models, client=client)


def pool_of(provider: OpenAIProvider) -> list[Any]:
    """The connections of the provider's HTTP client that are not ready for another request."""
    connections = provider._endpoint.holder.get()._client._transport._pool.connections
    return [connection for connection in connections if not connection.is_idle()]


async def test_text_and_usage(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Text streams piece by piece; the usage chunk after the finish reason is in `Done`."""
    usage = {
        "prompt_tokens": 12,
        "completion_tokens": 5,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    server.say(delta(role="assistant", content=""), delta(content="Good "), delta(content="day"), delta("stop"))
    server.replies[0] = type(server.replies[0])((*server.replies[0].pieces, sse(choices=[], usage=usage), DONE))

    events = await hear(provider, ask())

    assert events == [TextDelta("Good "), TextDelta("day"), Done(TokenUsage(12, 5, 8, 0, 2))]
    assert server.seen[0].path == "/v1/chat/completions"
    assert server.seen[0].headers["authorization"] == "Bearer sesame"


@pytest.mark.parametrize("fields", [{"reasoning_content": "hm"}, {"reasoning": "hm", "reasoning_details": [{"a": 1}]}])
async def test_reasoning_in_either_field(server: Any, provider: Any, ask: Any, hear: Any, fields: Any) -> None:
    """Reasoning streams wherever the server puts it, and is kept under the name it came under."""
    server.say(delta(**fields), delta("stop", content="so"), DONE)

    *events, done = await hear(provider, ask())

    assert events == [ReasoningDelta("hm"), TextDelta("so")]
    assert thaw(done.provider_data)["message"] == fields


async def test_interleaved_tool_pieces_are_put_together_by_index(
    server: Any, provider: Any, ask: Any, hear: Any
) -> None:
    """Pieces of two calls that arrive in turn become two whole calls in the order of their indices' first piece."""
    server.say(
        delta(tool_calls=[tool_piece(0, "", "c0", "add"), tool_piece(1, "", "c1", "now")]),
        delta(tool_calls=[tool_piece(0, '{"a": ')]),
        delta(tool_calls=[tool_piece(1, '{"zone"')]),
        delta(tool_calls=[tool_piece(0, "1}"), tool_piece(1, ': "Oslo"}')]),
        delta("tool_calls"),
        DONE,
    )

    calls = [ToolCall("c0", "add", {"a": 1}), ToolCall("c1", "now", {"zone": "Oslo"})]
    assert await hear(provider, ask()) == [*calls, Done(None, StopReason.TOOL_USE)]


@pytest.mark.parametrize("indices", [(0, 0, 0), (None, None, None), (0, None, 1)])
async def test_a_server_that_does_not_count_its_calls(
    server: Any, provider: Any, ask: Any, hear: Any, indices: tuple[int | None, ...]
) -> None:
    """A new id begins a new call although the index says nothing, and "stop" after calls means tool use."""
    first, second, third = indices
    server.say(
        delta(tool_calls=[tool_piece(first, '{"a"', "c0", "add")]),
        delta(tool_calls=[tool_piece(second, ": 1}")]),
        delta("stop", tool_calls=[tool_piece(third, "", "c1", "now")]),
        DONE,
    )

    calls = [ToolCall("c0", "add", {"a": 1}), ToolCall("c1", "now", {}, raw_arguments="")]
    assert await hear(provider, ask()) == [*calls, Done(None, StopReason.TOOL_USE)]


@pytest.mark.parametrize("text", ['{"a": 1', "[1]", '{"a": NaN}', '"' + "\\ud800" + '"'])
async def test_arguments_that_are_no_object_stay_as_text(
    server: Any, provider: Any, ask: Any, hear: Any, text: str
) -> None:
    """Arguments that do not parse, or are not a JSON object, travel as raw text."""
    server.say(delta(tool_calls=[tool_piece(0, text, "c0", "add")]), delta("tool_calls"), DONE)

    assert (await hear(provider, ask()))[0] == ToolCall("c0", "add", {}, raw_arguments=text)


async def test_characters_split_over_packets(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Text whose UTF-8 is cut anywhere between TCP segments arrives whole, keep-alive comments in between."""
    body = b": hello\n\n" + delta(content="你好 🚀") + b": still here\n\n" + delta("stop") + DONE
    server.say(*(body[i : i + 1] for i in range(len(body))))

    assert await hear(provider, ask()) == [TextDelta("你好 🚀"), Done()]


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", StopReason.END_TURN),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.CONTENT_FILTER),
        ("Content-Filter", StopReason.CONTENT_FILTER),
        ("MAX_TOKENS", StopReason.LENGTH),
        ("eos_token", StopReason.OTHER),
    ],
)
async def test_stop_reasons(server: Any, provider: Any, ask: Any, hear: Any, finish: str, expected: StopReason) -> None:
    """Each finish reason has its meaning, in any case and spelling; an unknown one is not taken for a good one."""
    server.say(delta(finish, content="a"), DONE)

    assert (await hear(provider, ask()))[-1] == Done(None, expected)


@pytest.mark.parametrize("reports", [[], [1], [1, 2], [2, 2]])
async def test_the_last_usage_counts(server: Any, provider: Any, ask: Any, hear: Any, reports: list[int]) -> None:
    """Usage may be missing, cumulative or said twice: it is never added up."""
    chunks = [sse(choices=[], usage={"prompt_tokens": 9, "completion_tokens": n, "total_tokens": 0}) for n in reports]
    server.say(delta(content="a"), *chunks[:-1], delta("stop"), *chunks[-1:], DONE)

    expected = TokenUsage(9, reports[-1]) if reports else None
    assert (await hear(provider, ask()))[-1] == Done(expected)


async def test_a_stream_without_finish_reason_was_cut(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A body that ends early is an interruption that names what is missing; calls still arriving are dropped."""
    server.say(delta(content="a"), delta(tool_calls=[tool_piece(0, "{", "c0", "add")]))

    with pytest.raises(StreamInterrupted, match=r"before the last event .a finish_reason, or .DONE.."):
        await hear(provider, ask())


async def test_a_connection_cut_in_mid_stream(server: Any, provider: Any, ask: Any) -> None:
    """A connection that breaks in mid-stream is a broken stream, worth a retry."""
    server.say(delta(content="a"), "cut")
    heard = []

    with pytest.raises(StreamInterrupted) as caught:
        async with provider.chat(ask()) as stream:
            async for event in stream:
                heard.append(event)  # noqa: PERF401  # what came before the error counts

    assert heard == [TextDelta("a")]
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"message": "engine fell over", "type": "server_error"}, True),
        ({"message": "upstream", "code": 502}, True),
        ({"message": "bad image", "type": "invalid_request_error"}, False),
    ],
)
async def test_an_error_in_mid_stream(
    server: Any, provider: Any, ask: Any, hear: Any, error: Any, retryable: bool
) -> None:
    """An error object inside the stream is raised with the server's own words."""
    server.say(delta(content="a"), sse(error=error), DONE)

    with pytest.raises(ProviderError, match=error["message"]) as caught:
        await hear(provider, ask())

    assert caught.value.retryable == retryable


async def test_rubbish_in_the_stream(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A stream that is not JSON is a broken stream."""
    server.say(delta(content="a"), b"data: {oops\n\n")

    with pytest.raises(StreamInterrupted):
        await hear(provider, ask())


async def test_rate_limit_with_retry_after(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A rate limit says how long to wait, and the SDK itself does not try again."""
    server.refuse(429, {"error": {"message": "slow down", "type": "rate_limit_error"}}, retry_after="7")

    with pytest.raises(ProviderError, match="slow down") as caught:
        await hear(provider, ask())

    assert (caught.value.retryable, caught.value.retry_after_ms) == (True, 7_000)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("status", "body", "retryable"),
    [
        (401, {"error": {"message": "wrong key", "code": "invalid_api_key"}}, False),
        (403, {"error": {"message": "not yours"}}, False),
        (404, {"error": {"message": "no such model", "code": "model_not_found"}}, False),
        (422, {"detail": [{"msg": "bad field"}]}, False),
        (429, {"error": {"message": "pay first", "code": "insufficient_quota"}}, False),
        (500, {"error": {"message": "oops"}}, True),
        (503, "down for repair", True),
        (529, {"error": {"message": "busy", "type": "overloaded_error"}}, True),
    ],
)
async def test_refusals(
    server: Any, provider: Any, ask: Any, hear: Any, status: int, body: Any, retryable: bool
) -> None:
    """Every refusal is a provider error that says whether trying again makes sense."""
    server.refuse(status, body)

    with pytest.raises(ProviderError, match=f"HTTP {status}") as caught:
        await hear(provider, ask())

    assert caught.value.retryable == retryable


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "no", "code": "context_length_exceeded"}}),
        (400, {"error": {"message": "no", "type": "exceed_context_size_error", "n_ctx": 512}}),
        (400, {"object": "error", "message": "This model's maximum context length is 512 tokens.", "code": 400}),
        (413, "Payload Too Large"),
        (500, {"error": {"message": "the request exceeds the available context size"}}),
    ],
)
async def test_too_long(server: Any, provider: Any, ask: Any, hear: Any, status: int, body: Any) -> None:
    """A request that is too long is told apart, by code and by wording, whatever the shape of the error."""
    server.refuse(status, body)

    with pytest.raises(ContextLengthExceeded):
        await hear(provider, ask())


async def test_nobody_listens(ask: Any, hear: Any) -> None:
    """A refused connection is worth a retry."""
    async with OpenAIProvider(["m1"], base_url="http://127.0.0.1:9/v1") as provider:
        with pytest.raises(ProviderError, match="no connection") as caught:
            await hear(provider, ask())

    assert caught.value.retryable


async def test_the_body_of_a_request(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A conversation with everything in it goes out as the API wants it."""
    server.say(delta("stop", content="ok"), DONE)
    image = ImageBlock("iVBORw0KGgo=", "image/png")

    await hear(
        provider,
        ask(
            UserMessage("hi"),
            AssistantMessage("two calls", response_id="r1"),
            ToolCall("c0", "add", {"a": 1}, response_id="r1"),
            ToolCall("c1", "now", {}, raw_arguments="{oops", response_id="r1"),
            ToolResult("c0", "2"),
            ToolResult("c1", "no JSON", ToolOutcome.FAILED),
            ToolCall("c2", "now", {}, response_id="r2"),
            ToolResult("c2", "noon"),
            AssistantMessage("half a th", MessageStatus.INCOMPLETE, "cancelled", response_id="r3"),
            SystemMessage("that was cut short"),
            UserMessage([TextBlock("look"), image, FileBlock("a.txt", "x</file>y")]),
            system=SystemPrompt("Be brief.", "It is noon."),
            tools=(ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}}),),
            temperature=0.5,
            max_tokens=99,
            reasoning_effort="low",
            response_schema={"type": "object", "properties": {}, "additionalProperties": False},
        ),
    )

    function = {"name": "add", "description": "Adds."}
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert server.seen[0].body == {
        "model": "m1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 99,
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "response", "schema": schema, "strict": True},
        },
        "tools": [
            {
                "type": "function",
                "function": function | {"parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief.\n\nIt is noon."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "two calls",
                "tool_calls": [
                    {"id": "c0", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "now", "arguments": '{"invalid_json":"{oops"}'},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "c0", "content": "2"},
            {"role": "tool", "tool_call_id": "c1", "content": "no JSON"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c2", "content": "noon"},
            {"role": "assistant", "content": "half a th"},
            {"role": "system", "content": "that was cut short"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                    {"type": "text", "text": '<file name="a.txt">\nx&lt;/file>y\n</file>'},
                ],
            },
        ],
    }


async def test_the_plainest_body(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """What was not asked for is not sent."""
    server.say(delta("stop", content="ok"), DONE)

    await hear(provider, ask())

    assert server.seen[0].body == {
        "model": "m1",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_a_server_that_wants_system_text_first(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Where system messages are taken only at the start, notes join the user's text and roles take turns."""
    server.say(delta("stop", content="ok"), DONE)
    history = (UserMessage("one"), SystemMessage("a note"), UserMessage("two"))

    await hear(provider, ask(*history, model_id="leading", system=SystemPrompt("Be brief.")))

    assert server.seen[0].body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one\n\n<system>\na note\n</system>\n\ntwo"},
    ]


async def test_a_model_without_tools_is_sent_none(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """Tools are left out for a model that cannot use them."""
    server.say(delta("stop", content="ok"), DONE)

    await hear(provider, ask(model_id="toolless", tools=(ToolSpec("add", "Adds.", {}),)))

    assert "tools" not in server.seen[0].body


async def test_a_model_that_does_not_stream(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """The whole answer of a model without streaming comes as the same events."""
    call = {"id": "c0", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    message = {"role": "assistant", "content": "so", "tool_calls": [call]}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    server.refuse(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})

    events = await hear(provider, ask(model_id="whole"))

    done = Done(TokenUsage(3, 4), StopReason.TOOL_USE)
    assert events == [TextDelta("so"), ToolCall("c0", "add", {"a": 1}), done]
    assert server.seen[0].body["stream"] is False


async def test_a_connection_serves_one_request_after_the_other(server: Any, provider: Any, ask: Any, hear: Any) -> None:
    """A response that was heard to its end leaves its connection for the next request."""
    for _ in range(2):
        server.say(delta("stop", content="ok"), DONE)
        await hear(provider, ask())

    assert server.connections == 1


async def test_two_streams_at_once(server: Any, provider: Any, ask: Any) -> None:
    """Two tasks may stream at the same time."""
    server.say(delta(content="a"), "stall", delta("stop"), DONE)
    server.say(delta("stop", content="b"), DONE)

    async with provider.chat(ask()) as first:
        a = await anext(first)
        async with provider.chat(ask()) as second:
            b = await anext(second)

    assert (a, b) == (TextDelta("a"), TextDelta("b"))


async def test_the_hosts_client_is_used_and_not_closed(server: Any, ask: Any, hear: Any) -> None:
    """A client given by the host stays open when the provider is left, and its retries are not used."""
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="mine", max_retries=5) as client:
        server.refuse(500, {})
        server.say(delta("stop", content="ok"), DONE)
        async with OpenAIProvider(["m1"], client=client) as provider:
            with pytest.raises(ProviderError):
                await hear(provider, ask())
        assert not client.is_closed()
        await hear(provider, ask())

    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer mine"] * 2


async def test_a_provider_can_be_entered_again(server: Any, ask: Any, hear: Any) -> None:
    """Leaving closes the provider's own client; entering again works."""
    provider = OpenAIProvider(["m1"], base_url=f"{server.url}/v1")
    for _ in range(2):
        server.say(delta("stop", content="ok"), DONE)
        async with provider:
            client = provider._endpoint.holder.get()
            await hear(provider, ask())
        assert (client.is_closed(), client.max_retries) == (True, 0)


async def test_it_conforms(server: Any, provider: Any) -> None:
    """The provider keeps every promise of the published suite, and leaves no connection busy."""
    server.always(delta(content="one "), delta(content="two"), delta("stop"), DONE)

    await check_model_provider(lambda: provider)

    assert pool_of(provider) == []

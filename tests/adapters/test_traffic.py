"""What real servers send, byte for byte over real HTTP: whole, and in pieces of 1, 7 and 4 096 bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from youyou.messages.chat import ChatError, ChatEvent, Done, ReasoningDelta, StopReason, TextDelta, TokenUsage
from youyou.messages.errors import AgentError, ErrorCode
from youyou.messages.history import ToolCall

from .dialects import sse

DONE = "data: [DONE]\n\n"
ACT = {"type": "tool_use", "id": "t", "name": "act", "input": {}}
ROCKET = "\U0001f680"


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> str:
    return sse({"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more})


def piece(arguments: Any, **more: Any) -> dict[str, Any]:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{"function": {"arguments": arguments, **name}, **more}]}


def completed(**response: Any) -> str:
    return sse({"type": "response.completed", "response": {"status": "completed", **response}})


def item(value: Any) -> str:
    return sse({"type": "response.output_item.done", "item": value})


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text}]}


def block(index: int, start: dict[str, Any]) -> str:
    return sse({"type": "content_block_start", "index": index, "content_block": start})


def delta(index: int, kind: str, name: str, text: str) -> str:
    return sse({"type": "content_block_delta", "index": index, "delta": {"type": kind, name: text}})


def stop(index: int) -> str:
    return sse({"type": "content_block_stop", "index": index})


START = sse({"type": "message_start", "message": {"usage": {}}})
STOP = sse({"type": "message_stop"})


def end(reason: str) -> str:
    return sse({"type": "message_delta", "delta": {"stop_reason": reason}})


ITEM = {"type": "function_call", "call_id": "c", "name": "act"}
TWO = [{"function": {"name": "act", "arguments": json.dumps({"a": a})}} for a in ("one", "two")]
WHOLE = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}]}
NESTED = '{"a":' + "[" * 150 + "]" * 150 + "}"
CALLED = [("act", {"a": "one"}), ("act", {"a": "two"})]
STOPPED = chunk(finish="stop")
TOOLS = chunk(finish="tool_calls")
Expected = tuple[str, str, list[Any], StopReason]


def says(text: str = "", *calls: Any, thinks: str = "", how: StopReason = StopReason.END_TURN) -> Expected:
    """What is expected of a stream."""
    return text, thinks, list(calls), StopReason.TOOL_USE if calls and how is StopReason.END_TURN else how


CHAT: dict[str, tuple[str, Expected]] = {
    "content as parts": (chunk({"content": [{"type": "text", "text": "Hello"}]}) + STOPPED + DONE, says("Hello")),
    "thinking among the parts": (
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, "Hi"]}) + STOPPED + DONE,
        says("Hi", thinks="hm"),
    ),
    "an object that is the answer": (
        chunk({"content": {"name": "Ann", "age": 3}}) + STOPPED + DONE,
        says('{"name":"Ann","age":3}'),
    ),
    "a part of another kind": (chunk({"content": [{"type": "image"}, {"text": "Hi"}]}) + STOPPED + DONE, says("Hi")),
    "no index and no id": (chunk({"tool_calls": TWO}) + TOOLS + DONE, says("", *CALLED)),
    "all calls under index 0 without ids": (
        "".join(chunk(piece(json.dumps({"a": a}), index=0, name="act")) for a in ("one", "two")) + TOOLS + DONE,
        says("", *CALLED),
    ),
    "all calls under index 0 with ids": (
        "".join(chunk(piece(json.dumps({"a": a}), index=0, id=a, name="act")) for a in ("one", "two")) + TOOLS + DONE,
        says("", *CALLED),
    ),
    "an id that is new in each piece": (
        chunk(piece('{"a":', index=0, id="x", name="act")) + chunk(piece('"one"}', index=0, id="y")) + TOOLS + DONE,
        says("", CALLED[0]),
    ),
    "a name and a new id in each piece": (
        chunk(piece('{"a":', index=0, id="x", name="act"))
        + chunk(piece('"one"}', index=0, id="y", name="act"))
        + TOOLS
        + DONE,
        says("", CALLED[0]),
    ),
    "a new index in each piece": (
        chunk(piece('{"a":', index=0, id="x", name="act")) + chunk(piece('"one"}', index=1)) + TOOLS + DONE,
        says("", CALLED[0]),
    ),
    "one id for two calls": (
        "".join(chunk(piece(json.dumps({"a": a}), index=n, id="c", name="act")) for n, a in enumerate(("one", "two")))
        + TOOLS
        + DONE,
        says("", *CALLED),
    ),
    "arguments as an object": (chunk(piece({"a": "one"}, index=0, id="c", name="act")) + TOOLS, says("", CALLED[0])),
    "arguments nested too deep": (
        chunk(piece(NESTED, index=0, id="c", name="act")) + TOOLS + DONE,
        says("", ("act", NESTED)),
    ),
    "halves of a character in the arguments": (
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"act",'
        '"arguments":"{\\"a\\":\\"\\ud83d"}}]}}]}\n\n'
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\ude80\\"}"}}]}}]}\n\n'
        + TOOLS
        + DONE,
        says("", ("act", {"a": ROCKET})),
    ),
    "the old function_call": (
        chunk({"function_call": {"name": "act", "arguments": '{"a":"one"}'}}) + chunk(finish="function_call") + DONE,
        says("", CALLED[0]),
    ),
    "an empty data line": (
        chunk({"content": "Hel"}) + "data:\n\n" + chunk({"content": "lo"}) + STOPPED + DONE,
        says("Hello"),
    ),
    "noise of every kind": (
        "\ufeff: hi\n\ndata\n\nevent: ping\ndata:\n\nid: 4\nretry: 9\n\n"
        + chunk({"content": "Hello", "tool_calls": [None]})
        + "data: null\n\ndata: []\n\n: bye\r\n\r\n"
        + sse({"choices": [None, {"index": 0, "delta": None}]})
        + STOPPED
        + DONE,
        says("Hello"),
    ),
    "a last line without its end": (chunk({"content": "Hi"}) + STOPPED.rstrip("\n"), says("Hi")),
    "no reason, then [DONE]": (chunk({"content": "4"}) + chunk({"content": ""}) + DONE, says("4")),
    "an empty reason, then [DONE]": (chunk({"content": "4"}, "") + DONE, says("4")),
    "calls, no reason, then [DONE]": (chunk({"tool_calls": TWO}) + DONE, says("", *CALLED)),
    "a reason without [DONE]": (chunk({"content": "4"}) + STOPPED, says("4")),
    "an odd reason": (chunk({"content": "4"}, 7) + DONE, says("4", how=StopReason.OTHER)),
    "a reason in capitals": (chunk({"content": "4"}, "MAX_TOKENS") + DONE, says("4", how=StopReason.LENGTH)),
    "a refusal": (chunk({"refusal": "No."}) + STOPPED + DONE, says("No.", how=StopReason.REFUSAL)),
    "a whole answer as JSON": (json.dumps(WHOLE), says("4")),
    "a whole answer with an empty delta beside it": (
        json.dumps({"choices": [WHOLE["choices"][0] | {"delta": {"role": "assistant", "content": ""}}]}),
        says("4"),
    ),
    "a whole answer without a reason": (
        json.dumps({"choices": [{"message": {"content": "4"}, "finish_reason": ""}]}),
        says("4"),
    ),
    "a whole answer in one event": (sse(WHOLE) + DONE, says("4")),
}
RESPONSES: dict[str, tuple[str, Expected]] = {
    "told only at the end": (completed(output=[message("Hi")]), says("Hi")),
    "told by deltas and at the end": (
        sse({"type": "response.output_text.delta", "delta": "Hi"}) + completed(output=[message("Hi")]),
        says("Hi"),
    ),
    "half told by deltas": (
        sse({"type": "response.output_text.delta", "delta": "H"}) + completed(output=[message("Hi")]),
        says("Hi"),
    ),
    "told three times": (
        sse({"type": "response.output_text.delta", "delta": "Hi"})
        + sse({"type": "response.output_item.done", "item": message("Hi")})
        + completed(output=[message("Hi")]),
        says("Hi"),
    ),
    "a call told only at the end": (
        completed(output=[{"type": "function_call", "call_id": "c", "name": "act", "arguments": '{"a":"one"}'}]),
        says("", CALLED[0]),
    ),
    "a call that is announced and never done": (
        sse(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "function_call", "id": "f", "call_id": "c", "name": "act"},
            }
        )
        + sse({"type": "response.function_call_arguments.delta", "item_id": "f", "delta": '{"a":"one"}'})
        + completed(),
        says("", CALLED[0]),
    ),
    **{
        f"a call whose pieces say more than its item: {given!r}": (
            sse({"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "id": "f"}})
            + sse({"type": "response.function_call_arguments.delta", "item_id": "f", "delta": '{"a":"one"}'})
            + sse({"type": "response.output_item.done", "output_index": 0, "item": {**ITEM, "arguments": given}})
            + completed(),
            says("", CALLED[0]),
        )
        for given in ({}, "{}", "", None)
    },
    "a call without arguments": (completed(output=[{**ITEM, "arguments": {}}]), says("", ("act", {}))),
    "completed, and yet incomplete": (
        completed(output=[message("Hi")]).replace('"completed"', '"incomplete"', 1),
        says("Hi", how=StopReason.OTHER),
    ),
    "incomplete by a filter": (
        completed(output=[message("Hi")], incomplete_details={"reason": "content_filter"}),
        says("Hi", how=StopReason.CONTENT_FILTER),
    ),
    "a whole answer as JSON": (json.dumps({"status": "completed", "output": [message("Hi")]}), says("Hi")),
    "content as a text": (item({"type": "message", "content": "Hi"}) + completed(), says("Hi")),
    "parts of another kind": (
        item({"type": "message", "content": [None, {"type": "image"}, {"type": "output_text", "text": "Hi"}]})
        + completed(),
        says("Hi"),
    ),
    "text told only when it is done": (
        sse({"type": "response.output_text.done", "text": "Hi"}) + completed(),
        says("Hi"),
    ),
    "text told by deltas and when it is done": (
        sse({"type": "response.output_text.delta", "delta": "H"})
        + sse({"type": "response.output_text.done", "text": "Hi"})
        + item(message("Hi"))
        + completed(output=[message("Hi")]),
        says("Hi"),
    ),
    "thoughts told only at the end": (
        completed(output=[{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, message("Hi")]),
        says("Hi", thinks="hm"),
    ),
    "calls without ids and places": (
        "".join(item({"type": "function_call", **call["function"]}) for call in TWO) + completed(),
        says("", *CALLED),
    ),
    "one id for two calls": (
        "".join(item({"type": "function_call", "call_id": "c", **call["function"]}) for call in TWO)
        + completed(output=[{"type": "function_call", "call_id": "c", **call["function"]} for call in TWO]),
        says("", *CALLED),
    ),
    "a call told twice": (
        item({"type": "function_call", "call_id": "c", **TWO[0]["function"]}) * 2 + completed(),
        says("", CALLED[0]),
    ),
    "arguments told only when they are done": (
        sse({"type": "response.output_item.added", "item": {"type": "function_call", "id": "f", "name": "act"}})
        + sse({"type": "response.function_call_arguments.done", "item_id": "f", "arguments": '{"a":"one"}'})
        + completed(),
        says("", CALLED[0]),
    ),
    "arguments as an object": (
        item({"type": "function_call", "call_id": "c", "name": "act", "arguments": {"a": "one"}}) + completed(),
        says("", CALLED[0]),
    ),
    "arguments nested too deep": (
        item({"type": "function_call", "call_id": "c", "name": "act", "arguments": NESTED}) + completed(),
        says("", ("act", NESTED)),
    ),
    "noise of every kind": (
        "\ufeff: hi\n\ndata\n\nevent: ping\ndata:\n\nid: 4\nretry: 9\n\ndata: null\n\ndata: []\n\n"
        + sse({"type": "response.created"}) * 2
        + sse({"type": "response.output_item.added", "item": None})
        + sse({"type": "response.output_text.delta", "delta": "Hi"})
        + item(None)
        + sse({"type": None})
        + completed(output=[None, message("Hi")]),
        says("Hi"),
    ),
    "a last line without its end": (completed(output=[message("Hi")]).rstrip("\n"), says("Hi")),
    "the end told twice": (completed(output=[message("Hi")]) * 2, says("Hi")),
    "a refusal": (
        item({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}) + completed(),
        says("No.", how=StopReason.REFUSAL),
    ),
    "no last event, then [DONE]": (sse({"type": "response.output_text.delta", "delta": "Hi"}) + DONE, says("Hi")),
}
MESSAGES: dict[str, tuple[str, Expected]] = {
    "content as a text": (
        json.dumps({"type": "message", "content": "hello", "stop_reason": "end_turn"}),
        says("hello"),
    ),
    "parts of another kind": (
        START + block(0, {"type": "image"}) + block(1, {"type": "text", "text": "Hi"}) + end("end_turn") + STOP,
        says("Hi"),
    ),
    "a whole answer in one event": (
        sse({"type": "message", "content": [{"type": "text", "text": "hello"}, ACT], "stop_reason": "tool_use"}) + STOP,
        says("hello", ("act", {})),
    ),
    "all at the start": (
        sse({"type": "message_start", "message": {"content": [{"type": "text", "text": "hello"}]}})
        + end("end_turn")
        + STOP,
        says("hello"),
    ),
    "input told at the start and in pieces": (
        START
        + block(0, ACT | {"input": {"a": "one"}})
        + delta(0, "input_json_delta", "partial_json", '{"a":"one"}')
        + stop(0)
        + end("tool_use")
        + STOP,
        says("", CALLED[0]),
    ),
    "calls without ids and places": (
        START
        + "".join(
            sse({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "act"}})
            + sse({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": text}})
            + sse({"type": "content_block_stop"})
            for text in (call["function"]["arguments"] for call in TWO)
        )
        + end("tool_use")
        + STOP,
        says("", *CALLED),
    ),
    "one id for two calls": (
        START
        + "".join(
            block(n, ACT) + delta(n, "input_json_delta", "partial_json", call["function"]["arguments"]) + stop(n)
            for n, call in enumerate(TWO)
        )
        + end("tool_use")
        + STOP,
        says("", *CALLED),
    ),
    "arguments nested too deep": (
        START + block(0, ACT) + delta(0, "input_json_delta", "partial_json", NESTED) + stop(0) + end("tool_use") + STOP,
        says("", ("act", NESTED)),
    ),
    "noise of every kind": (
        "\ufeff: hi\n\ndata\n\nevent: ping\ndata:\n\nid: 4\nretry: 9\n\ndata: null\n\ndata: []\n\n"
        + sse({"type": "message_start", "message": None})
        + sse({"type": "content_block_start", "index": 0, "content_block": None})
        + sse({"type": "content_block_delta", "index": 0, "delta": None})
        + delta(0, "text_delta", "text", "Hi")
        + sse({"type": None})
        + stop(7)
        + end("end_turn")
        + STOP,
        says("Hi"),
    ),
    "halves of a character in the arguments": (
        START
        + block(0, ACT)
        + delta(0, "input_json_delta", "partial_json", '{"a":"\ud83d')
        + delta(0, "input_json_delta", "partial_json", '\ude80"}')
        + stop(0)
        + end("tool_use")
        + STOP,
        says("", ("act", {"a": ROCKET})),
    ),
    "a block that is not closed": (
        START + block(0, ACT) + delta(0, "input_json_delta", "partial_json", '{"a":"one"}') + end("tool_use") + STOP,
        says("", CALLED[0]),
    ),
    "a block that is not opened": (
        START + delta(0, "text_delta", "text", "hello") + end("end_turn") + STOP,
        says("hello"),
    ),
    "all blocks are number 0": (
        START
        + "".join(
            block(0, ACT | {"id": a}) + delta(0, "input_json_delta", "partial_json", json.dumps({"a": a}))
            for a in ("one", "two")
        )
        + end("tool_use")
        + STOP,
        says("", *CALLED),
    ),
    "a block announced twice": (
        START
        + block(0, ACT) * 2
        + delta(0, "input_json_delta", "partial_json", '{"a":"one"}')
        + stop(0)
        + end("tool_use")
        + STOP,
        says("", CALLED[0]),
    ),
    "a block announced after its first piece": (
        START
        + delta(0, "input_json_delta", "partial_json", '{"a":')
        + block(0, ACT)
        + delta(0, "input_json_delta", "partial_json", '"one"}')
        + stop(0)
        + end("tool_use")
        + STOP,
        says("", CALLED[0]),
    ),
    "a second message_start before the arguments of a call": (
        START
        + block(0, ACT)
        + START
        + delta(0, "input_json_delta", "partial_json", '{"a":"one"}')
        + stop(0)
        + end("tool_use")
        + STOP,
        says("", CALLED[0]),
    ),
    "a call announced without its place, behind a block that was announced without its type": (
        START
        + block(0, {})
        + delta(0, "thinking_delta", "thinking", "hm")
        + stop(0)
        + sse({"type": "content_block_start", "content_block": ACT})
        + delta(1, "input_json_delta", "partial_json", '{"a":"one"}')
        + sse({"type": "content_block_stop"})
        + block(2, {**ACT, "id": "d"})
        + delta(2, "input_json_delta", "partial_json", '{"a":"two"}')
        + stop(2)
        + end("tool_use")
        + STOP,
        says("", *CALLED, thinks="hm"),
    ),
    "a second message_start": (
        START
        + block(0, {"type": "text", "text": ""})
        + delta(0, "text_delta", "text", "a")
        + START
        + delta(0, "text_delta", "text", "b")
        + end("end_turn")
        + STOP,
        says("ab"),
    ),
    "no message_stop": (START + block(0, {"type": "text", "text": "a"}) + end("end_turn"), says("a")),
    "no stop reason": (START + block(0, {"type": "text", "text": "a"}) + STOP, says("a")),
    "a last line without its end": (
        START + block(0, {"type": "text", "text": "a"}) + end("end_turn") + STOP.rstrip("\n"),
        says("a"),
    ),
    "no arguments": (START + block(0, ACT) + stop(0) + end("tool_use") + STOP, says("", ("act", {}))),
    "a refusal": (
        START + block(0, {"type": "text", "text": "No."}) + end("refusal") + STOP,
        says("No.", how=StopReason.REFUSAL),
    ),
    "a whole answer as JSON": (
        json.dumps({"type": "message", "content": [{"type": "text", "text": "hello"}, ACT], "stop_reason": "tool_use"}),
        says("hello", ("act", {})),
    ),
}
CASES = [
    pytest.param(api, body, expected, id=f"{api}: {name}")
    for api, cases in (("chat", CHAT), ("responses", RESPONSES), ("messages", MESSAGES))
    for name, (body, expected) in cases.items()
]

# What the server sends in place of an answer, its content type, words of the error, whether it may be tried again
ANY_ERRORS = [
    ('{"error": {"message": "Insufficient credits", "code": 402}}', "application/json", "Insufficient", False),
    ('{"error": {"message": "out of service", "code": 503}}', "application/json", "out of service", True),
    ('[{"error": {"code": 400, "message": "API key not valid"}}]', "application/json", "not valid", False),
    ('{"detail": "no such model", "code": 404}', "application/json", "no such model", False),
    ('{"message": "go away", "code": 401}', "application/json", "go away", False),
    ('{"type": "error", "error": {"type": "billing_error", "message": "pay"}}', "text/plain", "pay", False),
    ("<html><body><h1>Sign in</h1></body></html>", "text/html", "text/html that is not an event stream", True),
    ("upstream connect error", "text/plain", "upstream connect error", True),
    ('{"malformed', "application/json", "malformed", True),
    ('{"object": "list"}', "application/json", "not an answer of this API", True),
    ("data: {oops\n\n", "text/event-stream", "{oops", True),
    ("event: error\ndata: quota is used up\n\n", "text/event-stream", "quota is used up", True),
    ('event: error\ndata: {"message": "busy"}\n\n', "text/event-stream", "busy", True),
    ('error: {"error":{"message":"failed to decode"}}\n\n', "text/event-stream", "failed to decode", True),
    ('data: {"error":{"message":"no credit left","code":402}}\n\n', "text/event-stream", "no credit left", False),
    (
        sse({"error": {"code": "content_filter", "type": None, "status": 400, "message": "filtered"}}),
        "text/event-stream",
        "filtered",
        False,
    ),
    ("", "text/event-stream", "sent nothing at all", True),
]
ERRORS = [(api, *case) for case in ANY_ERRORS for api in ("chat", "responses", "messages")] + [
    (
        "chat",
        sse({"choices": [{"index": 0, "delta": {}, "error": {"message": "bad luck", "code": 502}}]}),
        "text/event-stream",
        "bad luck",
        True,
    ),
    (
        "responses",
        sse({"type": "response.completed", "response": {"status": "failed", "error": {"message": "broke"}}}),
        "text/event-stream",
        "broke",
        True,
    ),
]


def told(events: list[ChatEvent]) -> Expected:
    """What the events come to."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    calls = [event for event in events if isinstance(event, ToolCall)]
    arguments = [call.arguments if call.raw_arguments is None else call.raw_arguments for call in calls]
    last = events[-1]
    assert isinstance(last, Done)
    return (
        text,
        thought,
        [(call.tool_name, given) for call, given in zip(calls, arguments, strict=True)],
        last.stop_reason,
    )


@pytest.mark.parametrize(("api", "body", "expected"), CASES)
async def test_a_stream_means_the_same_however_it_is_cut(
    server: Any, provider_of: Any, ask: Any, hear: Any, sizes: Any, api: str, body: str, expected: Expected
) -> None:
    """Each accent of a server, whole and in pieces."""
    provider = provider_of(api)
    for size in sizes:
        server.stream(body, size, content_type="application/json" if body[0] == "{" else "text/event-stream")
        assert told(await hear(provider, ask())) == expected, size


@pytest.mark.parametrize(("api", "body", "kind", "words", "retryable"), ERRORS)
async def test_what_the_server_said_is_the_error(
    server: Any,
    provider_of: Any,
    ask: Any,
    hear: Any,
    sizes: Any,
    api: str,
    body: str,
    kind: str,
    words: str,
    retryable: bool,
) -> None:
    """With status 200, in every shape met: the server's own words, and whether the same may succeed later."""
    provider = provider_of(api)
    for size in sizes:
        server.stream(body, size, content_type=kind)
        with pytest.raises(AgentError) as caught:
            await hear(provider, ask())
        assert words in caught.value.message, size
        assert caught.value.retryable is retryable
        assert "yield" not in caught.value.message


USAGE: list[tuple[Any, TokenUsage | None]] = [
    ({"prompt_tokens": "3", "completion_tokens": 1}, TokenUsage(0, 1)),
    ({"prompt_tokens": 3.0, "completion_tokens": 1.5}, TokenUsage(3, 0)),
    ({"prompt_tokens": {"a": 1}, "completion_tokens": -1}, TokenUsage()),
    ({"prompt_tokens": True, "completion_tokens": 10**30}, TokenUsage()),
    ({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": "many"}}, TokenUsage(3)),
    ({"prompt_tokens": 3, "prompt_tokens_details": [1]}, TokenUsage(3)),
    ([1, 2], None),
    ("12", None),
    (
        {
            "prompt_tokens": 12,
            "completion_tokens": 2,
            "total_tokens": 354,
            "completion_tokens_details": {"reasoning_tokens": 340},
        },
        TokenUsage(12, 342, 0, 0, 340),
    ),
]


@pytest.mark.parametrize(("report", "expected"), USAGE)
async def test_an_odd_usage_costs_at_most_itself(
    server: Any, provider_of: Any, ask: Any, hear: Any, report: Any, expected: TokenUsage | None
) -> None:
    """Each figure that is not a number of tokens is dropped alone; the answer stays."""
    server.stream(chunk({"content": "hi"}) + chunk(finish="stop", usage=report) + DONE)
    assert await hear(provider_of("chat"), ask()) == [TextDelta("hi"), Done(expected)]


async def test_usage_beside_the_answer_is_found(server: Any, provider_of: Any, ask: Any, hear: Any) -> None:
    """Old Groq puts it under a name of its own, Moonshot into the choice."""
    usage = {"prompt_tokens": 18, "completion_tokens": 73}
    for more in ({"x_groq": {"usage": usage}}, {"choices": [{"index": 0, "finish_reason": "stop", "usage": usage}]}):
        server.stream(chunk({"content": "4"}, "stop") + sse({"choices": [], **more}) + DONE)
        assert (await hear(provider_of("chat"), ask()))[-1] == Done(TokenUsage(18, 73))


@pytest.mark.parametrize("reason", ["error", "ABORT", "insufficient_system_resource"])
async def test_an_end_by_error_quotes_the_server_and_tells_no_calls(
    server: Any, provider_of: Any, ask: Any, hear: Any, reason: str
) -> None:
    """What was written of a call is not told as one."""
    server.stream(chunk(piece("{}", index=0, id="c", name="act")) + chunk(finish=reason) + DONE)
    (event,) = await hear(provider_of("chat"), ask())
    assert isinstance(event, ChatError)
    assert event.code is ErrorCode.PROVIDER_ERROR
    assert reason in event.message

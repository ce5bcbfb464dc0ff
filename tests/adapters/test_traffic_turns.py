"""What real servers send, as a host and the next request see it: one agent, the real SDK, real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio
import youyou as y
from openai import AsyncOpenAI
from youyou.adapters.openai import OpenAIProvider

DONE = b"data: [DONE]\n\n"


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice], **more})}\n\n".encode()


def writes(arguments: str, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": more.pop("name")} if "name" in more else {})}
    return {"tool_calls": [{"index": 0, "function": function, **more}]}


OK = (chunk({"content": "ok"}), chunk(finish="stop"), DONE)
CALL = chunk(writes("{}", id="c", name="act"))
RAN: list[str] = []


@y.tool(mutating=True)
async def act(a: str = "default") -> str:
    """Act."""
    RAN.append(a)
    return "done"


@pytest.fixture
async def provider(server: Any) -> AsyncIterator[OpenAIProvider]:
    RAN.clear()
    async with httpx2.AsyncClient(verify=False) as http_client:
        client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sesame", http_client=http_client)
        yield OpenAIProvider(["m"], client=client)


@asynccontextmanager
async def session_of(provider: Any, **config: Any) -> AsyncIterator[y.Session]:
    config.setdefault("retry", y.RetryPolicy(attempts=1))
    builder = y.AgentBuilder(y.AgentConfig("m", **config)).register_model_provider(provider).register_tool(act)
    async with builder.build() as agent, await agent.new_session() as session:
        yield session


async def ask(session: y.Session) -> tuple[list[Any], y.TurnResult]:
    turn = await session.send_message("go")
    events = [event.payload async for event in turn]
    return events, await turn.result()


@pytest.mark.parametrize(
    "finish",
    ["content_filter", "length", "MAX_TOKENS", "eos", "refusal", "error", "abort", "insufficient_system_resource"],
)
async def test_calls_of_a_response_that_did_not_end_well_do_not_run(server: Any, provider: Any, finish: str) -> None:
    """Whatever the server calls it, known or not."""
    server.say(CALL, chunk(finish=finish), DONE)
    server.always(*OK)
    async with session_of(provider) as session:
        await ask(session)
    assert RAN == []


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "Tool_Use", "function_call", "end-turn"])
async def test_calls_of_a_response_that_ended_well_run(server: Any, provider: Any, finish: str) -> None:
    """In any case and spelling."""
    server.say(CALL, chunk(finish=finish), DONE)
    server.always(*OK)
    async with session_of(provider) as session:
        _, result = await ask(session)
    assert (["default"], y.TurnStatus.COMPLETED) == (RAN, result.status)


async def test_a_failed_end_fails_the_turn_and_quotes_the_server(server: Any, provider: Any) -> None:
    """After visible text, which is kept as incomplete."""
    server.say(chunk({"content": "half"}), chunk(finish="insufficient_system_resource"), DONE)
    async with session_of(provider) as session:
        _, result = await ask(session)
    assert (y.TurnStatus.FAILED, "half") == (result.status, result.text)
    assert "insufficient_system_resource" in str(result.error)


async def test_reasoning_goes_back_word_for_word_with_its_call(server: Any, provider: Any) -> None:
    """Under the name it came under, on the message and on the call; in the next turn too."""
    details = [{"type": "reasoning.encrypted", "data": "ENC", "index": 0}]
    signed = {"extra_content": {"google": {"thought_signature": "SIG"}}}
    server.say(
        chunk({"reasoning_content": "I must ", "reasoning_details": details}),
        chunk({"reasoning_content": "look."}),
        chunk(writes("{}", id="c", name="act", **signed)),
        chunk(finish="tool_calls"),
        DONE,
    )
    server.always(*OK)
    async with session_of(provider) as session:
        await ask(session)
        await ask(session)
    function = {"name": "act", "arguments": "{}"}
    expected = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "I must look.",
        "reasoning_details": details,
        "tool_calls": [{"id": "c", "type": "function", "function": function, **signed}],
    }
    for request in server.seen[1:]:
        assert expected == request.body["messages"][1]


async def test_a_call_that_is_written_slowly_is_no_silence_and_is_shown(server: Any, provider: Any) -> None:
    """Its pieces come with the id that its start will have, and are not stored."""
    server.say(chunk(writes('{"a":', id="c", name="act")), chunk(writes('"x"}')), chunk(finish="tool_calls"), DONE)
    server.always(*OK)
    async with session_of(provider) as session:
        events, _ = await ask(session)
    pieces = [event for event in events if isinstance(event, y.ToolCallDelta)]
    (start,) = [event for event in events if isinstance(event, y.ToolCallStart)]
    assert [y.ToolCallDelta(start.call_id, "act", '{"a":'), y.ToolCallDelta(start.call_id, "act", '"x"}')] == pieces
    assert RAN == ["x"]


@pytest.mark.parametrize("last", [(), (chunk(usage={"prompt_tokens": 1, "completion_tokens": 1}),), (b": ping\n\n",)])
async def test_a_declared_end_does_not_wait_for_the_line_to_close(server: Any, provider: Any, last: Any) -> None:
    """Whether silence, usage or a comment follows the finish reason."""
    server.say(chunk({"content": "A whole answer."}), chunk(finish="stop"), *last, "stall")
    async with session_of(provider, stream_idle_timeout_ms=30_000) as session:
        with trio.fail_after(15):
            _, result = await ask(session)
    assert (y.TurnStatus.COMPLETED, "A whole answer.") == (result.status, result.text)


@pytest.mark.parametrize(("finish", "advice"), [("length", "raise max_tokens"), ("content_filter", "filter")])
async def test_an_empty_answer_with_a_known_reason_costs_one_request(
    server: Any, provider: Any, finish: str, advice: str
) -> None:
    """And says what to change."""
    server.say(chunk({"reasoning_content": "thinking"}), chunk(finish=finish), DONE)
    async with session_of(provider) as session:
        _, result = await ask(session)
    assert y.ErrorCode.EMPTY_RESPONSE == result.error.code  # type: ignore[union-attr]
    assert advice in str(result.error)
    assert len(server.seen) == 1


@pytest.mark.parametrize(("finish", "reason"), [("length", y.StopReason.LENGTH), ("stop", y.StopReason.END_TURN)])
async def test_a_cut_answer_can_be_told_from_a_whole_one(
    server: Any, provider: Any, finish: str, reason: y.StopReason
) -> None:
    """In the result and in the terminal event."""
    server.say(chunk({"content": "Half an ans"}), chunk(finish=finish), DONE)
    async with session_of(provider) as session:
        events, result = await ask(session)
    assert [reason] * 2 == [result.stop_reason, events[-1].stop_reason]


async def test_a_character_cut_in_two_is_whole(server: Any, provider: Any) -> None:
    """Gateways that count in UTF-16."""
    halves = ('data: {"choices":[{"delta":{"content":"' + text + '"}}]}\n\n' for text in (r"a\ud83d", r"\ude00b"))
    server.say(*(half.encode() for half in halves), chunk(finish="stop"), DONE)
    async with session_of(provider) as session:
        _, result = await ask(session)
    assert result.text == "a\U0001f600b"


async def test_an_option_that_is_refused_by_name_is_left_out_from_then_on(server: Any, provider: Any) -> None:
    """One more request the first time, none the second; the answer comes."""
    detail = [{"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"], "msg": "not permitted"}]
    server.refuse(422, {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"})
    server.always(*OK)
    async with session_of(provider) as session:
        assert [(await ask(session))[1].text for _ in range(2)] == ["ok", "ok"]
    assert [True, False, False] == ["stream_options" in request.body for request in server.seen]


async def test_a_value_that_is_refused_is_told_to_the_host(server: Any, provider: Any) -> None:
    """What the host asked for and can mend is not left out in silence."""
    server.refuse(400, {"error": {"message": "Invalid 'temperature': must be between 0 and 2, unsupported value"}})
    async with session_of(provider, temperature=3) as session:
        _, result = await ask(session)
    assert "must be between" in str(result.error)
    assert len(server.seen) == 1


async def test_long_ids_fit_the_api_that_they_go_to(server: Any, provider: Any) -> None:
    """Call and result alike, and two long ids stay two."""
    ids = ["call_" + "x" * 80 + end for end in ("a", "b")]
    calls = [{"index": n, "id": id, "function": {"name": "act", "arguments": "{}"}} for n, id in enumerate(ids)]
    server.say(chunk({"tool_calls": calls}), chunk(finish="tool_calls"), DONE)
    server.always(*OK)
    async with session_of(provider) as session:
        await ask(session)
    _, assistant, *results = server.seen[1].body["messages"]
    sent = [call["id"] for call in assistant["tool_calls"]]
    assert sent == [result["tool_call_id"] for result in results]
    assert len(set(sent)) == 2
    assert max(map(len, sent)) <= 40


@pytest.mark.parametrize("first_leaves", [True, False])
async def test_an_agent_that_leaves_does_not_close_the_provider_of_the_others(server: Any, first_leaves: bool) -> None:
    """In both orders; the client closes with the last, and a later agent gets a new one."""
    shared = OpenAIProvider(["m"], base_url=f"{server.url}/v1", api_key="sesame")
    server.always(*OK)
    left, done = trio.Event(), trio.Event()

    async def leaver() -> None:
        async with session_of(shared) as session:
            await ask(session)
        left.set()

    async def stayer() -> None:
        async with session_of(shared) as session:
            await ask(session)
            client = shared._endpoint.holder.get()
            await left.wait()
            _, result = await ask(session)
            assert (result.text, client.is_closed()) == ("ok", False)
        assert client.is_closed()
        done.set()

    async with trio.open_nursery() as nursery:
        for function in (leaver, stayer) if first_leaves else (stayer, leaver):
            nursery.start_soon(function)
    async with session_of(shared) as session:
        assert (await ask(session))[1].text == "ok"


async def test_loopback_goes_past_the_proxy_of_the_environment(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy for the world outside cannot reach this machine."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.always(*OK)
    async with session_of(OpenAIProvider(["m"], base_url=f"{server.url}/v1", api_key="sesame")) as session:
        assert (await ask(session))[1].text == "ok"


async def test_a_failure_through_a_proxy_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its password."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://me:secret99@127.0.0.1:1")
    provider = OpenAIProvider(["m"], base_url="http://models.example/v1", api_key="sesame")
    async with session_of(provider) as session:
        _, result = await ask(session)
    assert "through the proxy http://127.0.0.1:1" in str(result.error)
    assert "secret99" not in str(result.error)


async def test_a_key_that_the_server_repeats_is_taken_out(server: Any, provider: Callable[..., Any]) -> None:
    """It reaches neither the event nor the log."""
    server.refuse(401, {"error": {"message": "Incorrect API key provided: sesame."}})
    async with session_of(provider) as session:
        _, result = await ask(session)
    assert "sesame" not in str(result.error)
    assert "***" in str(result.error)

"""What real servers send, as a host and the next request see it: one agent, real SDKs, real HTTP, all three APIs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import youyou as y

from .dialects import DIALECTS, Call, Chat, Dialect, Say, Think, sse

RAN: list[str] = []
OK = Say("ok")
DEFAULT = Call("c", "act", "{}")


@y.tool(mutating=True)
async def act(a: str = "default") -> str:
    """Act."""
    RAN.append(a)
    return "done"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@asynccontextmanager
async def session_of(provider: Any, **config: Any) -> AsyncIterator[y.Session]:
    config.setdefault("retry", y.RetryPolicy(attempts=1))
    builder = y.AgentBuilder(y.AgentConfig("m1", **config)).register_model_provider(provider).register_tool(act)
    async with builder.build() as agent, await agent.new_session() as session:
        yield session


async def ask(session: y.Session) -> tuple[list[Any], y.TurnResult]:
    turn = await session.send_message("go")
    events = [event.payload async for event in turn]
    return events, await turn.result()


BAD_ENDS = {
    "chat": (
        *("content_filter", "length", "MAX_TOKENS", "eos", "refusal", "pause_turn"),
        *("error", "abort", "insufficient_system_resource"),
    ),
    "responses": ("max_output_tokens", "content_filter", "Content-Filter", "stop", "eos", "cancelled", "failed"),
    "messages": (
        *("max_tokens", "MAX_TOKENS", "refusal", "pause_turn", "model_context_window_exceeded", "content_filter"),
        *("eos", "error", "abort"),
    ),
}


@pytest.mark.parametrize("said", [(), (OK,)], ids=["calls alone", "text and calls"])
async def test_calls_of_a_response_that_did_not_end_well_do_not_run(
    server: Any, provider: Any, dialect: Dialect, sizes: Any, said: Any
) -> None:
    """Whatever the server calls it, known or not, and however its answer is cut."""
    async with session_of(provider) as session:
        for size in sizes:
            for word in BAD_ENDS[dialect.name]:
                server.always(*map(str.encode, dialect.answer(OK)))
                server.stream(dialect.answer(*said, DEFAULT, end=word), size)
                await ask(session)
                assert RAN == [], word


GOOD_ENDS = {
    "chat": ("stop", "tool_calls", "Tool_Use", "function_call", "end-turn"),
    "responses": (None,),
    "messages": ("tool_use", "end_turn", "stop_sequence", "TOOL_USE"),
}


async def test_calls_of_a_response_that_ended_well_run(
    server: Any, provider: Any, dialect: Dialect, sizes: Any
) -> None:
    """In any case and spelling."""
    async with session_of(provider) as session:
        for size in sizes:
            for word in GOOD_ENDS[dialect.name]:
                server.stream(dialect.answer(DEFAULT, end=word), size)
                server.stream(dialect.answer(OK), size)
                _, result = await ask(session)
                assert (["default"], y.TurnStatus.COMPLETED) == (RAN, result.status), word
                RAN.clear()


@pytest.mark.parametrize("word", ["error", "insufficient_system_resource", "ABORT"])
async def test_a_failed_end_fails_the_turn_and_quotes_the_server(
    server: Any, provider: Any, dialect: Dialect, sizes: Any, word: str
) -> None:
    """After visible text, which is kept as incomplete."""
    async with session_of(provider) as session:
        for size in sizes:
            server.stream(dialect.answer(Say("half"), end=word), size)
            _, result = await ask(session)
            assert (y.TurnStatus.FAILED, "half") == (result.status, result.text)
            assert word in str(result.error)


async def test_a_character_cut_in_two_is_whole(server: Any, provider: Any, dialect: Dialect, sizes: Any) -> None:
    """In text, thoughts and arguments: gateways that count in UTF-16 cut between its halves."""
    halves = ("a\ud83d", "\ude00b")
    async with session_of(provider) as session:
        for size in sizes:
            RAN.clear()
            call = Call("c", "act", *('{"a":"' + halves[0], halves[1] + '"}'))
            server.stream(dialect.answer(Think(*halves), Say(*halves), call), size)
            server.stream(dialect.answer(Say(*halves)), size)
            events, result = await ask(session)
            thought = "".join(event.text for event in events if isinstance(event, y.ReasoningDelta))
            assert ["a\U0001f600b"] * 3 == [result.text, thought, *RAN]


async def test_a_half_that_stays_alone_is_replaced(server: Any, provider: Any, dialect: Dialect, sizes: Any) -> None:
    """It cannot be stored, and costs only itself."""
    async with session_of(provider) as session:
        for size in sizes:
            server.stream(dialect.answer(Say("a\ud83d", "b")), size)
            _, result = await ask(session)
            assert result.text == "a\ufffdb"


ODD = ("3", {"a": 1}, [1], -1, 1.5, True, None, 10**30, "many")


def usage_with(dialect: Dialect, path: str, value: Any) -> dict[str, Any]:
    """A report in which one field is odd."""
    report: dict[str, Any] = {dialect.usage_fields[0]: 3, dialect.usage_fields[1]: 1}
    place, *keys = report, *path.split(".")
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    place[keys[-1]] = value
    return report


def odd_reports(dialect: Dialect) -> list[Any]:
    """Every field with every odd value, and reports that are not objects."""
    fields = [usage_with(dialect, path, value) for path in dialect.usage_fields for value in ODD]
    return [*fields, *ODD, [], {}]


async def test_an_odd_usage_costs_at_most_itself(server: Any, provider: Any, dialect: Dialect, sizes: Any) -> None:
    """Answer, session and agent live on; each odd report of an API in one conversation."""
    # The quick half of the sizes has a third of the reports.
    reports = odd_reports(dialect)[:: 1 if 1 in sizes else 3]
    async with session_of(provider) as session:
        for number, report in enumerate(reports):
            server.stream(dialect.answer(Say("hi"), usage=report), sizes[number % len(sizes)])
            _, result = await ask(session)
            assert (y.TurnStatus.COMPLETED, "hi") == (result.status, result.text), report


async def test_the_figures_beside_an_odd_one_count(server: Any, provider: Any, dialect: Dialect, sizes: Any) -> None:
    """The fields of a report are judged one by one; an integral float is a number of tokens."""
    sent, made, *_ = dialect.usage_fields
    expected = [({sent: 3.0, made: 1}, (3, 1)), ({sent: "3", made: 1}, (0, 1)), ({sent: 3, made: [1]}, (3, 0))]
    async with session_of(provider) as session:
        for size in sizes:
            for report, figures in expected:
                server.stream(dialect.answer(Say("hi"), usage=report), size)
                _, result = await ask(session)
                assert figures == (result.usage.input_tokens, result.usage.output_tokens)


async def test_thoughts_go_back_word_for_word_with_their_call(
    server: Any, provider: Any, dialect: Dialect, sizes: Any
) -> None:
    """In the next round and in the next turn; each of them once."""
    for size in sizes:
        server.seen.clear()
        server.stream(dialect.answer(Think("I must ", "look."), DEFAULT), size)
        for _ in range(2):
            server.stream(dialect.answer(OK), size)
        async with session_of(provider) as session:
            await ask(session)
            await ask(session)
        for request in server.seen[1:]:
            assert dialect.thoughts("I must ", "look.") == dialect.own(request.body)


async def test_every_field_that_a_chat_server_wants_back_goes_back(server: Any, provider_of: Any, sizes: Any) -> None:
    """On the message and on the call, under the name that it came under."""
    chat = DIALECTS["chat"]
    assert isinstance(chat, Chat)
    details = [{"type": "reasoning.encrypted", "data": "ENC", "index": 0}]
    signed = {"extra_content": {"google": {"thought_signature": "SIG"}}}
    function = {"name": "act", "arguments": "{}"}
    call = {"index": 0, "id": "c", "function": function, **signed}
    for size in sizes:
        server.seen.clear()
        server.stream(
            [
                chat.chunk({"reasoning_content": "I must ", "reasoning_details": details}),
                chat.chunk({"reasoning_content": "look."}),
                chat.chunk({"tool_calls": [call]}),
                chat.chunk(finish="tool_calls"),
                chat.mark,
            ],
            size,
        )
        server.stream(chat.answer(OK), size)
        async with session_of(provider_of("chat")) as session:
            await ask(session)
        expected = {
            "role": "assistant",
            "content": None,
            "reasoning_content": "I must look.",
            "reasoning_details": details,
            "tool_calls": [{"id": "c", "type": "function", "function": function, **signed}],
        }
        assert expected == server.seen[1].body["messages"][1]


async def test_a_call_that_is_written_slowly_is_not_silence(
    server: Any, provider: Any, dialect: Dialect, waiting_is_over: Any
) -> None:
    """Each piece comes in time and all of them long after the limit; the host sees them, under the id of the call."""
    written = Call("c", "act", '{"a":"', "x", "x", "x", '"}')
    server.stream(dialect.answer(OK))
    server.replies.insert(0, server.paced(dialect.answer(written), seconds=0.9, last=6))
    began = trio.current_time()
    async with session_of(provider, stream_idle_timeout_ms=2_000) as session:
        events, result = await ask(session)
    assert (result.status, RAN, result.error) == (y.TurnStatus.COMPLETED, ["xxx"], None)
    assert trio.current_time() - began > 4
    (start,) = [event for event in events if isinstance(event, y.ToolCallStart)]
    pieces = [event for event in events if isinstance(event, y.ToolCallDelta)]
    assert '{"a":"xxx"}' == "".join(piece.text for piece in pieces)
    assert {(start.call_id, "act")} == {(piece.call_id, piece.tool_name) for piece in pieces}


async def test_hidden_thoughts_are_not_silence(
    server: Any, provider: Any, dialect: Dialect, waiting_is_over: Any
) -> None:
    """What can be shown to nobody is a sign of work all the same."""
    hidden = {
        "chat": [sse({"choices": [{"index": 0, "delta": {"reasoning_details": [{"data": "x"}]}}]})] * 3,
        "responses": [sse({"type": "response.output_item.added", "item": {"type": "reasoning", "id": "r"}})] * 3,
        "messages": [
            sse({"type": "content_block_delta", "index": 9, "delta": {"type": "signature_delta", "signature": "S"}})
        ]
        * 3,
    }[dialect.name]
    start, *rest = dialect.answer(OK)
    server.replies.append(server.paced(hidden, seconds=1.5).then(*map(str.encode, [start, *rest])))
    async with session_of(provider, stream_idle_timeout_ms=2_000) as session:
        _, result = await ask(session)
    assert (y.TurnStatus.COMPLETED, "ok") == (result.status, result.text)


async def test_comments_and_pings_are_silence(
    server: Any, provider: Any, dialect: Dialect, waiting_is_over: Any
) -> None:
    """They keep a connection open, and say nothing of the model."""
    start, *_ = dialect.answer(OK)
    server.replies.append(server.paced([start, *[dialect.noise, ": still here\n\n"] * 5], seconds=1.0))
    async with session_of(provider, stream_idle_timeout_ms=2_500) as session:
        _, result = await ask(session)
    assert y.ErrorCode.PROVIDER_TIMEOUT == result.error.code  # type: ignore[union-attr]


async def test_an_answer_that_does_not_stream_has_the_limit_for_itself(
    server: Any, provider_of: Any, dialect: Dialect, waiting_is_over: Any
) -> None:
    """Nothing comes before all of it, so the idle limit is that of the whole request."""
    whole = y.ModelInfo("m1", "Whole", 8_000, y.ModelCapabilities(streaming=False))
    answer = json.dumps(dialect.body("ok"))
    for seconds, expected in ((1.5, y.TurnStatus.COMPLETED), (2.5, y.TurnStatus.FAILED)):
        server.replies.append(server.paced([answer], seconds=seconds, content_type="application/json"))
        async with session_of(provider_of(dialect.name, whole), stream_idle_timeout_ms=2_000) as session:
            _, result = await ask(session)
        assert expected is result.status
    assert y.ErrorCode.PROVIDER_TIMEOUT == result.error.code  # type: ignore[union-attr]
    assert not any(request.body.get("stream") for request in server.seen)


REFUSED = {"chat": "stream_options", "responses": "include", "messages": "cache_control"}


async def test_an_option_that_is_refused_by_name_is_left_out_from_then_on(
    server: Any, provider: Any, dialect: Dialect, sizes: Any
) -> None:
    """One more request the first time, none the second; the answer comes."""
    name = REFUSED[dialect.name]
    place = {"messages": ["body", "system", 0, name]}.get(dialect.name, ["body", name, "x"])
    detail = [{"type": "extra_forbidden", "loc": place, "msg": f"'{name}' is not permitted"}]
    refusal = json.dumps({"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"})
    server.stream([refusal], sizes[-1], status=422, content_type="application/json")
    server.always(*map(str.encode, dialect.answer(OK)))
    async with session_of(provider, system_instructions=("Be brief.",)) as session:
        assert [(await ask(session))[1].text for _ in range(2)] == ["ok", "ok"]
    assert [True, False, False] == [name in json.dumps(request.body) for request in server.seen]


@pytest.mark.parametrize("name", ["extra_content", "signature"])
async def test_a_field_of_a_call_that_is_refused_by_name_is_left_out(server: Any, provider_of: Any, name: str) -> None:
    """What a server sent with a call and another version of it does not take back; the call itself stays."""
    chat = DIALECTS["chat"]
    assert isinstance(chat, Chat)
    call = {"index": 0, "id": "c", "function": {"name": "act", "arguments": "{}", "signature": "S"}}
    begin = chat.chunk({"tool_calls": [call | {"extra_content": {"google": {"thought_signature": "SIG"}}}]})
    server.stream([begin, chat.end(called=True), chat.mark])
    server.refuse(
        400, {"error": {"message": f"Unknown name '{name}' at 'messages[1].tool_calls[0]': Cannot find field."}}
    )
    server.always(*map(str.encode, chat.answer(OK)))
    async with session_of(provider_of("chat")) as session:
        results = [(await ask(session))[1] for _ in range(2)]

    sent = [request.body["messages"][1]["tool_calls"][0] for request in server.seen[1:]]
    assert [y.TurnStatus.COMPLETED] * 2 == [result.status for result in results]
    assert [True, False, False] == [f'"{name}"' in json.dumps(each) for each in sent]
    assert all(("c", "act") == (each["id"], each["function"]["name"]) for each in sent)


async def test_a_value_that_is_refused_is_told_to_the_host(server: Any, provider: Any) -> None:
    """What the host asked for and can mend is not left out in silence."""
    server.refuse(400, {"error": {"message": "Invalid 'temperature': must be between 0 and 2, unsupported value"}})
    async with session_of(provider, temperature=3) as session:
        _, result = await ask(session)
    assert "must be between" in str(result.error)
    assert len(server.seen) == 1


async def test_an_overflow_that_a_gateway_words_leads_to_compaction(
    server: Any, provider: Any, dialect: Dialect, sizes: Any
) -> None:
    """LiteLLM says so by the name of its exception, on all three APIs."""
    words = "litellm.ContextWindowExceededError: litellm.BadRequestError: this is too much"
    refusal = {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": "400"}}
    async with session_of(provider) as session:
        for size in sizes:
            server.stream(dialect.answer(OK), size)
            await ask(session)
            server.stream([json.dumps(refusal)], size, status=400, content_type="application/json")
            server.always(*map(str.encode, dialect.answer(Say("<summary>All went well.</summary>"))))
            events, result = await ask(session)
            assert y.TurnStatus.COMPLETED == result.status, result.error
            assert [y.ContextCompacted] == [type(event) for event in events if isinstance(event, y.ContextCompacted)]


@pytest.mark.parametrize("first_leaves", [True, False])
async def test_an_agent_that_leaves_does_not_close_the_provider_of_the_others(
    server: Any, dialect: Dialect, first_leaves: bool
) -> None:
    """In both orders, in the middle of an answer and between two; the client closes with the last."""
    shared = own_provider(dialect, server)
    start, *rest = dialect.answer(OK)
    left, begun = trio.Event(), trio.Event()

    async def leaver() -> None:
        async with session_of(shared):
            await begun.wait()
        left.set()

    async def stayer() -> None:
        async with session_of(shared) as session:
            server.say(start.encode(), "hold", *map(str.encode, rest))
            turn = await session.send_message("go")
            await server.until(lambda: server.seen)
            client = shared._endpoint.holder.get()
            begun.set()
            await left.wait()
            server.held.set()
            assert (await turn.result()).text == "ok"
            server.always(*map(str.encode, dialect.answer(OK)))
            assert ((await ask(session))[1].text, client.is_closed()) == ("ok", False)
        assert client.is_closed()

    async with trio.open_nursery() as nursery:
        for function in (leaver, stayer) if first_leaves else (stayer, leaver):
            nursery.start_soon(function)
    async with session_of(shared) as session:
        assert (await ask(session))[1].text == "ok"


def own_provider(dialect: Dialect, server: Any) -> Any:
    """A provider that makes its client by itself."""
    from youyou.adapters.anthropic import AnthropicProvider
    from youyou.adapters.openai import OpenAIProvider

    if dialect.name == "messages":
        return AnthropicProvider(["m1"], base_url=server.url, api_key="sesame")
    return OpenAIProvider(["m1"], base_url=f"{server.url}/v1", api_key="sesame", api=dialect.name)  # type: ignore[arg-type]


@pytest.mark.parametrize("follows", ["silence", "comments", "pings", "the end of the body", "a break"])
async def test_a_declared_end_does_not_wait_for_its_mark(
    server: Any, provider: Any, dialect: Dialect, waiting_is_over: Any, follows: str
) -> None:
    """Whatever follows in its place: the answer is whole a second later."""
    said = dialect.parts(Say("A whole answer."))
    noise = {"comments": [": ping\n\n"] * 6, "pings": [dialect.noise] * 6}.get(follows, [])
    paced = server.paced([*said, dialect.end(), *noise], seconds=0.3, last=len(noise))
    last = {"the end of the body": (), "a break": ("cut",)}.get(follows, ("stall",))
    server.replies.append(paced.then(*last))
    began = trio.current_time()
    async with session_of(provider, stream_idle_timeout_ms=30_000) as session:
        _, result = await ask(session)
    assert (y.TurnStatus.COMPLETED, "A whole answer.") == (result.status, result.text)
    assert trio.current_time() - began < 4


async def test_a_declared_end_is_not_silence(
    server: Any, provider: Any, dialect: Dialect, waiting_is_over: Any
) -> None:
    """The wait for its mark may end after the idle limit, counted from the last piece."""
    server.say(*map(str.encode, dialect.parts(OK)), 0.8, dialect.end().encode(), "stall")
    async with session_of(provider, stream_idle_timeout_ms=1_500) as session:
        _, result = await ask(session)
    assert (y.TurnStatus.COMPLETED, "ok") == (result.status, result.text)


async def test_any_mark_of_the_end_is_enough(server: Any, provider: Any, dialect: Dialect, sizes: Any) -> None:
    """The declared end without its mark, the mark without a declared end."""
    said = dialect.parts(OK)
    marks = {"chat": [dialect.mark], "messages": [dialect.mark], "responses": ["data: [DONE]\n\n"]}[dialect.name]
    async with session_of(provider) as session:
        for size in sizes:
            for end in ([dialect.end()], marks):
                server.stream([*said, *end], size)
                _, result = await ask(session)
                assert (y.TurnStatus.COMPLETED, "ok") == (result.status, result.text)


async def test_an_answer_with_no_mark_of_its_end_was_cut(
    server: Any, provider: Any, dialect: Dialect, sizes: Any
) -> None:
    """Its text is kept as incomplete, its calls do not run, and the error names what is missing."""
    async with session_of(provider) as session:
        for size in sizes:
            server.stream(dialect.parts(Say("half"), DEFAULT), size)
            _, result = await ask(session)
            assert (y.TurnStatus.FAILED, "half", []) == (result.status, result.text, RAN)
            assert "before the last event" in str(result.error)


@pytest.mark.parametrize(
    ("word", "advice"), [("length", "raise max_tokens"), ("content_filter", "filter"), ("refusal", "refuse")]
)
async def test_an_empty_answer_with_a_known_reason_costs_one_request(
    server: Any, provider: Any, dialect: Dialect, sizes: Any, word: str, advice: str
) -> None:
    """And says what to change."""
    async with session_of(provider) as session:
        for size in sizes:
            before = len(server.seen)
            server.stream(dialect.answer(Think("thinking and thinking"), end=word), size)
            _, result = await ask(session)
            assert y.ErrorCode.EMPTY_RESPONSE == result.error.code  # type: ignore[union-attr]
            assert advice in str(result.error)
            assert len(server.seen) - before == 1


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("length", y.StopReason.LENGTH),
        ("content_filter", y.StopReason.CONTENT_FILTER),
        ("refusal", y.StopReason.REFUSAL),
        ("eos", y.StopReason.OTHER),
        (None, y.StopReason.END_TURN),
    ],
)
async def test_a_cut_answer_can_be_told_from_a_whole_one(
    server: Any, provider: Any, dialect: Dialect, sizes: Any, word: str | None, reason: y.StopReason
) -> None:
    """In the result, in the terminal event and in the stored message."""
    async with session_of(provider) as session:
        for size in sizes:
            server.stream(dialect.answer(Say("Half an ans"), end=word), size)
            events, result = await ask(session)
            assert (y.TurnStatus.COMPLETED, "Half an ans") == (result.status, result.text)
            stored = [message for message in session.history if isinstance(message, y.AssistantMessage)][-1]
            assert [reason] * 3 == [result.stop_reason, events[-1].stop_reason, stored.stop_reason]


NESTED = '{"a":' + "[" * 150 + "]" * 150 + "}"


@pytest.mark.parametrize("arguments", [NESTED, '{"a"', "[1]", '"x"', "7"], ids=["deep", "cut", "list", "text", "7"])
async def test_arguments_that_are_not_an_object_are_told_to_the_model(
    server: Any, provider: Any, dialect: Dialect, sizes: Any, arguments: str
) -> None:
    """One error result, one more request; the stream is not broken."""
    async with session_of(provider) as session:
        for size in sizes:
            before = len(server.seen)
            server.stream(dialect.answer(Call("c", "act", arguments)), size)
            server.stream(dialect.answer(OK), size)
            _, result = await ask(session)
            assert (y.TurnStatus.COMPLETED, "ok", []) == (result.status, result.text, RAN)
            assert [True] == [each.is_error for each in result.tool_results]
            assert len(server.seen) - before == 2


LONG = ["call_" + "x" * 80 + end for end in ("a", "b")]
STRANGE = ["call/é:1", "call/è:1", "", "call.1"]


@pytest.mark.parametrize("ids", [LONG, STRANGE], ids=["long", "strange"])
async def test_ids_fit_the_api_that_they_go_to(
    server: Any, provider: Any, dialect: Dialect, sizes: Any, ids: list[str]
) -> None:
    """Call and result alike, in length and alphabet, and never two made one."""
    for size in sizes:
        server.seen.clear()
        calls = [Call(id, "act", f'{{"a":"{place}"}}') for place, id in enumerate(ids)]
        server.stream(dialect.answer(*calls), size)
        server.stream(dialect.answer(OK), size)
        async with session_of(provider) as session:
            await ask(session)
        called, answered = dialect.ids(server.seen[1].body)
        assert called == answered
        assert len(set(called)) == len(ids)
        assert max(map(len, called)) <= dialect.longest_id
        assert all(id.replace("_", "").replace("-", "").isascii() and "/" not in id and "." not in id for id in called)


async def test_loopback_goes_past_the_proxy_of_the_environment(
    server: Any, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy for the world outside cannot reach this machine."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.stream(dialect.answer(OK))
    async with session_of(own_provider(dialect, server)) as session:
        assert (await ask(session))[1].text == "ok"


async def test_a_failure_through_a_proxy_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its password."""
    from youyou.adapters.openai import OpenAIProvider

    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://me:secret99@127.0.0.1:1")
    provider = OpenAIProvider(["m1"], base_url="http://models.example/v1", api_key="sesame")
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

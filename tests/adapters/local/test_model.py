"""The real model inside the process: form, end and cancellation, never wording."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import jsonschema_rs
import pytest
import trio
import trio.testing
import youyou
from youyou.adapters.local import LocalProvider
from youyou.adapters.local.server import SLOTS, ServerSettings, serving
from youyou.adapters.local.weights import VARIABLE, find_weights
from youyou.messages.chat import ChatRequest, Done, Progress, StopReason, SystemPrompt, TextDelta, ToolSpec
from youyou.messages.errors import ContextLengthExceeded, ProviderError
from youyou.messages.history import AssistantMessage, SystemMessage, ToolCall, ToolResult, UserMessage
from youyou.messages.jsonvalue import thaw
from youyou.testing import check_model_provider

pytestmark = pytest.mark.long

STORY = "Tell me a long story about a fox and a bear."
WEATHER = ToolSpec(
    "weather",
    "Current weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
)
CLOCK = ToolSpec("clock", "The current date and time.", {"type": "object", "properties": {}})
BOOK = ToolSpec(
    "book_flight",
    'Book a "flight" for people — 預約航班.',
    {
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/Place"},
            "seat": {"enum": ["window", 'the "middle"', "通路"]},
            "people": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            "bags": {"type": "integer", "minimum": 0},
            "price": {"type": ["number", "null"]},
        },
        "required": ["to", "seat", "people"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 20}, "code": {"type": ["string", "null"]}},
                "required": ["city", "code"],
                "additionalProperties": False,
            }
        },
    },
)
NOTE = ToolSpec(
    "add_note",
    "Keep a note for later.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
TOOLS = (WEATHER, CLOCK, BOOK, NOTE)


@pytest.fixture(autouse=True)
def own_weights(monkeypatch):
    """The pinned weights, whatever the environment names."""
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
async def provider():
    """The model, running."""
    async with LocalProvider() as running:
        yield running


def ask(*messages, tools=(), **more):
    """A request with this history; plain strings are the user's."""
    history = [UserMessage(message) if isinstance(message, str) else message for message in messages]
    return ChatRequest("local", SystemPrompt("You are helpful."), history, tools, **more)


async def events_of(provider, request):
    """All events of one answer."""
    async with provider.chat(request) as stream:
        return [event async for event in stream]


def text_of(events):
    """The text of an answer."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def seconds_until_next(provider):
    """How long the model takes for a tiny answer now: long if it is busy with something that nobody wants."""
    start = trio.current_time()
    await events_of(provider, ask("Hi", max_tokens=1))
    return trio.current_time() - start


async def test_it_keeps_the_contract_of_a_provider():
    """The published conformance suite passes."""
    with trio.fail_after(300):
        await check_model_provider(LocalProvider, leave_within_ms=1_000)


async def test_text_streams_in_pieces_and_ends_with_usage(provider):
    """An answer comes as several pieces, then exactly one end with counts of tokens."""
    *pieces, end = await events_of(provider, ask(STORY, max_tokens=24))

    assert {TextDelta} == {type(piece) for piece in pieces} - {Progress}  # the latter before the first word
    assert 5 < sum(isinstance(piece, TextDelta) for piece in pieces)
    assert StopReason.LENGTH == end.stop_reason
    assert 24 == end.usage.output_tokens
    assert end.usage.input_tokens > 10


@pytest.mark.parametrize(
    "question",
    [
        "What is the weather in Reykjavík?",
        "Keep a note: she said \"it's 5 o'clock\" \\ 東京 🙂",
        "Book a flight to Oslo for Ann and Bob, window seat",
        "What time is it now?",
        "Book",
        "note note note note note",
        'weather({"city": ',
    ],
)
async def test_a_call_is_always_well_formed(provider, question):
    """Whatever is asked: words, or one call of a known tool with arguments that its schema accepts."""
    events = await events_of(provider, ask(question, tools=TOOLS))
    calls = [event for event in events if isinstance(event, ToolCall)]

    assert isinstance(events[-1], Done)
    assert calls or text_of(events).strip()
    for call in calls:
        assert StopReason.TOOL_USE == events[-1].stop_reason
        (tool,) = (tool for tool in TOOLS if tool.name == call.tool_name)
        jsonschema_rs.validator_for(thaw(tool.parameters)).validate(thaw(call.arguments))


async def test_every_tool_can_be_called_and_none_has_to(provider):
    """With one tool and nothing but its grammar, the nested schema is written well formed; a greeting gets words."""
    (call, _) = await events_of(provider, ask("Book a flight for people: Oslo and Ann", tools=(BOOK,)))
    greeting = await events_of(provider, ask("Good morning!", tools=TOOLS))

    jsonschema_rs.validator_for(thaw(BOOK.parameters)).validate(thaw(call.arguments))
    assert text_of(greeting).strip()


async def test_after_a_result_it_answers_in_words(provider):
    """A conversation with a tool result never calls again for the same input, so no turn goes round forever."""
    call = ToolCall("c1", "weather", {"city": "Oslo"})
    history = ("What is the weather in Oslo?", call, ToolResult("c1", "sunny, 21 degrees"))
    events = await events_of(provider, ask(*history, tools=TOOLS))

    assert [] == [event for event in events if isinstance(event, ToolCall)]
    assert "21" in text_of(events)
    assert "\n" not in text_of(events)


async def test_history_with_tools_and_notes_is_taken(provider):
    """Earlier calls, results and notes are turned into text that any chat template takes."""
    call = ToolCall("c1", "weather", {"city": "Oslo"})
    history = [
        "Hi",
        SystemMessage("Be brief."),
        "Weather?",
        call,
        ToolResult("c1", "sunny"),
        AssistantMessage("Sunny."),
    ]
    events = await events_of(provider, ask(*history, SystemMessage("a note"), "Thanks", max_tokens=8))

    assert text_of(events).strip()


async def test_a_history_that_is_too_long_is_told_as_such(provider):
    """The runtime can compact and try again."""
    with pytest.raises(ContextLengthExceeded):
        await events_of(provider, ask("one two three " * 2000))


async def test_leaving_while_it_decodes_stops_it(provider):
    """The reader is out at once, and the engine is free for the next request."""
    async with provider.chat(ask(STORY, max_tokens=500)) as stream:
        await anext(stream)
        with trio.move_on_after(0.3):
            async for _ in stream:
                pass
        start = trio.current_time()
    left = trio.current_time() - start

    assert left < 0.25
    assert await seconds_until_next(provider) < 4


async def test_cancelling_while_it_reads_the_prompt_stops_it(provider):
    """A prompt of 3 000 tokens would take half a minute to read; a cancel ends that within a batch."""
    start = trio.current_time()
    with trio.move_on_after(1):
        await events_of(provider, ask("one two three " * 1000, max_tokens=5))
    left = trio.current_time() - start

    assert left < 1.5
    assert await seconds_until_next(provider) < 6


async def test_cancelling_a_decision_about_tools_stops_it(provider):
    """The same holds while it reads the page of examples."""
    start = trio.current_time()
    with trio.move_on_after(0.1):
        await events_of(provider, ask("What is the weather in Oslo?", tools=TOOLS))
    left = trio.current_time() - start

    assert left < 0.5
    assert await seconds_until_next(provider) < 6


async def test_several_requests_at_once_are_all_answered(provider):
    """The turn and the memory extractor may ask at the same time; more than there are slots wait their turn."""
    answers = []

    async def one(number):
        answers.append(await events_of(provider, ask(f"Say something about {number}.", max_tokens=10)))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(one, number)

    assert 5 == len(answers)
    assert all(isinstance(answer[-1], Done) and text_of(answer).strip() for answer in answers)


async def test_leaving_the_provider_stops_the_server():
    """After it nobody listens on the port, and the provider can be entered again."""
    provider = LocalProvider()
    for _ in range(2):
        async with provider:
            port = port_of(str(provider._running.client.base_url))
            assert listening(port)
        assert not listening(port)
        with pytest.raises(ProviderError, match="not running"):
            provider.chat(ask("Hi"))


async def test_a_cancelled_agent_still_stops_the_server():
    """Also with a stream open and the scope around everything cancelled."""
    with trio.move_on_after(60) as scope:
        async with LocalProvider() as provider:
            port = port_of(str(provider._running.client.base_url))
            async with provider.chat(ask(STORY, max_tokens=500)) as stream:
                async for _ in stream:
                    scope.cancel(reason="the host is gone")
    assert scope.cancelled_caught
    assert not listening(port)


async def test_a_cancel_while_loading_leaves_nothing_running():
    """An engine that nobody waits for any more goes away by itself, and the provider is free again."""
    provider = LocalProvider()
    with trio.CancelScope() as scope:
        scope.cancel(reason="too late")
        async with provider:
            pass
    async with provider:
        assert text_of(await events_of(provider, ask("Hi", max_tokens=3))).strip()


async def test_one_provider_serves_several_agents(provider):
    """A second agent enters the same engine, and leaves it running for the first."""
    async with provider:
        assert text_of(await events_of(provider, ask("Hi", max_tokens=3))).strip()
    assert text_of(await events_of(provider, ask("Hi", max_tokens=3))).strip()


async def test_requests_beyond_the_places_wait_in_order_and_can_be_cancelled_there(provider):
    """With every place taken, the next free one goes to who came first; who is cancelled in the line is gone."""
    release, begun, ended, line = trio.Event(), [], [], provider._running.places

    async def holds(until):
        async with provider.chat(ask(STORY, max_tokens=200)) as stream:
            begun.append(await anext(stream))
            await until.wait()

    async def waits(name, scope):
        with scope:
            await events_of(provider, ask("Hi", max_tokens=2))
            ended.append(name)

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            first = trio.Event()
            for until in (first, *[release] * (SLOTS - 1)):
                nursery.start_soon(holds, until)
            while len(begun) < SLOTS:
                await trio.lowlevel.checkpoint()
            scopes = {name: trio.CancelScope() for name in ("first", "cancelled", "last")}
            async with trio.open_nursery() as waiting:
                for name, scope in scopes.items():
                    waiting.start_soon(waits, name, scope)
                    await trio.testing.wait_all_tasks_blocked()
                assert (3, SLOTS) == (line.statistics().tasks_waiting, line.borrowed_tokens)
                scopes["cancelled"].cancel()
                first.set()
            assert ["first", "last"] == ended
            assert scopes["cancelled"].cancelled_caught
            release.set()
    assert 0 == line.borrowed_tokens


async def test_a_cancelled_turn_of_one_agent_leaves_the_others_alone():
    """One engine for four agents at once; the one that is cancelled ends at once, the others with their answers."""
    provider, results = LocalProvider(), {}

    async def agent(number):
        config = youyou.AgentConfig("local", max_tokens=8 if number else 400)
        async with (
            youyou.AgentBuilder(config).register_model_provider(provider).build() as opened,
            await opened.new_session() as session,
        ):
            turn = await session.send_message(STORY)
            async for event in turn:
                if not number and isinstance(event.payload, TextDelta):
                    turn.cancel()
            results[number] = (await turn.result()).status

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(agent, number)

    completed, cancelled = youyou.TurnStatus.COMPLETED, youyou.TurnStatus.CANCELLED
    assert {0: cancelled, 1: completed, 2: completed, 3: completed} == results
    assert provider._running is None


async def test_a_request_without_the_key_of_this_run_is_refused():
    """Other programs of the machine can reach the port; without the key they get nothing."""
    async with serving(find_weights(), ServerSettings(512)) as address:
        target = urlsplit(address.base_url)
        stream = await trio.open_tcp_stream(target.hostname, target.port)
        async with stream:
            await stream.send_all(
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\nConnection: close\r\n\r\n"
                b'{"prompt": "x"}'
            )
            answer = await stream.receive_some(100)
    assert b"401" in answer.splitlines()[0]


async def test_a_file_that_the_engine_cannot_load_is_an_error(tmp_path):
    """Half a model is told as such; nothing is retried."""
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + bytes(1000))

    with pytest.raises(ProviderError, match="cannot load") as caught:
        async with LocalProvider(damaged):
            pass
    assert not caught.value.retryable


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch):
    """The way to this very machine leads through no proxy."""
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with LocalProvider() as provider:
        assert text_of(await events_of(provider, ask("Hi", max_tokens=3))).strip()


def test_the_terminal_stays_clean_and_the_interpreter_leaves_at_once(tmp_path):
    """The engine prints nothing, and one that is still running does not hold up the end of the process."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time, trio\n"
        "from youyou.adapters.local import LocalProvider\n"
        "async def main():\n"
        "    provider = LocalProvider()\n"
        "    await provider.__aenter__()\n"
        "    global kept; kept = provider\n"
        "    print('up', time.time(), flush=True)\n"
        "trio.run(main)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=True)
    (word, since) = done.stdout.split()

    assert ("up", "") == (word, done.stderr)
    assert time.time() - float(since) < 3


def port_of(url):
    """The port in a URL."""
    return urlsplit(url).port


def listening(port):
    """Whether somebody listens on this port of the loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0

"""Spans: one tree for a turn, whatever part of it runs where, and none left open, whatever stops it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import youyou
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from youyou.adapters.otel import Tracing
from youyou.testing import (
    InMemoryMemoryStorage,
    InMemorySessionStorage,
    ScriptedProvider,
    call,
    calls,
    check_model_provider,
    check_session_storage,
    say,
    sweep,
)

USAGE = youyou.TokenUsage(12, 5, 3, 2, 1)


class Spans(SpanProcessor):
    """Every span, begun and ended."""

    def __init__(self) -> None:
        self.begun: list[Span] = []
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        self.begun.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)

    @property
    def open(self) -> list[str]:
        """Names of those that never ended."""
        return [span.name for span in self.begun if span.end_time is None]

    def tree(self) -> list[str]:
        """Names in the order in which they began, indented below their parents."""
        depths: dict[int, int] = {}
        lines = []
        for span in self.begun:
            depth = 0 if span.parent is None else depths.get(span.parent.span_id, -1) + 1
            depths[span.context.span_id] = depth
            lines.append("  " * depth + span.name)
        return lines

    def named(self, name: str) -> list[ReadableSpan]:
        """Those with this name."""
        return [span for span in self.ended if span.name == name]


@pytest.fixture
def spans() -> Spans:
    """Where spans go."""
    return Spans()


@pytest.fixture
def tracing(spans: Spans) -> Tracing:
    """With an exporter that remembers."""
    return traced_into(spans)


def traced_into(spans: Spans, **settings: Any) -> Tracing:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(spans)
    return Tracing(agent_name="desk", tracer_provider=provider, **settings)


@youyou.tool
async def look(place: str) -> str:
    """Look."""
    await trio.sleep(0.01)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(note_current_span)
    return f"nothing in the {place}"


current: list[str] = []


async def note_current_span() -> None:
    """Which span the code of a tool is in."""
    current.append(trace.get_current_span().name)


@youyou.tool(thread="cooperative")
def count() -> int:
    """Count, in a thread."""
    current.append(trace.get_current_span().name)
    return 3


class Handler:
    """A tool that is an object."""

    name, description, parameters, mutating = "write", "Writes.", {"type": "object"}, True
    tags = ("slow",)

    async def execute(self, input: youyou.ToolInput) -> youyou.ToolOutput:
        await trio.sleep(0.01)
        return youyou.ToolOutput("it is full", is_error=True)


def builder(tracing: Tracing, *rounds: Any, tools: Any = (), **settings: Any) -> Any:
    config = youyou.AgentConfig("scripted", notices=youyou.Notices.english(), **settings)
    made = youyou.AgentBuilder(config).register_model_provider(tracing.provider(ScriptedProvider(rounds)))
    for tool in tools:
        made.register_tool(tracing.tool(tool))
    return made


async def test_a_rejected_answer_is_an_event_of_the_turn(spans: Spans, tracing: Tracing, autojump_clock: Any) -> None:
    """What the answer must be is handed on; what it says is not in the span."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    made = builder(tracing, say('{"city": 7}'), say('{"city": "Oslo"}'))
    async with (
        made.build() as agent,
        agent.new_session() as session,
        tracing.turn(session, "where?", output=schema) as turn,
    ):
        async for _ in turn:
            pass
        assert {"city": "Oslo"} == (await turn.result()).output

    (root,) = [span for span in spans.ended if span.parent is None]
    assert [("output rejected", {"youyou.attempt": 1})] == [(e.name, dict(e.attributes)) for e in root.events]


async def test_a_turn_is_one_tree(spans: Spans, tracing: Tracing, autojump_clock: Any) -> None:
    """Requests, a retry, tools in tasks, threads and objects, and the storage are all below the turn."""
    current.clear()
    rounds = [
        [youyou.ProviderError("busy")],
        calls(call("look", {"place": "den"}), "count", usage=USAGE),
        calls("write"),
        say("Done.", usage=USAGE),
    ]
    storage = tracing.session_storage(InMemorySessionStorage())
    made = builder(tracing, *rounds, tools=[look, count, Handler()]).register_session_storage(storage)
    async with made.build() as agent, await agent.new_session() as session, tracing.turn(session, "Go") as turn:
        kinds = [type(event.payload).__name__ async for event in turn]
        result = await turn.result()

    (root,) = spans.named("invoke_agent desk")
    below = [span for span in spans.ended if span.parent is not None and span.parent.span_id == root.context.span_id]
    assert {root.context.trace_id} == {
        span.context.trace_id for span in spans.ended if not span.name.startswith("InMemory") or span.parent is not None
    }
    assert ["chat scripted"] * 4 == [span.name for span in below if span.name.startswith("chat")]
    assert {"execute_tool look", "execute_tool count", "execute_tool write"} == {
        span.name for span in below if span.name.startswith("execute")
    }
    assert "InMemorySessionStorage.save_events" in [span.name for span in below]
    assert {"execute_tool look", "execute_tool count"} == set(current)
    assert "RetryScheduled" in kinds
    assert youyou.TurnStatus.COMPLETED is result.status
    assert [] == spans.open


# Without a clock that jumps: while the thread works it would jump to the time-out of the other tool.
async def test_a_turn_that_is_cancelled_is_one_tree_as_well(spans: Spans, tracing: Tracing) -> None:
    """After a retry, with a tool in a thread done and another one running: all below the turn, and all ended."""
    rounds = [[youyou.ProviderError("busy")], calls("count", "wait")]

    @youyou.tool
    async def wait() -> str:
        """Wait."""
        await trio.sleep_forever()
        return "never"

    made = builder(tracing, *rounds, tools=[count, wait], retry=youyou.RetryPolicy(base_ms=1))
    async with made.build() as agent, await agent.new_session() as session, tracing.turn(session, "Go") as turn:
        async for event in turn:
            if isinstance(event.payload, youyou.ToolCallEnd):
                turn.cancel(grace=0)
        result = await turn.result()

    (root,) = spans.named("invoke_agent desk")
    assert (youyou.TurnStatus.CANCELLED, ("wait",)) == (result.status, result.interrupted)
    assert ["chat scripted", "chat scripted", "execute_tool count", "execute_tool wait", "invoke_agent desk"] == sorted(
        span.name for span in spans.ended
    )
    assert {root.context.span_id} == {span.parent.span_id for span in spans.ended if span.parent is not None}
    assert [] == spans.open


async def test_requests_tell_usage_and_why_they_stopped(spans: Spans, tracing: Tracing) -> None:
    """By the names of the GenAI conventions, and the turn tells the sum."""
    made = builder(tracing, say("Hello.", usage=USAGE))
    async with made.build() as agent, await agent.new_session() as session, tracing.turn(session, "Go") as turn:
        await turn.result()

    (chat,) = spans.named("chat scripted")
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 1,
    } == {name: value for name, value in chat.attributes.items() if "time_to" not in name}
    (root,) = spans.named("invoke_agent desk")
    assert (12, session.id) == (
        root.attributes["gen_ai.usage.input_tokens"],
        root.attributes["gen_ai.conversation.id"],
    )


@pytest.mark.parametrize("content", [False, True])
async def test_what_was_said_is_recorded_on_demand_only(spans: Spans, content: bool) -> None:
    """A word of the user, of a tool's arguments and result, of the answer: none of them is in a span unasked."""
    tracing = traced_into(spans, content=content)
    rounds = [calls(call("write", {"secret": "w-argument"})), say("w-answer")]
    made = builder(tracing, *rounds, tools=[Handler()])
    async with made.build() as agent, await agent.new_session() as session, tracing.turn(session, "w-question") as turn:
        await turn.result()

    recorded = " ".join(
        str(value) for span in spans.ended for value in (*span.attributes.values(), span.status.description)
    )
    words = ("w-question", "w-argument", "it is full", "w-answer")
    assert [content] * 4 == [word in recorded for word in words]


async def test_failures_have_their_code_and_cancels_are_none(spans: Spans, tracing: Tracing) -> None:
    """A failed turn and a tool's error are errors; what was cancelled says so and is not one."""
    rounds = [[youyou.ProviderError("no", retryable=False)], [youyou.TextDelta("a"), 60.0, youyou.Done()]]
    async with builder(tracing, *rounds).build() as agent, await agent.new_session() as session:
        async with tracing.turn(session, "Go") as turn:
            await turn.result()
        async with tracing.turn(session, "Go") as turn:
            async for _ in turn:
                turn.cancel()

    failed, cancelled = spans.named("invoke_agent desk")
    assert ("PROVIDER_ERROR", False) == (failed.attributes["error.type"], failed.status.is_ok)
    assert (True, True) == (cancelled.attributes["youyou.cancelled"], cancelled.status.is_unset)
    assert [False, True] == [span.status.is_unset for span in spans.named("chat scripted")]


async def test_memories_are_searched_in_a_span(spans: Spans, tracing: Tracing) -> None:
    """Below the turn that asked."""
    made = builder(tracing, say("Hello."), say("[]")).register_memory_storage(
        tracing.memory_storage(InMemoryMemoryStorage())
    )
    async with made.build() as agent, await agent.new_session() as session, tracing.turn(session, "Go") as turn:
        await turn.result()

    (searched, *_) = spans.named("InMemoryMemoryStorage.search")
    (root,) = spans.named("invoke_agent desk")
    assert root.context.span_id == searched.parent.span_id


async def test_a_message_that_is_refused_ends_its_span(spans: Spans, tracing: Tracing) -> None:
    """There is no turn, and no open span."""
    async with builder(tracing).build() as agent, await agent.new_session() as session:
        with pytest.raises(youyou.InvalidInput):
            async with tracing.turn(session, ""):
                raise AssertionError("not reached")

    (root,) = spans.named("invoke_agent desk")
    assert "INVALID_INPUT" == root.attributes["error.type"]
    assert trace.INVALID_SPAN is trace.get_current_span()


async def test_traced_parts_keep_their_contracts(tracing: Tracing) -> None:
    """The suites of the kit find no difference."""
    await check_model_provider(lambda: tracing.provider(ScriptedProvider([say("Hello.")] * 50)))
    await check_session_storage(lambda: tracing.session_storage(InMemorySessionStorage()))


def test_no_span_is_left_open_whatever_stops_the_turn() -> None:
    """Cancelled after every step, spans all end, and nothing is the current span afterwards."""

    async def scenario(sim: Any) -> None:
        spans = Spans()
        sim.at_end(lambda: spans.open == [], "every span is ended")
        sim.at_end(lambda: trace.get_current_span() is trace.INVALID_SPAN, "no span is current")
        tracing = traced_into(spans)
        rounds = [[youyou.ProviderError("busy")], calls("write"), say("Done.")]
        storage = tracing.session_storage(InMemorySessionStorage())
        made = builder(tracing, *rounds, tools=[Handler()]).register_session_storage(storage)
        async with made.build() as agent, await agent.new_session() as session, tracing.turn(session, "Go") as turn:
            async for _ in turn:
                pass

    report = sweep(scenario, points=40)

    assert report.ok, report


async def test_a_thousand_pieces_are_one_span(spans: Spans, tracing: Tracing) -> None:
    """What a span costs is paid for a request, not for a delta."""
    made = builder(tracing, say(*["x"] * 1_000))
    async with made.build() as agent, await agent.new_session() as session, tracing.turn(session, "Go") as turn:
        await turn.result()

    assert ["invoke_agent desk", "  chat scripted"] == spans.tree()

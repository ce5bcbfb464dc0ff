"""Text that cannot be encoded, or is too long, anywhere it can come in (semantics 5, 8)."""

from __future__ import annotations

import attrs
import pytest
from youyou import (
    Abort,
    BeforeToolUse,
    ChatError,
    ContinueWith,
    Done,
    EnvironmentContext,
    ReasoningDelta,
    RetryPolicy,
    SessionConfig,
    SessionEvent,
    TextDelta,
    ToolCall,
    ToolCallEnd,
    ToolOutput,
    ToolResult,
    TurnStart,
    TurnStatus,
)
from youyou.messages.codec import from_json, to_json
from youyou.testing.agents.scripted import call, calls, say
from youyou.testing.agents.stores import InMemorySessionStorage

LONE = "a\ud83d"
CLEAN = "a\ufffd"
MEBIBYTE = 1_048_576
CUT = "\n\n[output truncated at 1MB]"


class JsonStore(InMemorySessionStorage):
    """Keeps what it would keep on a disk: JSON. What cannot be encoded is refused."""

    async def save_events(self, session_id, events):
        written = [to_json(event) for event in events]
        await super().save_events(session_id, [from_json(SessionEvent, text) for text in written])


@pytest.fixture
def encodable(stage):
    """A conversation whose store encodes, and whose events and requests are encoded when it is over."""
    stage.store = JsonStore()
    stage.configure(retry=RetryPolicy(attempts=1))
    yield stage
    for request in stage.provider.requests:
        to_json(attrs.evolve(request, messages=tuple(request.messages)))


async def read(stage, session, text="go"):
    turn = await session.send_message(text)
    events = await stage.events(turn)
    for event in events:
        to_json(event)
    return events, await turn.result()


# lone surrogates


async def test_in_what_the_user_says(encodable, autojump_clock):
    """The user's text is cleaned once, and is the same in history, request, title and store."""
    encodable.says(say("done"))
    async with encodable.session() as session:
        await read(encodable, session, LONE)

    assert encodable.stored() == [f"user: {CLEAN}", "assistant: done"]
    assert encodable.lines(encodable.provider.requests[0].messages) == [f"user: {CLEAN}"]
    assert encodable.facts("title") == [CLEAN]


async def test_in_what_the_model_says(encodable, autojump_clock):
    """Text and reasoning are cleaned before they are shown or kept."""
    encodable.says([ReasoningDelta(LONE), TextDelta(LONE), Done(provider_data={"opaque": LONE})])
    async with encodable.session() as session:
        events, result = await read(encodable, session)

    assert events[:2] == [ReasoningDelta(CLEAN), TextDelta(CLEAN)]
    assert result.text == CLEAN


async def test_in_what_the_model_calls(encodable, autojump_clock):
    """Arguments and their keys, raw arguments, names and provider data are cleaned before anything sees them."""
    seen = []

    async def looks(event):
        seen.append(event.arguments)

    write = encodable.tool("write")
    encodable.on(BeforeToolUse, looks)
    clean = ToolCall("c1", "write", {"x": [LONE], LONE: 1}, provider_data={"opaque": LONE})
    encodable.says(
        calls(clean, call(f"tool{LONE}", id="c2"), attrs.evolve(call("write", id="c3"), raw_arguments=LONE)),
        say("done"),
    )
    async with encodable.session() as session:
        _, result = await read(encodable, session)

    assert result.status is TurnStatus.COMPLETED
    assert write.runs == [{"x": [CLEAN], CLEAN: 1}]
    assert write.runs[0] in seen


async def test_in_what_a_tool_gives(encodable, autojump_clock):
    """Output, metadata and progress are cleaned; event, history and store hold the same text."""

    async def mumbles(input):
        input.report({"at": LONE})
        return ToolOutput(LONE, metadata={LONE: [LONE]})

    encodable.tool("write", does=mumbles)
    encodable.says(calls("write"), say("done"))
    async with encodable.session() as session:
        events, result = await read(encodable, session)

    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    (stored,) = [e.payload for e in encodable.events_stored() if isinstance(e.payload, ToolResult)]
    assert (end.output.content, result.tool_results[0].content, stored.content) == (CLEAN, CLEAN, CLEAN)
    assert end.output.metadata == {CLEAN: [CLEAN]}


async def test_in_what_a_tool_raises(encodable, autojump_clock):
    """The text of an exception is cleaned."""

    async def raises(_):
        raise ValueError(LONE)

    encodable.tool("write", does=raises)
    encodable.says(calls("write"), say("done"))
    async with encodable.session() as session:
        _, result = await read(encodable, session)

    assert result.tool_results[0].content == f"Tool failed: ValueError: {CLEAN}"


@pytest.mark.parametrize("answer", ["abort", "arguments", "raises"])
async def test_in_what_a_tool_hook_says(answer, encodable, autojump_clock):
    """Reasons, changed arguments and exceptions of hooks are cleaned."""

    async def says(event):
        if answer == "raises":
            raise ValueError(LONE)
        return Abort(LONE) if answer == "abort" else ContinueWith(attrs.evolve(event, arguments={LONE: LONE}))

    write = encodable.tool("write")
    encodable.on(BeforeToolUse, says)
    encodable.says(calls("write"), say("done"))
    async with encodable.session() as session:
        _, result = await read(encodable, session)

    assert result.status is TurnStatus.COMPLETED
    assert write.runs == ([{CLEAN: CLEAN}] if answer == "arguments" else [])


async def test_in_what_a_turn_hook_says(encodable, autojump_clock):
    """Sections reach the model cleaned; the reason of an abort reaches the host cleaned."""
    answers = [
        lambda event: ContinueWith(attrs.evolve(event, dynamic_sections=(LONE,))),
        lambda event: Abort(LONE),
    ]

    async def says(event):
        return answers.pop(0)(event)

    encodable.on(TurnStart, says)
    encodable.says(say("done"))
    async with encodable.session() as session:
        _, first = await read(encodable, session)
        _, second = await read(encodable, session)

    assert (first.status, second.status) == (TurnStatus.COMPLETED, TurnStatus.FAILED)
    assert CLEAN in encodable.provider.requests[0].system.dynamic
    assert CLEAN in second.error.message


@pytest.mark.parametrize("failure", [ChatError(LONE), ValueError(LONE)], ids=["ChatError", "raises"])
async def test_in_how_a_provider_fails(failure, encodable, autojump_clock):
    """What a provider says of its failure is cleaned."""
    encodable.says([failure])
    async with encodable.session() as session:
        _, result = await read(encodable, session)

    assert CLEAN in result.error.message


async def test_in_how_a_session_is_set_up(encodable, autojump_clock):
    """Prompt, environment and metadata of a session are stored and sent cleaned, so that it can be resumed."""
    config = SessionConfig(
        system_prompt_override=LONE,
        environment=EnvironmentContext(os=LONE, extra={LONE: LONE}),
        metadata={LONE: [LONE]},
        response_schema={"title": LONE},
    )
    encodable.says(say('"one"'), say('"two"'))
    async with encodable.agent() as agent:
        async with await agent.new_session(config) as session:
            await read(encodable, session)
        async with await agent.resume_session(session.id) as session:
            await read(encodable, session)

    first, second = encodable.provider.requests
    assert CLEAN in first.system.stable
    assert CLEAN in first.system.dynamic
    assert (first.metadata, first.response_schema) == ({CLEAN: [CLEAN]}, {"title": CLEAN})
    assert (second.system, second.metadata) == (first.system, first.metadata)


async def test_in_a_title(encodable, autojump_clock):
    """A title that the host sets is stored cleaned: it must not stand in the way of every later write."""
    encodable.says(say("one"))
    async with encodable.session() as session:
        await session.set_title(LONE)
        _, result = await read(encodable, session)

    assert result.error is None
    assert encodable.facts("title") == [CLEAN]


# length of outputs


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("x" * (MEBIBYTE - 1), "x" * (MEBIBYTE - 1)),
        ("x" * MEBIBYTE, "x" * MEBIBYTE),
        ("x" * (MEBIBYTE + 1), "x" * MEBIBYTE + CUT),
        ("汉" * (MEBIBYTE // 3), "汉" * (MEBIBYTE // 3)),
        ("汉" * (MEBIBYTE // 3 + 1), "汉" * (MEBIBYTE // 3) + CUT),
        ("😀" * (MEBIBYTE // 4), "😀" * (MEBIBYTE // 4)),
        ("😀" * (MEBIBYTE // 4 + 1), "😀" * (MEBIBYTE // 4) + CUT),
        ("x" + "😀" * (MEBIBYTE // 4), "x" + "😀" * (MEBIBYTE // 4 - 1) + CUT),
    ],
    ids=["one-less", "exact", "one-more", "3-less", "3-more", "4-exact", "4-more", "4-between"],
)
async def test_an_output_has_at_most_one_mebibyte(output, expected, encodable, autojump_clock):
    """Cut at a character boundary; event, result, history, store and request hold the same text."""

    async def prints(_):
        return ToolOutput(output)

    encodable.tool("print", does=prints)
    encodable.configure(compact_threshold=1.0, token_counter=lambda text: 1)
    encodable.says(calls("print"), say("done"))
    async with encodable.session() as session:
        events, result = await read(encodable, session)

    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    (stored,) = [e.payload for e in encodable.events_stored() if isinstance(e.payload, ToolResult)]
    sent = encodable.provider.requests[1].messages[-1]
    held = [end.output.content, result.tool_results[0].content, stored.content, sent.content]
    assert [text == expected for text in held] == [True] * 4

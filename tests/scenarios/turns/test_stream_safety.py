"""The table of semantics 4, row by row: what the runtime makes of what a provider does."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress

import attrs
import pytest
import trio
from youyou import (
    AssistantMessage,
    ChatError,
    ContextLengthExceeded,
    Done,
    EmptyResponse,
    ErrorCode,
    ErrorEvent,
    ImageBlock,
    MessageStatus,
    Metadata,
    ProviderError,
    ProviderTimeout,
    ReasoningDelta,
    RetryPolicy,
    RetryScheduled,
    SessionEvent,
    StopReason,
    StreamInterrupted,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    TurnComplete,
    TurnStatus,
    Usage,
    UserMessage,
)
from youyou.core.compaction.decisions import CompactionRecord
from youyou.messages.hook_payloads import utc_now
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, call, calls, say


def impatient(stage, **changes):
    """No second try, so that the first failure is the turn's."""
    stage.configure(retry=RetryPolicy(attempts=1), **changes)


async def outcome(stage):
    """One turn, told to its end: its events, its result, history in short."""
    async with stage.session() as session:
        turn = await session.send_message("go")
        events = await stage.events(turn)
        return events, await turn.result(), stage.lines(session.history)


# ends without Done


@pytest.mark.parametrize(
    ("streamed", "history"),
    [
        ([], ["user: go"]),
        ([TextDelta("half")], ["user: go", "assistant: half [failed]"]),
        ([TextDelta(" ")], ["user: go"]),
        ([ReasoningDelta("hm")], ["user: go", "assistant:  [failed]"]),
        ([call("write")], ["user: go", "call write", "skipped write"]),
        ([TextDelta("a"), call("write")], ["user: go", "assistant: a [failed]", "call write", "skipped write"]),
    ],
    ids=["nothing", "text", "white-space", "reasoning", "call", "text-and-call"],
)
async def test_a_stream_that_ends_without_done_is_interrupted(streamed, history, stage, autojump_clock):
    """STREAM_INTERRUPTED; what was visible is kept as incomplete, whole calls are answered, none runs."""
    impatient(stage)
    write = stage.tool("write")
    stage.says(streamed, say("next"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        result = await turn.result()
        lines = stage.lines(session.history)
        assert (await (await session.send_message("again")).result()).text == "next"

    assert isinstance(result.error, StreamInterrupted)
    assert result.error.retryable
    assert lines == history
    assert write.runs == []


# is silent


async def test_a_silent_stream_times_out(stage, autojump_clock):
    """No event for ``stream_idle_timeout_ms``: PROVIDER_TIMEOUT, and the stream is closed."""
    impatient(stage, stream_idle_timeout_ms=4_000)
    stage.says([TextDelta("half"), 9.0, TextDelta("lost"), Done()])
    with stage.takes(4):
        _, result, history = await outcome(stage)

    assert isinstance(result.error, ProviderTimeout)
    assert history == ["user: go", "assistant: half [failed]"]


async def test_a_stream_that_never_opens_times_out(stage, autojump_clock):
    """Silence counts from the request on."""

    class Deaf:
        def __init__(self, inner):
            self.id, self.models = inner.id, inner.models

        @asynccontextmanager
        async def chat(self, request):
            await trio.sleep_forever()
            yield

    impatient(stage, stream_idle_timeout_ms=4_000)
    stage.ports["provider"] = Deaf(stage.provider)
    with stage.takes(4):
        _, result, _ = await outcome(stage)

    assert isinstance(result.error, ProviderTimeout)


async def test_a_stream_that_keeps_talking_never_times_out(stage, autojump_clock):
    """The limit is on silence, not on the whole answer."""
    impatient(stage, stream_idle_timeout_ms=4_000)
    stage.says([item for n in range(5) for item in (3.0, TextDelta(str(n)))] + [Done()])
    with stage.takes(15):
        _, result, _ = await outcome(stage)

    assert result.text == "01234"


async def test_waiting_on_a_slow_reader_is_no_silence(stage, autojump_clock):
    """A reader that stops for an hour holds the stream up; the provider is not blamed for it."""
    impatient(stage, stream_idle_timeout_ms=4_000, event_buffer=2)
    stage.says([*[TextDelta("x")] * 9, Done()])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(3_000)
        result = [event.payload async for event in turn][-1]

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "x" * 9)


# raises, or yields ChatError


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ConnectionResetError("gone"), ProviderError("provider 'scripted' raised ConnectionResetError: gone")),
        (ChatError("busy"), ProviderError("busy")),
        (ChatError("no", retryable=False), ProviderError("no", retryable=False)),
        (ChatError("long", ErrorCode.CONTEXT_LENGTH_EXCEEDED, False), ContextLengthExceeded("long")),
        (ProviderTimeout("mine"), ProviderTimeout("mine")),
        (
            BaseExceptionGroup("several", [ValueError("a"), KeyError("b")]),
            ProviderError("provider 'scripted' raised ExceptionGroup: several [ValueError: a; KeyError: 'b']"),
        ),
        (GeneratorExit(), ProviderError("provider 'scripted' raised GeneratorExit")),
    ],
    ids=["raises", "ChatError", "not-retryable", "code", "AgentError", "group", "GeneratorExit"],
)
async def test_a_failing_provider_fails_the_turn(failure, expected, stage, autojump_clock):
    """What it raises becomes PROVIDER_ERROR; an AgentError of its own is kept; ErrorEvent, then the terminal event."""
    impatient(stage)
    stage.says([TextDelta("half"), failure])
    events, result, history = await outcome(stage)

    assert result.error == expected
    assert events[1:] == [ErrorEvent(expected), TurnComplete(TurnStatus.FAILED, "half", Usage(requests=1), expected)]
    assert history == ["user: go", "assistant: half [failed]"]


@pytest.mark.parametrize(
    "event",
    [
        "text",
        None,
        None.__class__,
        TextDelta(5),
        ReasoningDelta(b"bytes"),
        ChatError("x", code="rate_limit_exceeded"),
        ChatError(None, retry_after_ms="soon"),
        Done(usage={"input_tokens": 3}),
        Done(stop_reason="because"),
        attrs.evolve(call("write"), tool_name=7),
        attrs.evolve(call("write"), call_id=7),
    ],
    ids=repr,
)
async def test_what_is_no_chat_event_fails_the_turn_only(event, stage, autojump_clock):
    """An event of a wrong class, or with a field of a wrong type, is PROVIDER_ERROR: agent and session go on."""
    impatient(stage)
    stage.tool("write")
    stage.says([event, Done()], say("next"))
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()
        assert (await (await session.send_message("again")).result()).text == "next"

    assert result.status is TurnStatus.FAILED
    assert result.error.code is ErrorCode.PROVIDER_ERROR
    assert result.error.message


@pytest.mark.parametrize("depth", [90, 101, 330, 450, 5_000])
async def test_deeply_nested_arguments_exhaust_no_stack(depth, stage, autojump_clock):
    """Arguments nested beyond reason are the provider's failure; up to the limit they run."""
    nested = []
    for _ in range(depth):
        nested = [nested]

    class Deep(StrictProvider):
        asked = 0

        def chat(self, request):
            self.asked += 1
            self._rounds.append(calls(call("write", {"nested": nested})) if self.asked == 1 else say("next"))
            return super().chat(request)

    impatient(stage)
    write = stage.tool("write")
    stage.provider = Deep([])
    async with stage.session() as session:
        await (await session.send_message("go")).result()
        assert (await (await session.send_message("again")).result()).text == "next"

    assert len(write.runs) == (depth < 100)


async def test_a_stop_reason_may_be_its_text(stage, autojump_clock):
    """``"length"`` means what ``StopReason.LENGTH`` means."""
    write = stage.tool("write")
    stage.says([call("write"), Done(stop_reason="length")], say("sorry"))
    _, result, _ = await outcome(stage)

    assert result.status is TurnStatus.COMPLETED
    assert write.runs == []


@pytest.mark.parametrize("place", ["chat", "enter", "iterate", "leave"])
async def test_a_provider_may_raise_anywhere(place, stage, autojump_clock):
    """From ``chat()``, on entering or iterating it is PROVIDER_ERROR; on leaving a finished stream it is logged."""

    class Broken:
        def __init__(self, inner):
            self.id, self.models = inner.id, inner.models

        def chat(self, request):
            if place == "chat":
                raise ValueError("broken")
            return self.stream()

        @asynccontextmanager
        async def stream(self):
            if place == "enter":
                raise ValueError("broken")
            yield self.events()
            if place == "leave":
                raise ValueError("broken")

        async def events(self):
            if place == "iterate":
                raise ValueError("broken")
            yield TextDelta("fine")
            yield Done()

    impatient(stage)
    stage.ports["provider"] = Broken(stage.provider)
    _, result, _ = await outcome(stage)

    if place == "leave":
        assert (result.status, result.text) == (TurnStatus.COMPLETED, "fine")
    else:
        assert result.error == ProviderError("provider 'scripted' raised ValueError: broken")


@pytest.mark.parametrize("returned", [None, [TextDelta("x")], 5], ids=repr)
async def test_chat_that_returns_no_stream_is_explained(returned, stage, autojump_clock):
    """``chat()`` returning something else is PROVIDER_ERROR and says what to return."""
    impatient(stage)
    stage.provider.chat = lambda request: returned
    _, result, _ = await outcome(stage)

    assert result.error.code is ErrorCode.PROVIDER_ERROR
    assert "must return an async iterable" in result.error.message


async def test_an_async_generator_is_a_stream_and_is_closed(stage, autojump_clock):
    """``async def chat`` with ``yield`` will do; its ``finally`` has run when the turn ends, cancelled or not."""
    left = []

    class Generator:
        def __init__(self, inner):
            self.id, self.models = inner.id, inner.models

        async def chat(self, request):
            try:
                yield TextDelta("hello")
                await trio.sleep(5)
                yield Done()
                yield TextDelta("late")
            finally:
                left.append(trio.current_time())

    stage.ports["provider"] = Generator(stage.provider)
    async with stage.session() as session:
        start = trio.current_time()
        assert (await (await session.send_message("one")).result()).text == "hello"
        turn = await session.send_message("two")
        await trio.sleep(1)
        turn.cancel()
        await turn.result()
        assert left == [start + 5, start + 6]


# stops for length with tool calls


async def test_calls_of_an_answer_cut_at_its_length_do_not_run(stage, autojump_clock):
    """StopReason.LENGTH with calls: none runs, each gets an error result that says so, and the model may go on."""
    write = stage.tool("write")
    stage.says([call("write", id="a"), call("write", id="b"), Done(stop_reason=StopReason.LENGTH)], say("sorry"))
    events, result, history = await outcome(stage)

    assert write.runs == []
    assert history == ["user: go", "call a", "call b", "failed a", "failed b", "assistant: sorry"]
    assert all("length limit" in answer.content for answer in result.tool_results)
    assert [event.success for event in events if isinstance(event, ToolCallEnd)] == [False, False]
    assert result.status is TurnStatus.COMPLETED


async def test_text_cut_at_its_length_completes(stage, autojump_clock):
    """Without calls a length stop is an ordinary end."""
    stage.says([TextDelta("long story"), Done(stop_reason=StopReason.LENGTH)])
    _, result, _ = await outcome(stage)

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "long story")


# repeats or omits a call_id


@pytest.mark.parametrize("wanted", ["call_0", "", " ", "\ud83d", "\n"], ids=ascii)
async def test_calls_get_unique_ids_that_last(wanted, stage, autojump_clock):
    """Two calls with one id, or with none, in this round and again in the next: each is run and answered once."""
    write = stage.tool("write")
    stage.says(
        calls(call("write", {"n": 1}, id=wanted), call("write", {"n": 2}, id=wanted)),
        calls(call("write", {"n": 3}, id=wanted)),
        say("done"),
        say("next"),
    )
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            turn = await session.send_message("go")
            events = await stage.events(turn)
            history = tuple(session.history)
        async with await agent.resume_session(session.id) as session:
            assert tuple(session.history) == history
            await (await session.send_message("again")).result()

    ids = [message.call_id for message in history if isinstance(message, ToolCall)]
    assert len(set(ids)) == 3
    assert all(id.strip() for id in ids)
    assert sorted(run["n"] for run in write.runs) == [1, 2, 3]
    assert sorted(event.call_id for event in events if isinstance(event, ToolCallStart)) == sorted(ids)
    assert [answer.call_id for answer in (await turn.result()).tool_results] == ids
    assert tuple(stage.provider.requests[-1].messages[: len(history)]) == history


@pytest.mark.parametrize("compacted", [False, True], ids=["whole", "compacted"])
async def test_an_id_is_not_used_again_after_resume(compacted, stage, autojump_clock):
    """Ids of all of the log count, also of calls that never started and that compaction has taken out of history."""
    stage.says(calls(call("unknown", id="c")), say("one"), calls(call("unknown", id="c")), say("two"))
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            await (await session.send_message("go")).result()
        if compacted:
            seq = len(stage.events_stored()) + 1
            record = CompactionRecord("truncation", 9, 1, seq - 1, (UserMessage("go"),))
            event = SessionEvent(seq, utc_now(), Metadata("compaction", record.to_value()))
            await stage.store.save_events(session.id, [event])
        async with await agent.resume_session(session.id) as session:
            await (await session.send_message("again")).result()

    assert len({line for line in stage.stored() if line.startswith("call ")}) == 2


async def test_one_response_has_one_id(stage, autojump_clock):
    """The assistant message and the calls of one response share its ``response_id``; another response has another."""
    stage.tool("write")
    stage.says(calls(call("write", id="a"), call("write", id="b"), text="ok"), say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()
        spoken = [m for m in session.history if isinstance(m, AssistantMessage | ToolCall)]

    first, *rest, last = [message.response_id for message in spoken]
    assert rest == [first, first]
    assert last not in ("", first)


# answers with neither text nor calls


EMPTY = [[Done()], [TextDelta(""), Done()], [TextDelta(" \n"), Done()], [ReasoningDelta("hm"), Done()]]


@pytest.mark.parametrize("nothing", EMPTY, ids=["Done", "empty", "white-space", "reasoning"])
async def test_an_empty_answer_is_asked_for_once_more(nothing, stage, autojump_clock):
    """Neither text nor calls: the same request once more; no blank message is stored."""
    stage.says(nothing, say("hello"))
    _, result, history = await outcome(stage)

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "hello")
    first, second = stage.provider.requests
    assert first == second
    assert history == ["user: go", "assistant: hello"]


@pytest.mark.parametrize("nothing", EMPTY, ids=["Done", "empty", "white-space", "reasoning"])
async def test_two_empty_answers_fail_the_turn(nothing, stage, autojump_clock):
    """Empty twice: EMPTY_RESPONSE after two requests; the session takes the next message."""
    stage.says(nothing, nothing, say("next"))
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()
        assert (await (await session.send_message("again")).result()).text == "next"

    assert isinstance(result.error, EmptyResponse)
    assert stage.stored() == ["user: go", "user: again", "assistant: next"]
    assert len(stage.provider.requests) == 3


async def test_an_empty_answer_later_in_the_turn_is_asked_for_again_too(stage, autojump_clock):
    """Two empty answers that do not follow each other are each asked for once more."""
    stage.tool("write")
    stage.says([Done()], calls("write"), [Done()], say("done"))
    _, result, _ = await outcome(stage)

    assert (result.status, result.text) == (TurnStatus.COMPLETED, "done")


# goes on after Done


async def test_what_comes_after_done_is_ignored(stage, autojump_clock):
    """Text, calls, errors and a second Done after the first are neither shown nor kept nor counted."""
    stage.tool("write")
    late = [TextDelta("late"), call("write"), ChatError("late"), Done(TokenUsage(100, 100))]
    stage.says([TextDelta("hello"), Done(TokenUsage(3, 2)), *late])
    events, result, history = await outcome(stage)

    over = TurnComplete(TurnStatus.COMPLETED, "hello", Usage(3, 2, requests=1), stop_reason=StopReason.END_TURN)
    assert events == [TextDelta("hello"), over]
    assert result.usage == Usage(3, 2, requests=1)
    assert history == ["user: go", "assistant: hello"]


async def test_a_finished_answer_is_whole(stage, autojump_clock):
    """Text and reasoning are kept in blocks in their order, with the provider's data, as a complete message."""
    pieces = [ReasoningDelta("h"), ReasoningDelta("m"), TextDelta("a"), TextDelta(""), TextDelta("b")]
    stage.says([*pieces, ReasoningDelta("x"), TextDelta("c"), Done(provider_data={"signature": "s"})])
    async with stage.session() as session:
        await (await session.send_message("go")).result()
        message = session.history[-1]

    assert [block.text for block in message.content] == ["hm", "ab", "x", "c"]
    assert message.status is MessageStatus.COMPLETE
    assert message.provider_data == {"signature": "s"}


async def test_content_that_a_provider_refused_does_not_lock_the_session(stage, autojump_clock):
    """A request with an image that fails for no stated reason is tried once without it, and so is every later one."""
    picture = ImageBlock("iVBORw0KGgoAAAAA", "image/png")
    stage.says([ProviderError("cannot read the image", retryable=False)], say("seen"), say("next"))
    async with stage.session() as session:
        result = await (await session.send_message([TextBlock("see"), picture])).result()
        assert (result.status, result.text) == (TurnStatus.COMPLETED, "seen")
        assert (await (await session.send_message("again")).result()).text == "next"
        assert picture in session.history[0].content

    for request in stage.provider.requests[1:]:
        assert picture not in [block for message in request.messages for block in getattr(message, "content", ())]
    assert SCRIPTED_MODEL.capabilities.vision


async def test_retries_are_reported_where_an_interrupted_stream_showed_nothing(stage, autojump_clock):
    """An early end with nothing shown is tried again like any other retryable error."""
    stage.says([], say("hello"))
    events, result, _ = await outcome(stage)

    assert [type(event) for event in events] == [RetryScheduled, TextDelta, TurnComplete]
    assert isinstance(events[0].error, StreamInterrupted)
    assert result.status is TurnStatus.COMPLETED


async def test_a_provider_that_swallows_the_cancel_says_nothing_more(stage, autojump_clock):
    """What it yields after the stop is neither shown nor kept, and the turn ends at once."""

    class Stubborn(StrictProvider):
        async def chat(self, request):
            yield TextDelta("heard")
            while True:
                with suppress(trio.Cancelled):
                    await trio.sleep(60)
                yield TextDelta(" unheard")

    stage.provider = Stubborn([])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel()
        with stage.takes(0):
            events = await stage.events(turn)

    assert ["heard"] == [event.text for event in events if isinstance(event, TextDelta)]
    assert "heard" == events[-1].text

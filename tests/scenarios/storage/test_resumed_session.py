"""What a resumed session goes on with: everything that was said and decided, nothing done twice (semantics 7)."""

from __future__ import annotations

import pytest
import trio
from youyou import (
    AssistantMessage,
    MessageStatus,
    Metadata,
    ModelInfo,
    ModelNotSupported,
    SessionConfig,
    SessionEnd,
    SessionNotFound,
    SessionStart,
    SystemMessage,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from youyou.testing.agents.scripted import call, calls, say


def asked(call_id: str, response_id: str = "r") -> ToolCall:
    return ToolCall(call_id, "write", {}, response_id=response_id)


STARTED_A = Metadata("tool_started", {"call_id": "a", "arguments": {}})

BROKEN = {
    "after a call": [UserMessage("go"), asked("a")],
    "after a call that had started": [UserMessage("go"), asked("a"), STARTED_A],
    "after one result of two": [UserMessage("go"), asked("a"), asked("b"), STARTED_A, ToolResult("b", "done")],
    "with a result that matches nothing": [UserMessage("go"), ToolResult("x", "?"), AssistantMessage("hm")],
    "with an id used twice": [
        UserMessage("go"),
        *(asked("a", "r1"), ToolResult("a", "one"), asked("a", "r2"), ToolResult("a", "two")),
    ],
    "with two calls of one id": [UserMessage("go"), asked("a"), asked("a"), ToolResult("a", "1"), ToolResult("a", "2")],
    "with calls without an id": [UserMessage("go"), asked(""), asked(""), ToolResult("", "1")],
    "with an unanswered call far in the past": [
        *(UserMessage("go"), asked("a", "r1"), AssistantMessage("never mind")),
        *(UserMessage("and?"), AssistantMessage("well")),
    ],
    "with a blank message": [UserMessage("go"), AssistantMessage(" \n"), UserMessage("hello?")],
    "with nothing in it": [],
    "with metadata of the future": [Metadata("new_thing", {"x": [1]}), UserMessage("go"), Metadata("compaction", "?")],
}


@pytest.mark.parametrize("log", BROKEN.values(), ids=BROKEN)
async def test_any_log_resumes_and_takes_a_message(log, stage, autojump_clock):
    """Wherever a log ends, whatever it holds: the next request is sendable, and nothing of it is run."""
    stage.tool("write", mutating=True)
    await stage.keep("s", Metadata("session_config", {}), *log)
    stage.says(say("here I am"), say("still here"))

    for text in ("hello", "hello again"):
        async with stage.resumed("s") as session:
            assert "completed" == (await stage.turn(session, text)).status

    assert 0 == stage.runs["write"]
    assert ["user: hello", "assistant: here I am", "user: hello again", "assistant: still here"] == stage.stored("s")[
        -4:
    ]


async def test_calls_without_a_result_are_answered_once_in_the_log_too(stage, autojump_clock):
    """Started: outcome unknown. Not started: skipped. Stored at the first resume, and not again at the second."""
    stage.tool("write", mutating=True)
    started = Metadata("tool_started", {"call_id": "b", "arguments": {}})
    await stage.keep("s", UserMessage("go"), asked("a"), asked("b"), asked("c"), started, ToolResult("c", "done"))

    for _ in range(2):
        async with stage.resumed("s") as session:
            history = stage.lines(session.history)

    answered = ["skipped a", "unknown b"]
    assert ["user: go", "call a", "call b", "call c", *answered, "ok c"] == history
    assert ["user: go", "call a", "call b", "call c", "ok c", *answered] == stage.stored("s")


async def test_an_old_log_without_configuration_gets_the_defaults(stage, autojump_clock):
    """A log of messages alone: the agent's own model and settings."""
    stage.configure(temperature=0.5)
    await stage.keep("s", UserMessage("hi"), AssistantMessage("hello"))
    stage.says(say("yes"))

    async with stage.resumed("s") as session:
        await stage.turn(session, "still there?")

    assert [("scripted", 0.5)] == [(request.model_id, request.temperature) for request in stage.provider.asked]
    assert [2] == [fact["number"] for fact in stage.facts("turn_started", "s")]


async def test_the_configuration_comes_back(stage, autojump_clock):
    """What the session was opened with shapes its requests after a resume as before."""
    stage.provider._models = (*stage.provider._models, ModelInfo("other", "Other", 50_000))
    stage.provider.answer = lambda _: say("ok")
    config = SessionConfig(
        "other", "Speak Latin.", temperature=0.1, max_tokens=99, reasoning_effort="low", metadata={"k": 1}
    )
    async with stage.agent() as agent, await agent.new_session(config) as session:
        await stage.turn(session)
    async with stage.resumed(session.id) as session:
        await stage.turn(session)

    first, second = stage.provider.asked
    for name in ("model_id", "system", "temperature", "max_tokens", "reasoning_effort", "metadata"):
        assert getattr(first, name) == getattr(second, name)
    assert ("other", 99) == (second.model_id, second.max_tokens)
    assert "Speak Latin." in second.system.stable


async def test_a_model_that_is_gone_is_said_and_the_slot_is_free(stage, autojump_clock):
    """A stored session whose model nobody offers cannot be resumed; another one can be opened."""
    await stage.keep("s", Metadata("session_config", {"model_id": "gone"}), UserMessage("hi"))
    async with stage.agent() as agent:
        with pytest.raises(ModelNotSupported, match="gone"):
            await agent.resume_session("s")
        await (await agent.new_session()).close()


@pytest.mark.parametrize(("storage", "word"), [(True, "the session storage has none"), (False, "no session storage")])
async def test_a_session_that_is_not_there_is_not_found(storage, word, stage, autojump_clock):
    """Unknown id, or nothing to look in: the error says which."""
    stage.store = stage.store if storage else None
    async with stage.agent() as agent:
        with pytest.raises(SessionNotFound, match=word):
            await agent.resume_session("nobody")
        await (await agent.new_session()).close()


async def test_sequence_and_turn_numbers_go_on(stage, autojump_clock):
    """No number of an event or a turn is given twice, also across a turn that died without an end."""
    stage.provider.answer = lambda _: say("hello", " there")
    seen = []
    session_id = None
    for _ in range(3):
        async with stage.session_of(session_id) as session:
            session_id = session.id
            turn = await session.send_message("hi")
            seen += [(event.turn_id, event.sequence) async for event in turn]
        await stage.keep(session_id, Metadata("turn_started", {"turn_id": "died", "number": 0, "sequence": 0}))

    numbers = [sequence for _, sequence in seen]
    assert list(range(1, len(seen) + 1)) == numbers
    assert [1, 3, 5] == [fact["number"] for fact in stage.facts("turn_started", session_id) if fact["number"]]


async def test_the_title_stays(stage, autojump_clock):
    """A title, set or taken from the first text, is not replaced by what is said after a resume."""
    stage.provider.answer = lambda _: say("hello")
    titles = {}
    for chosen in (None, "Mine"):
        async with stage.session() as session:
            await stage.turn(session, "the first words")
            if chosen:
                await session.set_title(chosen)
        async with stage.resumed(session.id) as session:
            await stage.turn(session, "other words")
        (summary,) = await stage.store.find_session(session.id)
        titles[chosen] = summary.title

    assert {None: "the first words", "Mine": "Mine"} == titles


async def test_usage_adds_up(stage, autojump_clock):
    """The tokens of all turns, before and after."""
    stage.provider.answer = lambda _: say("hello", usage=TokenUsage(10, 2))
    async with stage.session() as session:
        await stage.turn(session)
    async with stage.resumed(session.id) as session:
        assert TokenUsage(10, 2) == session.usage.tokens
        await stage.turn(session)
        assert TokenUsage(20, 4) == session.usage.tokens


async def test_no_session_start_hook_runs_but_its_end_does(stage, autojump_clock):
    """Resuming is not beginning; ending is ending, each time."""
    ran = []

    async def note(event):
        ran.append(type(event).__name__)

    stage.on(SessionStart, note)
    stage.on(SessionEnd, note)
    async with stage.session() as session:
        pass
    async with stage.resumed(session.id):
        pass

    assert ["SessionStart", "SessionEnd", "SessionEnd"] == ran


async def cancelled(stage, session, text):
    """A turn that is cancelled after some words."""
    stage.says([TextDelta("half a"), 60.0])
    turn = await session.send_message(text)
    await trio.sleep(1)
    turn.cancel()
    await turn.result()


async def test_the_note_of_an_interrupted_message_stands_once(stage, autojump_clock):
    """Live, after a second cancelled turn, after a resume and after another one: one note for each, never stored."""
    note = f"note: {stage.config.notices.interrupted_message}"
    async with stage.session() as session:
        await cancelled(stage, session, "one")
        await cancelled(stage, session, "two")
        stage.says(say("ok"))
        await stage.turn(session, "three")
    for text in ("four", "five"):
        async with stage.resumed(session.id) as session:
            stage.says(say("ok"))
            await stage.turn(session, text)

    half = "assistant: half a [cancelled]"
    expected = ["user: one", half, note, "user: two", half, note, "user: three"]
    assert expected == stage.lines(stage.provider.asked[2].messages)
    assert [*expected, "assistant: ok", "user: four", "assistant: ok", "user: five"] == stage.lines(
        stage.provider.asked[-1].messages
    )
    assert [] == [line for line in stage.stored(session.id) if line == note]


async def test_an_incomplete_message_of_an_old_log_gets_its_note(stage, autojump_clock):
    """A log that knows no causes: an incomplete message was cancelled."""
    await stage.keep("s", UserMessage("hi"), AssistantMessage("hel", MessageStatus.INCOMPLETE))
    stage.says(say("ok"))
    async with stage.resumed("s") as session:
        await stage.turn(session, "go on")

    assert SystemMessage(stage.config.notices.interrupted_message) == stage.provider.asked[0].messages[2]


async def test_results_of_a_later_process_find_their_calls(stage, autojump_clock):
    """Ids that a provider repeats in every round stay unique, and paired, across resumes."""
    stage.tool("write")
    for _ in range(3):
        stage.says(calls(call("write", id="call_0"), call("write", id="call_0")), say("done"))
    session_id = None
    for _ in range(3):
        async with stage.session_of(session_id) as session:
            session_id = session.id
            await stage.turn(session)

    ids = [message.call_id for message in session.history if isinstance(message, ToolCall)]
    assert 6 == len(set(ids))
    assert ids == [message.call_id for message in session.history if isinstance(message, ToolResult)]


@pytest.mark.parametrize("ends", ["text", "tools", "cancelled", "failed"])
async def test_the_next_request_is_the_same_as_it_would_have_been(ends, stage, autojump_clock):
    """A session that goes on, and the same one resumed: one more message makes the same request of both."""
    stage.tool("write")
    async with stage.session() as session:
        match ends:
            case "text":
                stage.says(say("hello"))
            case "tools":
                stage.says(calls(call("write", id="a"), call("write", id="b"), text="I will"), say("done"))
            case "failed":
                stage.says([TextDelta("oh"), OSError("gone")])
        await (cancelled(stage, session, "go") if ends == "cancelled" else stage.turn(session))
        log = stage.store.events(session.id)
        stage.says(say("live"))
        await stage.turn(session, "next")
    await stage.store.save_events("copy", log)
    stage.says(say("again"))
    async with stage.resumed("copy") as session:
        await stage.turn(session, "next")

    live, again = stage.provider.asked[-2:]
    assert live.messages == again.messages
    assert (live.system, live.tools) == (again.system, again.tools)

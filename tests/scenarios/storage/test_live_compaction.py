"""Compaction while an agent runs: when it comes, what it keeps, that it lasts (semantics 9)."""

from __future__ import annotations

from base64 import b64encode

import pytest
import trio
from youyou import (
    Abort,
    BeforeCompact,
    ContextCompacted,
    ImageBlock,
    Metadata,
    ModelCapabilities,
    ModelInfo,
    SystemMessage,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from youyou.core.history.sendability import sendability_problem
from youyou.messages.content import text_of
from youyou.messages.errors import ContextLengthExceeded
from youyou.testing.agents.scripted import call, calls, say

WINDOW = 2_000
LONG = "word " * 100
"""A text of about 130 tokens with what goes with it: 15 of them fill the window, 13 are over the threshold."""
TURNS = 6
"""So many turns are below the threshold; the next input is over it."""


@pytest.fixture
def talkative(stage):
    """A model with a small window that answers everything with a long text."""
    stage.window(WINDOW)
    stage.provider.answer = lambda _: say(LONG)
    return stage


async def talk(stage, session, turns):
    """So many turns, and the events of each."""
    return [await stage.payloads(session, f"question {number} {LONG}") for number in range(turns)]


def summary_in(messages):
    """The text of the summary that stands first."""
    assert isinstance(messages[0], SystemMessage)
    return messages[0].content


async def test_over_the_threshold_a_summary_replaces_the_old_part(talkative, kinds, autojump_clock):
    """One event, one record, a smaller request that begins with the summary and holds the newest message as it was."""
    async with talkative.session() as session:
        turns = await talk(talkative, session, TURNS + 2)

    assert [*[[]] * TURNS, ["summary"], []] == [kinds(payloads) for payloads in turns]
    (event,) = [payload for payload in turns[TURNS] if isinstance(payload, ContextCompacted)]
    assert 0.8 * WINDOW < event.before
    assert event.after < WINDOW / 2
    (record,) = talkative.facts("compaction", session.id)
    assert ("summary", event.before, event.after) == (record["kind"], record["before"], record["after"])
    messages = talkative.provider.asked[TURNS].messages
    assert "SUMMARY" in summary_in(messages)
    assert UserMessage(f"question {TURNS} {LONG}") == messages[-1]
    assert all(f"question 0 {LONG}" != text_of(m.content) for m in messages if isinstance(m, UserMessage))


async def test_the_request_for_a_summary_holds_the_old_part_and_no_tools(talkative, autojump_clock):
    """The summary's model reads what goes away, as text, and can call nothing."""
    talkative.tool("look")
    async with talkative.session() as session:
        await talk(talkative, session, TURNS + 1)

    (request,) = talkative.provider.summarised
    (message,) = request.messages
    assert () == request.tools
    assert "question 0" in text_of(message.content)


async def test_another_model_and_prompt_can_summarise(talkative, autojump_clock):
    """``compact_model`` and ``compact_prompt`` are used for the summary alone."""
    talkative.provider._models = (*talkative.provider._models, ModelInfo("small", "Small", 8_000))
    prompt = talkative.provider.summary_prefix + " In Latin, please."
    talkative.configure(compact_model="small", compact_prompt=prompt)
    async with talkative.session() as session:
        await talk(talkative, session, TURNS + 1)

    (request,) = talkative.provider.summarised
    assert "small" == request.model_id
    assert text_of(request.messages[0].content).startswith(prompt)
    assert {"scripted"} == {request.model_id for request in talkative.provider.asked}


async def test_usage_of_a_summary_counts(talkative, autojump_clock):
    """The turn that compacts pays for it."""
    talkative.provider.summary = lambda _: say("SUMMARY", usage=TokenUsage(1_000, 20))
    async with talkative.session() as session:
        await talk(talkative, session, TURNS + 1)

    assert TokenUsage(1_000, 20) == session.usage.tokens


async def test_an_overflow_compacts_and_asks_once_more(stage, kinds, autojump_clock):
    """The provider knows its window better: its refusal is the second trigger, and the turn goes on."""
    stage.says(say("one"), say("two"), [ContextLengthExceeded("too long")], say("three"))
    async with stage.session() as session:
        for text in ("a", "b"):
            await stage.turn(session, text * 4_000)
        payloads = await stage.payloads(session, "c" * 4_000)

    assert ["summary"] == kinds(payloads)
    assert ("completed", "three") == (payloads[-1].status, payloads[-1].text)
    assert 4 == len(stage.provider.asked)
    assert UserMessage("c" * 4_000) == stage.provider.asked[3].messages[-1]


async def test_a_provider_that_always_overflows_is_asked_a_bounded_number_of_times(stage, autojump_clock):
    """One clear error, few requests, and the session takes the next message."""
    for summaries in (False, True):
        stage.provider.asked.clear()
        stage.provider.answer = lambda _: [ContextLengthExceeded("too long")]
        stage.provider.summary = (lambda _: say("SUMMARY")) if summaries else stage.provider.answer
        async with stage.session() as session:
            stage.says(say("fine"))
            await stage.turn(session, "x" * 4_000)
            result = await stage.turn(session, "again")
            stage.provider.answer = lambda _: say("better")
            after = await stage.turn(session, "now?")

        assert ("failed", "CONTEXT_LENGTH_EXCEEDED") == (result.status, result.error.code)
        assert ("completed", "better") == (after.status, after.text)
        assert len(stage.provider.asked) <= 4


async def test_an_overflow_with_nothing_to_compact_is_the_error_itself(stage, kinds, autojump_clock):
    """A first short message that is refused as too long: said as it is, not compacted forever."""
    stage.provider.answer = lambda _: [ContextLengthExceeded("too long")]
    async with stage.session() as session:
        payloads = await stage.payloads(session, "hi")

    assert "CONTEXT_LENGTH_EXCEEDED" == payloads[-1].error.code
    assert [] == kinds(payloads)
    assert len(stage.provider.asked) <= 2


@pytest.mark.parametrize("trigger", ["estimate", "overflow"])
@pytest.mark.parametrize("answer", ["abort", "raise"])
async def test_a_hook_can_forbid_it(trigger, answer, talkative, kinds, errors, autojump_clock):
    """No compaction: the request goes out as it is, or fails as too long; an error of the hook is told."""
    asked = []

    async def forbid(event):
        asked.append((event.message_count, event.estimated_tokens))
        if answer == "raise":
            raise RuntimeError("broken")
        return Abort("not now")

    talkative.on(BeforeCompact, forbid)
    if trigger == "overflow":
        talkative.provider.limit = 1_700
        talkative.configure(compact_threshold=1.0)
    async with talkative.session() as session:
        turns = await talk(talkative, session, TURNS + 1)

    assert all([] == kinds(payloads) for payloads in turns)
    assert [] == talkative.facts("compaction", session.id)
    status, code = ("completed", None) if trigger == "estimate" else ("failed", "CONTEXT_LENGTH_EXCEEDED")
    last = turns[TURNS][-1]
    assert (status, code) == (last.status, last.error and last.error.code)
    assert ("PLUGIN_ERROR" in errors(turns[TURNS])) == (answer == "raise")
    assert 2 * TURNS + 1 == asked[0][0]
    assert asked[0][1] > 1_500


async def test_calls_stay_with_their_results(talkative, autojump_clock):
    """Rounds with tools go away whole."""
    talkative.tool("look")
    for number in range(16):
        wanted = [call("look", {"text": LONG}, id=f"{number}{letter}") for letter in "ab"]
        talkative.says(calls(*wanted), say("seen"))
    async with talkative.session() as session:
        for number in range(16):
            await talkative.turn(session, f"look {number}")

    assert len(talkative.facts("compaction", session.id)) >= 2
    for request in talkative.provider.asked:
        assert sendability_problem(request.messages) is None


async def test_a_long_turn_is_compacted_inside(talkative, autojump_clock):
    """Many rounds of tools in one turn: the window is kept, and the user's message stays in every request."""
    talkative.tool("look")
    talkative.says(*[calls(call("look", {"text": LONG}, id=f"c{number}")) for number in range(30)], say("done"))
    async with talkative.session() as session:
        result = await talkative.turn(session, "look thirty times")

    assert ("completed", "done") == (result.status, result.text)
    assert len(talkative.facts("compaction", session.id)) >= 3
    for request in talkative.provider.asked:
        assert talkative.provider.size(request) <= WINDOW
        assert UserMessage("look thirty times") in request.messages


async def test_a_result_larger_than_the_window_is_shrunk(talkative, kinds, autojump_clock):
    """The next request fits, and the item says that something is missing; the log keeps it whole."""

    async def much(_):
        return "x" * 40_000

    talkative.tool("read", does=much)
    talkative.says(calls("read"), say("a lot"))
    async with talkative.session() as session:
        payloads = await talkative.payloads(session, "read it")

    assert ("completed", "a lot") == (payloads[-1].status, payloads[-1].text)
    (result,) = [m for m in talkative.provider.asked[-1].messages if isinstance(m, ToolResult)]
    assert talkative.provider.size(talkative.provider.asked[-1]) <= WINDOW
    assert "characters left out" in result.content
    assert result.content.startswith("xxx")
    assert result.content.endswith("xxx")
    stored = [e.payload for e in talkative.store.events(session.id) if isinstance(e.payload, ToolResult)]
    assert ["x" * 40_000] == [message.content for message in stored]


async def test_fixed_text_that_fills_the_window_is_a_clear_error(stage, kinds, autojump_clock):
    """Instructions alone over the threshold: no request, no compaction, and the error says what to do."""
    stage.window(1_000)
    stage.configure(system_instructions="rule " * 1_000)
    async with stage.session() as session:
        payloads = await stage.payloads(session, "hi")

    assert ("failed", "COMPACT_ERROR") == (payloads[-1].status, payloads[-1].error.code)
    assert "shorten the instructions" in payloads[-1].error.message
    assert [] == kinds(payloads) == stage.provider.asked == stage.provider.summarised


async def test_five_large_images_are_not_counted_as_text(stage, kinds, autojump_clock):
    """Base64 is never counted: five images of four megabytes do not trigger anything."""
    stage.window(20_000)
    stage.provider._models = (ModelInfo("scripted", "Scripted", 20_000, ModelCapabilities(vision=True)),)
    stage.provider.answer = lambda _: say("pretty")
    image = ImageBlock(b64encode(b"\x89PNG\r\n\x1a\n" + bytes(4_000_000)).decode(), "image/png")
    async with stage.session() as session:
        payloads = await stage.payloads(session, [image] * 5)
        again = await stage.payloads(session, "and?")

    assert [] == kinds(payloads) == kinds(again)


async def test_what_is_steered_in_during_a_compaction_is_not_lost(talkative, autojump_clock):
    """A message that arrives while the summary is being written is delivered after it."""
    talkative.provider.summary = lambda _: [TextDelta("SUM"), 5.0, *say("MARY")]
    async with talkative.session() as session:
        await talk(talkative, session, TURNS)
        turn = await session.send_message(f"question 6 {LONG}")
        await trio.sleep(2)
        assert 1 == len(talkative.provider.summarised)
        assert turn.steer("and hurry")
        await turn.result()
        queued = await session.send_message("then", queue=True)
        await queued.result()

    texts = [text_of(m.content) for m in talkative.provider.asked[-2].messages if isinstance(m, UserMessage)]
    assert [f"question 6 {LONG}", "and hurry"] == texts[-2:]
    assert [f"question 6 {LONG}", "and hurry", "then"] == [
        text_of(m.content) for m in session.history if isinstance(m, UserMessage)
    ][-3:]


async def test_a_cancel_during_a_compaction_leaves_history_as_it_was(talkative, autojump_clock):
    """The summary is given up at once: no record, no event, and the next turn compacts."""
    talkative.provider.summary = lambda _: [60.0, *say("SUMMARY")]
    async with talkative.session() as session:
        await talk(talkative, session, TURNS)
        before = talkative.lines(session.history)
        turn = await session.send_message(f"question 6 {LONG}")
        await trio.sleep(2)
        turn.cancel()
        start = trio.current_time()
        await turn.result()
        assert start == trio.current_time()
        assert [*before, f"user: question 6 {LONG}"] == talkative.lines(session.history)
        assert [] == talkative.facts("compaction", session.id)
        talkative.provider.summary = lambda _: say("SUMMARY")
        await talkative.turn(session, "next")
        assert 1 == len(talkative.facts("compaction", session.id))


async def test_it_survives_a_resume(talkative, autojump_clock):
    """The resumed session holds what the live one held: the summary and what came after."""
    async with talkative.session() as session:
        await talk(talkative, session, TURNS + 1)
    async with talkative.resumed(session.id) as again:
        assert tuple(session.history) == tuple(again.history)
        assert "SUMMARY" in summary_in(again.history)


async def test_three_compactions_a_resume_and_another(talkative, kinds, autojump_clock):
    """Compacted history is compacted again, before and after a resume; it never grows, pairs stay, nothing piles up."""
    talkative.tool("look")
    counted = iter(range(1, 100))
    talkative.provider.summary = lambda _: say(f"SUMMARY {next(counted)}")
    talkative.provider.answer = lambda request: (
        calls(call("look", {"text": LONG})) if isinstance(request.messages[-1], UserMessage) else say(LONG)
    )
    async with talkative.session() as session:
        while len(talkative.facts("compaction", session.id)) < 3:
            await talkative.turn(session, f"question {LONG}")
    async with talkative.resumed(session.id) as again:
        assert tuple(session.history) == tuple(again.history)
        while len(talkative.facts("compaction", session.id)) < 4:
            await talkative.turn(again, f"question {LONG}")
        assert "SUMMARY 4" in summary_in(again.history)
        assert 1 == sum(isinstance(message, SystemMessage) for message in again.history)
        assert any(isinstance(message, ToolCall) for message in again.history)

    assert "SUMMARY 2" in text_of(talkative.provider.summarised[2].messages[0].content)
    for request in talkative.provider.asked:
        assert talkative.provider.size(request) <= WINDOW


async def test_three_windows_with_one_compaction_in_the_middle_resume_as_they_are(talkative, kinds, autojump_clock):
    """Only what came after the compaction counts: resuming a long log compacts nothing by itself."""
    async with talkative.session() as session:
        while not talkative.facts("compaction", session.id):
            await talkative.turn(session, f"question {LONG}")
    log = list(talkative.store.events(session.id))
    older = [UserMessage(f"old {number} {LONG}") for number in range(30)]
    await talkative.keep("long", *older)
    shifted = [event.payload for event in log]
    moved = [
        Metadata("compaction", {**p.value, "through_seq": p.value["through_seq"] + 30})
        if isinstance(p, Metadata) and p.key == "compaction"
        else p
        for p in shifted
    ]
    await talkative.keep("long", *moved)
    talkative.provider.summarised.clear()

    async with talkative.resumed("long") as again:
        assert tuple(session.history) == tuple(again.history)
        payloads = await talkative.payloads(again, "short")

    assert [] == kinds(payloads) == talkative.provider.summarised
    assert talkative.provider.size(talkative.provider.asked[-1]) <= WINDOW

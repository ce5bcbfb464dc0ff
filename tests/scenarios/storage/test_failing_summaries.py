"""When no summary can be had: truncation, shrinking, a pause in trying; requests fit all the same (semantics 9)."""

from __future__ import annotations

import pytest
from youyou import Done, ReasoningDelta, SystemMessage, TextDelta, ToolResult, UserMessage
from youyou.core.compaction.compaction_texts import EARLIER_REMOVED
from youyou.messages.content import text_of
from youyou.messages.errors import ContextLengthExceeded, ProviderError
from youyou.testing.agents.scripted import call, calls, say

WINDOW = 2_000
LONG = "word " * 100

NO_SUMMARY = {
    "nothing": [Done()],
    "blank": say(" \n\t"),
    "only reasoning": [ReasoningDelta("let me think"), Done()],
    "a call": calls("look", text="I would rather look"),
    "longer than what it replaces": say("word " * 2_000),
    "as long as what it replaces": say("word " * 1_060),
    "an error of the provider": [ProviderError("no", retryable=False)],
    "a broken stream": [TextDelta("The us")],
    "an exception": [OSError("gone")],
    "silence": [10_000.0],
    "an overflow": [ContextLengthExceeded("too long")],
}


@pytest.fixture
def small(stage):
    """A model with a small window that answers with a long text, and takes nothing larger."""
    stage.window(WINDOW, limit=True)
    stage.provider.answer = lambda _: say(LONG)
    stage.tool("look")
    return stage


async def talk(stage, session, turns, first=0):
    """So many turns; all complete."""
    every = [await stage.payloads(session, f"question {number} {LONG}") for number in range(first, first + turns)]
    assert {"completed"} == {payloads[-1].status for payloads in every}
    return every


@pytest.mark.parametrize("answer", NO_SUMMARY.values(), ids=NO_SUMMARY)
async def test_what_is_no_summary_is_not_taken_for_one(answer, small, kinds, autojump_clock):
    """The oldest rounds go instead, with a note; the newest message and the most recent rounds stay."""
    small.provider.summary = lambda _: answer
    async with small.session() as session:
        turns = await talk(small, session, 8)

    seen = [kind for payloads in turns for kind in kinds(payloads)]
    assert ["truncation"] == seen
    (record,) = small.facts("compaction", session.id)
    assert "truncation" == record["kind"]
    assert SystemMessage(EARLIER_REMOVED) == session.history[0]
    texts = [text_of(m.content) for m in session.history if isinstance(m, UserMessage)]
    assert [f"question {number} {LONG}" for number in range(8 - len(texts), 8)] == texts
    assert len(texts) >= 3


async def test_truncated_history_survives_a_resume(small, autojump_clock):
    """The resumed session begins where the truncation left off."""
    small.provider.summary = lambda _: [Done()]
    async with small.session() as session:
        await talk(small, session, 8)
    async with small.resumed(session.id) as again:
        assert tuple(session.history) == tuple(again.history)


async def test_a_summary_request_that_is_too_long_is_shortened(small, kinds, autojump_clock):
    """Its oldest rounds go first, twice at most; the second or third request may be the summary."""
    small.provider.limit = None
    small.provider.summaries.extend([[ContextLengthExceeded("too long")], [ContextLengthExceeded("too long")]])
    async with small.session() as session:
        turns = await talk(small, session, 7)

    sizes = [small.provider.size(request) for request in small.provider.summarised]
    assert 3 == len(sizes)
    assert sizes == sorted(sizes, reverse=True)
    assert ["summary"] == [kind for payloads in turns for kind in kinds(payloads)]
    whole, shorter, shortest = (text_of(request.messages[0].content) for request in small.provider.summarised)
    assert "question 1" in whole
    assert "question 1" not in shorter
    assert "earlier messages are left out" in shortest
    assert LONG.strip() in shortest


async def test_a_summary_that_never_fits_gives_way_to_truncation(small, kinds, autojump_clock):
    """Three requests, no more."""
    small.provider.summary = lambda _: [ContextLengthExceeded("too long")]
    async with small.session() as session:
        turns = await talk(small, session, 7)

    assert ["truncation"] == [kind for payloads in turns for kind in kinds(payloads)]
    assert 3 == len(small.provider.summarised)


async def test_failing_summaries_pause_and_are_tried_again(small, kinds, autojump_clock):
    """Three failures in a row, then a pause in which history is truncated without asking, then another try."""
    small.provider.summary = lambda _: [Done()]
    asked = []
    async with small.session() as session:
        for _ in range(70):
            before = len(small.provider.summarised)
            payloads = await small.payloads(session, f"question {LONG}")
            if kinds(payloads):
                asked.append(len(small.provider.summarised) > before)
        assert [True] * 3 + [False] * 4 + [True] == asked[:8]
        small.provider.summary = lambda _: say("SUMMARY")
        worked = []
        for _ in range(100):
            worked += kinds(await small.payloads(session, f"question {LONG}"))

    assert "summary" in worked
    assert ["summary"] * 3 == worked[-3:]


async def test_items_are_shrunk_where_truncation_is_not_enough(small, kinds, autojump_clock):
    """Three results of half a window each in one answer: each is shortened, none is lost, the request fits."""

    async def much(_):
        return "x" * 4_000

    small.tool("read", does=much)
    small.provider.summary = lambda _: [Done()]
    small.says(calls(*[call("read", id=name) for name in "abc"]), say("read"))
    async with small.session() as session:
        payloads = await small.payloads(session, "read them")

    assert ["truncation"] == kinds(payloads)
    results = [m for m in small.provider.asked[1].messages if isinstance(m, ToolResult)]
    assert ["a", "b", "c"] == [result.call_id for result in results]
    assert all("characters left out" in result.content for result in results)
    assert "read" == payloads[-1].text


async def test_a_message_larger_than_the_window_is_shrunk_too(small, kinds, autojump_clock):
    """Nothing else can give: the newest message is shortened in requests, and stored as it was.

    By the estimate it is larger; one that is larger by the lower bound is refused before (semantics 6).
    """
    small.says(say("long"))
    async with small.session() as session:
        payloads = await small.payloads(session, "x" * 12_000)

    assert ("completed", "long") == (payloads[-1].status, payloads[-1].text)
    assert 1 == len(kinds(payloads))
    assert [f"user: {'x' * 12_000}", "assistant: long"] == small.stored(session.id)


async def test_a_long_turn_without_summaries_keeps_its_question(small, autojump_clock):
    """Thirty rounds of tools, none of them summarised: the user's message stands in every request, each fits."""
    small.provider.summary = lambda _: [Done()]
    small.says(*[calls(call("look", {"text": LONG}, id=f"c{number}")) for number in range(30)], say("done"))
    async with small.session() as session:
        result = await small.turn(session, "look thirty times")

    assert ("completed", "done") == (result.status, result.text)
    assert {"truncation"} == {record["kind"] for record in small.facts("compaction", session.id)}
    assert all(UserMessage("look thirty times") in request.messages for request in small.provider.asked)
    assert 0 == small.provider.overflows


@pytest.mark.parametrize("summaries", ["good", "bad", "mixed"])
async def test_sixty_turns_fit(summaries, small, autojump_clock):
    """With summaries, without, and with some: no request is ever too long, and each turn completes."""
    good, bad = say("SUMMARY of what was said"), [Done()]
    number = iter(range(10_000))
    choose = {"good": lambda _: good, "bad": lambda _: bad, "mixed": lambda _: good if next(number) % 3 else bad}
    small.provider.summary = choose[summaries]
    small.provider.answer = lambda request: (
        calls("look", text=LONG) if isinstance(request.messages[-1], UserMessage) else say(LONG)
    )
    async with small.session() as session:
        await talk(small, session, 60)

    assert 0 == small.provider.overflows

"""Thirty turns through a window of 4 000 tokens, live and resumed after each of them (semantics 7, 9)."""

from __future__ import annotations

import random
import re

import pytest
from youyou import ChatRequest, Done, TextDelta, TokenUsage, UserMessage
from youyou.core.history.tokens import fixed_tokens, message_tokens
from youyou.messages.content import text_of
from youyou.testing.agents.scripted import call

WINDOW = 4_000
TURNS = 30
PIECES = re.compile(r"[A-Za-z]{1,5}|\d{1,3}|\s+(?=\s)|[^\sA-Za-z\d]")


def count(text):
    """Tokens as a tokenizer would find them: pieces of words, groups of digits, every other character alone."""
    return len(PIECES.findall(text))


def size(request):
    """The tokens of a request, with a few for each message."""
    return fixed_tokens(request.system, request.tools, count) + sum(message_tokens(m, count) for m in request.messages)


def question(number):
    """Prose, Chinese and code in turn, short and long."""
    times = random.Random(number).randrange(1, 12)
    match number % 3:
        case 0:
            return f"Question {number}: " + "how does the harbour work in winter? " * times
        case 1:
            return f"第{number}个问题 " + "请解释一下港口在冬天怎么工作。" * times
        case _:
            return f"Fix {number}: " + "for (i = 0; i < n; i++) { a[i] += b[i] * 31; } " * times


def newest(request):
    """The newest text of the user."""
    return [text_of(m.content) for m in request.messages if isinstance(m, UserMessage)][-1]


def answer(usage):
    """What the model says: a look first for every second question, then words. ``usage``: whether it reports any."""

    def say_it(request):
        reported = Done(TokenUsage(size(request), 50) if usage else None)
        text = newest(request)
        if len(text) % 2 and isinstance(request.messages[-1], UserMessage):
            return [TextDelta("Let me look."), call("look", {"about": text[:40]}, id=""), reported]
        return [TextDelta(f"{text[:30]}: " + "it depends on the ice, 3.14 and 港口. " * (len(text) % 9)), reported]

    return say_it


def summary(request):
    """A summary of a length of its own; for every third number of questions none."""
    text = text_of(request.messages[0].content)
    words = f"A talk of {len(text)} characters about harbours. " * 4 if text.count("<user>") % 3 else ""
    return [TextDelta(words), Done(TokenUsage(size(request), 60))]


async def look(given):
    about = given.arguments["about"]
    return f"{about}: " + "ice 12.5 cm; wind NNW 7; 风很大. " * (len(about) * 7 % 60)


@pytest.fixture(params=[True, False], ids=["with usage", "without usage"])
def harbour(request, stage):
    """A model with a window of 4 000 tokens by its own count, that takes nothing longer."""
    stage.window(WINDOW, limit=True)
    stage.provider.size = size
    stage.reports = request.param
    stage.provider.answer, stage.provider.summary = answer(stage.reports), summary
    stage.tool("look", does=look)
    stage.configure(system_instructions="You know harbours. " * 20)
    return stage


async def test_every_request_fits_and_holds_the_newest_message(harbour, autojump_clock):
    """Whatever the summary comes to, requests fit, and each holds what the user said last, word for word."""
    async with harbour.session() as session:
        for number in range(TURNS):
            before = len(harbour.provider.asked)
            result = await harbour.turn(session, question(number))
            assert "completed" == result.status
            for request in harbour.provider.asked[before:]:
                assert question(number) == newest(request)

    kinds = [record["kind"] for record in harbour.facts("compaction", session.id)]
    assert {"summary", "truncation"} == set(kinds)
    # Without reports the estimate by script may be too low for a few requests; each is refused once, then compacted.
    assert harbour.provider.overflows <= (0 if harbour.reports else 4)
    assert harbour.provider.overflows == sum(size(request) > WINDOW for request in harbour.provider.asked)


async def test_chinese_alone_is_compacted_before_it_overflows(stage, autojump_clock):
    """A conversation in Chinese, a token for each character, no report of any usage: nothing is ever too long."""
    stage.window(WINDOW, limit=True)
    stage.provider.size = lambda request: sum(message_tokens(message, len) for message in request.messages)
    stage.provider.answer = lambda _: [TextDelta("港口在冬天结冰" * 20), Done()]
    async with stage.session() as session:
        for number in range(40):
            assert "completed" == (await stage.turn(session, f"{number}" + "请解释一下港口" * 20)).status

    assert 0 == stage.provider.overflows
    assert len(stage.facts("compaction", session.id)) >= 2


async def test_resumed_after_each_turn_the_next_request_is_the_same(harbour, autojump_clock):
    """The session that goes on and the one resumed from its log ask the same, compactions included."""
    async with harbour.session() as session:
        await harbour.turn(session, question(0))
        for number in range(1, TURNS):
            log = harbour.store.events(session.id)
            live = await first_request(harbour, session, question(number))
            await harbour.store.save_events(f"copy {number}", log)
            async with harbour.resumed(f"copy {number}") as copy:
                again = await first_request(harbour, copy, question(number))
            assert live == again, number

    assert len(harbour.facts("compaction", session.id)) >= 3


async def first_request(harbour, session, text) -> ChatRequest:
    """What the model is asked first when this is said."""
    before = len(harbour.provider.asked)
    await harbour.turn(session, text)
    return harbour.provider.asked[before]

"""A turn that ended before the model said anything leaves a note in its place (semantics 6.1), live and resumed."""

from __future__ import annotations

import pytest
import trio
from youyou import (
    AgentProfile,
    AssistantMessage,
    Metadata,
    Pipeline,
    ProfileKind,
    ProviderError,
    SessionConfig,
    Step,
    TextBlock,
    TurnStart,
    UserMessage,
)
from youyou.testing import say


async def silent(lasting, session, how, text="one"):
    """A turn in which nothing is said."""
    lasting.says([60.0] if how == "cancelled" else [ProviderError("gone", retryable=False)])
    turn = await session.send_message(text)
    if how == "cancelled":
        await trio.sleep(1)
        turn.cancel()
    assert how == (await turn.result()).status


def note(lasting, how):
    notices = lasting.config.notices
    return AssistantMessage((TextBlock(notices.interrupted_message if how == "cancelled" else notices.failed_message),))


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_no_user_message_follows_another(lasting, how, resumed, lines, autojump_clock):
    """The note of the cause stands between them, in the assistant's role, and is not stored."""
    async with lasting.session() as session:
        await silent(lasting, session, how)
        lasting.says(say("ok"))
        if not resumed:
            await lasting.turn(session, "two")
    if resumed:
        async with lasting.resumed(session.id) as session:
            await lasting.turn(session, "two")

    asked = list(lasting.model.asked[-1].messages)
    assert [UserMessage("one"), note(lasting, how), UserMessage("two")] == asked
    assert ["user: one", "user: two", "assistant: ok"] == lines(session.history) == lasting.stored(session.id)


async def test_each_silent_turn_has_its_own_note(lasting, autojump_clock):
    """Several in a row, of several causes."""
    ways = ("failed", "cancelled", "failed")
    async with lasting.session() as session:
        for how in ways:
            await silent(lasting, session, how, how)
        lasting.says(say("ok"))
        await lasting.turn(session, "last")

    told = [message for how in ways for message in (UserMessage(how), note(lasting, how))]
    assert [*told, UserMessage("last")] == list(lasting.model.asked[-1].messages)


async def test_a_turn_that_a_crash_ended_is_answered_as_failed(lasting, autojump_clock):
    """Its end was never stored."""
    started = [Metadata("turn_started", {"turn_id": str(n), "number": n, "sequence": 0}) for n in (1, 2)]
    await lasting.keep("s", started[0], UserMessage("one"), started[1], UserMessage("two"))
    lasting.says(say("ok"))
    async with lasting.resumed("s") as session:
        await lasting.turn(session, "three")

    (asked,) = lasting.model.asked
    failed = note(lasting, "failed")
    assert [UserMessage("one"), failed, UserMessage("two"), failed, UserMessage("three")] == list(asked.messages)


async def test_the_note_survives_a_compaction_and_a_resume(lasting, lines, autojump_clock):
    """What a compaction keeps keeps its note."""
    lasting.window(600)
    async with lasting.session() as session:
        lasting.says(say("long " * 150), say("and longer " * 100))
        await lasting.turn(session, "begin")
        await lasting.turn(session, "more")
        await silent(lasting, session, "cancelled")
        for _ in range(2):
            lasting.says(say("ok"))
        await lasting.turn(session, "two")
        live = lasting.model.asked[-1].messages
    lasting.says(say("ok"))
    async with lasting.resumed(session.id) as session:
        await lasting.turn(session, "three")

    assert lasting.facts("compaction", session.id)
    assert UserMessage("one") in live
    for messages in (live, lasting.model.asked[-1].messages):
        where = list(messages).index(UserMessage("one"))
        assert note(lasting, "cancelled") == messages[where + 1]


async def test_a_message_that_was_stopped_in_line_leaves_no_note(lasting, autojump_clock):
    """It never came into history; the turn that ran meanwhile is answered, also after a resume."""
    async with lasting.session() as session:
        lasting.says([1.0, *say("one")], say("ok"))
        first = await session.send_message("first")
        waiting = await session.send_message("never", queue=True)
        waiting.cancel()
        assert "completed" == (await first.result()).status
    async with lasting.resumed(session.id) as session:
        await lasting.turn(session, "second")

    assert ["first", "one", "second"] == [message.text for message in lasting.model.asked[-1].messages]


async def test_an_input_that_a_hook_refused_leaves_no_note(lasting, autojump_clock):
    """What is not in history is not answered."""

    async def refuse(event):
        return None if event.user_input.content[0].text == "ok" else 1 / 0

    lasting.on(TurnStart, refuse)
    async with lasting.session() as session:
        assert "failed" == (await lasting.turn(session, "no")).status
        lasting.says(say("fine"))
        await lasting.turn(session, "ok")

    assert [UserMessage("ok")] == list(lasting.model.asked[-1].messages)


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_step_that_begins_anew_says_its_prompt_once(lasting, resumed, autojump_clock):
    """The prompt that stands unanswered is the one that goes on."""
    profile = AgentProfile("p", ProfileKind.SKILL, "P", "P.", mode=Pipeline((Step("draft", "do {input}"),)))
    make = lasting.builder
    lasting.builder = lambda: make().register_profile(profile)
    async with lasting.agent() as agent, await agent.new_session(SessionConfig(skill="p")) as session:
        await silent(lasting, session, "failed", "x")
        lasting.says([ProviderError("still gone", retryable=False)])
        await (await session.continue_pipeline()).result()
        lasting.says(say("done"))
        if not resumed:
            await (await session.continue_pipeline()).result()
    if resumed:
        async with lasting.resumed(session.id) as session:
            await (await session.continue_pipeline()).result()

    assert [UserMessage("x"), UserMessage("do x")] == list(lasting.model.asked[-1].messages)
    assert "done" == session.history[-1].text

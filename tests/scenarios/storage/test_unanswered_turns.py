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


async def silent(stage, session, how, text="one"):
    """A turn in which nothing is said."""
    stage.says([60.0] if how == "cancelled" else [ProviderError("gone", retryable=False)])
    turn = await session.send_message(text)
    if how == "cancelled":
        await trio.sleep(1)
        turn.cancel()
    assert how == (await turn.result()).status


def note(stage, how):
    notices = stage.config.notices
    return AssistantMessage((TextBlock(notices.interrupted_message if how == "cancelled" else notices.failed_message),))


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_no_user_message_follows_another(stage, how, resumed, autojump_clock):
    """The note of the cause stands between them, in the assistant's role, and is not stored."""
    async with stage.session() as session:
        await silent(stage, session, how)
        stage.says(say("ok"))
        if not resumed:
            await stage.turn(session, "two")
    if resumed:
        async with stage.resumed(session.id) as session:
            await stage.turn(session, "two")

    asked = list(stage.provider.asked[-1].messages)
    assert [UserMessage("one"), note(stage, how), UserMessage("two")] == asked
    assert ["user: one", "user: two", "assistant: ok"] == stage.lines(session.history) == stage.stored(session.id)


async def test_each_silent_turn_has_its_own_note(stage, autojump_clock):
    """Several in a row, of several causes."""
    ways = ("failed", "cancelled", "failed")
    async with stage.session() as session:
        for how in ways:
            await silent(stage, session, how, how)
        stage.says(say("ok"))
        await stage.turn(session, "last")

    told = [message for how in ways for message in (UserMessage(how), note(stage, how))]
    assert [*told, UserMessage("last")] == list(stage.provider.asked[-1].messages)


async def test_a_turn_that_a_crash_ended_is_answered_as_failed(stage, autojump_clock):
    """Its end was never stored."""
    started = [Metadata("turn_started", {"turn_id": str(n), "number": n, "sequence": 0}) for n in (1, 2)]
    await stage.keep("s", started[0], UserMessage("one"), started[1], UserMessage("two"))
    stage.says(say("ok"))
    async with stage.resumed("s") as session:
        await stage.turn(session, "three")

    (asked,) = stage.provider.asked
    failed = note(stage, "failed")
    assert [UserMessage("one"), failed, UserMessage("two"), failed, UserMessage("three")] == list(asked.messages)


async def test_the_note_survives_a_compaction_and_a_resume(stage, autojump_clock):
    """What a compaction keeps keeps its note."""
    stage.window(600)
    async with stage.session() as session:
        stage.says(say("long " * 150), say("and longer " * 100))
        await stage.turn(session, "begin")
        await stage.turn(session, "more")
        await silent(stage, session, "cancelled")
        for _ in range(2):
            stage.says(say("ok"))
        await stage.turn(session, "two")
        live = stage.provider.asked[-1].messages
    stage.says(say("ok"))
    async with stage.resumed(session.id) as session:
        await stage.turn(session, "three")

    assert stage.facts("compaction", session.id)
    assert UserMessage("one") in live
    for messages in (live, stage.provider.asked[-1].messages):
        where = list(messages).index(UserMessage("one"))
        assert note(stage, "cancelled") == messages[where + 1]


async def test_a_message_that_was_stopped_in_line_leaves_no_note(stage, autojump_clock):
    """It never came into history; the turn that ran meanwhile is answered, also after a resume."""
    async with stage.session() as session:
        stage.says([1.0, *say("one")], say("ok"))
        first = await session.send_message("first")
        waiting = await session.send_message("never", queue=True)
        waiting.cancel()
        assert "completed" == (await first.result()).status
    async with stage.resumed(session.id) as session:
        await stage.turn(session, "second")

    assert ["first", "one", "second"] == [message.text for message in stage.provider.asked[-1].messages]


async def test_an_input_that_a_hook_refused_leaves_no_note(stage, autojump_clock):
    """What is not in history is not answered."""

    async def refuse(event):
        return None if event.user_input.content[0].text == "ok" else 1 / 0

    stage.on(TurnStart, refuse)
    async with stage.session() as session:
        assert "failed" == (await stage.turn(session, "no")).status
        stage.says(say("fine"))
        await stage.turn(session, "ok")

    assert [UserMessage("ok")] == list(stage.provider.asked[-1].messages)


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_step_that_begins_anew_says_its_prompt_once(stage, resumed, autojump_clock):
    """The prompt that stands unanswered is the one that goes on."""
    profile = AgentProfile("p", ProfileKind.SKILL, "P", "P.", mode=Pipeline((Step("draft", "do {input}"),)))
    make = stage.builder
    stage.builder = lambda: make().register_profile(profile)
    async with stage.agent() as agent, await agent.new_session(SessionConfig(skill="p")) as session:
        await silent(stage, session, "failed", "x")
        stage.says([ProviderError("still gone", retryable=False)])
        await (await session.continue_pipeline()).result()
        stage.says(say("done"))
        if not resumed:
            await (await session.continue_pipeline()).result()
    if resumed:
        async with stage.resumed(session.id) as session:
            await (await session.continue_pipeline()).result()

    assert [UserMessage("x"), UserMessage("do x")] == list(stage.provider.asked[-1].messages)
    assert "done" == session.history[-1].text

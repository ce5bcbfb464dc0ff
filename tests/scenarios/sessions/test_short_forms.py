"""The short forms: a session that is entered without await, one call for one answer, a plugin of a few lines."""

from __future__ import annotations

import gc

import attrs
import pytest
import trio
import youyou
from youyou import (
    Abort,
    BeforeToolUse,
    InvalidConfig,
    InvalidOutput,
    ProviderError,
    SessionBusy,
    WrongTrioRun,
)
from youyou.testing import ScriptedProvider, calls, say


@attrs.frozen
class Person:
    """Somebody."""

    name: str


@youyou.tool
async def look() -> str:
    """Look."""
    return "sunny"


async def test_a_session_is_entered_with_and_without_await(stage, autojump_clock):
    """Both give the session, and close it."""
    stage.says(say("one"), say("two"))
    async with stage.agent() as agent:
        async with agent.new_session() as first:
            await (await first.send_message("hello")).result()
        async with await agent.resume_session(first.id) as second:
            await (await second.send_message("hello")).result()
        opened = await agent.resume_session(first.id)
        await opened.close()

    assert (first.id, False, False) == (second.id, first.is_open, second.is_open)


async def test_a_refused_opening_is_the_same_in_both_forms(stage, autojump_clock):
    """The error comes out of ``async with``, and nothing is closed that was not opened."""
    async with stage.agent() as agent, agent.new_session() as session:
        with pytest.raises(SessionBusy):
            async with agent.new_session():
                raise AssertionError("entered")
        with pytest.raises(SessionBusy):
            await agent.new_session()
        assert session.is_open


async def test_an_opening_that_is_cancelled_has_not_happened(stage, autojump_clock):
    """The slot is free for the next one."""

    async def think(_):
        await trio.sleep(5)

    stage.on(youyou.SessionStart, think)
    async with stage.agent() as agent:
        with trio.move_on_after(1) as scope:
            async with agent.new_session():
                raise AssertionError("entered")
        await trio.sleep(5)
        async with agent.new_session() as session:
            assert session.is_open

    assert scope.cancelled_caught


async def test_the_exception_of_the_block_closes_the_session(stage, autojump_clock):
    """It leaves as it is."""
    async with stage.agent() as agent:
        with pytest.raises(ValueError, match="mine"):
            async with agent.new_session() as session:
                raise ValueError("mine")

        assert not session.is_open


async def test_an_opening_is_a_coroutine_for_trio(stage, steady_clock):
    """A thread opens a session by `trio.from_thread.run`."""
    async with stage.agent() as agent:
        session = await trio.to_thread.run_sync(lambda: trio.from_thread.run(agent.new_session))
        async with session:
            assert session.is_open


async def test_an_opening_that_nobody_awaits_is_noticed(stage, autojump_clock):
    """Python's own warning, as for any coroutine."""
    async with stage.agent() as agent:
        with pytest.warns(RuntimeWarning, match="never awaited"):
            agent.new_session()
            gc.collect()


async def test_one_call_gives_one_answer(autojump_clock):
    """The text of the answer, with tools if need be."""
    provider = ScriptedProvider([calls("look"), say("It is ", "sunny.")])

    assert "It is sunny." == await youyou.ask("How is it?", provider, tools=[look])


async def test_one_call_gives_one_object(autojump_clock):
    """What was asked for, repaired once."""
    provider = ScriptedProvider([say("Ann"), say('{"name": "Ann"}')])

    assert Person("Ann") == await youyou.ask("Who?", provider, output=Person)
    assert provider.requests[-1].messages[-1].content.startswith("[This answer does not fit")


async def test_a_turn_that_fails_raises_its_error(autojump_clock):
    """There is no result that would tell of it."""
    with pytest.raises(ProviderError, match="gone"):
        await youyou.ask("Hello", ScriptedProvider([[ProviderError("gone", retryable=False)]]))
    with pytest.raises(InvalidOutput):
        await youyou.ask("Hello", ScriptedProvider([say("no")] * 3), output=Person)


async def test_the_configuration_may_be_given(autojump_clock):
    """It is the agent's."""
    provider = ScriptedProvider([say("hello")])
    config = youyou.AgentConfig("scripted", system_instructions=("Be brief.",), notices=youyou.Notices.english())
    await youyou.ask("Hello", provider, config=config)

    assert "Be brief." in provider.requests[0].system.text


@pytest.mark.parametrize("provider", [ScriptedProvider, object(), None, "gpt-5"])
async def test_what_is_not_a_provider_is_refused_in_words(provider):
    """As by ``build()``."""
    with pytest.raises(InvalidConfig, match="model provider"):
        await youyou.ask("Hello", provider)


async def test_one_call_can_be_cancelled(autojump_clock):
    """The stream is closed."""
    provider = ScriptedProvider([[60.0, *say("late")]])
    with trio.move_on_after(1) as scope:
        await youyou.ask("Hello", provider)

    assert scope.cancelled_caught
    assert 1 == provider.opened == provider.closed


def test_a_program_without_trio_asks_too():
    """The same, for the length of the call."""
    assert "hello" == youyou.ask_sync("Hello", ScriptedProvider([say("hello")]))
    assert Person("Ann") == youyou.ask_sync("Who?", ScriptedProvider([say('{"name": "Ann"}')]), output=Person)


async def test_a_trio_program_is_told_to_await():
    """Instead of blocking its tasks."""
    with pytest.raises(WrongTrioRun, match=r"await youyou\.ask"):
        youyou.ask_sync("Hello", ScriptedProvider([]))


class Guard:
    """A plugin of one hook."""

    id = "guard"

    async def look(self, event):
        """Refuse."""
        return Abort("not now")

    def apply(self, ctx):
        """Tap."""
        ctx.tap(BeforeToolUse, self.look)


class Opened:
    """A plugin that only has something to open."""

    id = "opened"

    async def initialize(self, config):
        """Open."""
        self.config = config


async def test_a_plugin_has_only_what_it_uses(stage, autojump_clock):
    """A hook, or something to open; what has no description is not in the prompt."""
    stage.tool("write")
    stage.says(calls("write"), say("done"))
    opened = Opened()
    builder = stage.builder().register_plugin(Guard()).register_plugin(opened, {"level": 1})
    async with builder.build() as agent, agent.new_session() as session:
        result = await (await session.send_message("go")).result()

    assert ["Tool aborted by hook: not now"] == [each.content for each in result.tool_results]
    assert {"level": 1} == opened.config
    assert "guard" not in stage.provider.requests[0].system.text

"""The host's own cancellation (semantics 6.2): one shield, three points."""

from __future__ import annotations

import pytest
import trio
from youyou import (
    AgentClosed,
    Done,
    ErrorCode,
    SessionEnd,
    SessionStart,
    TurnCancelled,
)
from youyou.testing.agents.scripted import call, calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage, InMemorySessionStorage

LONG = 60.0


async def lasts(_=None):
    await trio.sleep(LONG)


@pytest.mark.parametrize("takes, outcome, left_at", [(3.0, "ok", 3), (60.0, "unknown", 6)])
async def test_running_tools_get_the_grace_and_no_more(takes, outcome, left_at, conversation, autojump_clock):
    """A tool that needs less than the grace finishes and is recorded; one that needs more is "outcome unknown"."""
    tool = conversation.tool("write", takes=takes, mutating=True)
    conversation.says(calls(call("write", id="a"), call("write", id="b")))
    with conversation.takes(left_at), trio.move_on_after(1):
        async with conversation.session() as session:
            await (await session.send_message("go")).result()

    assert (1, int(takes == 3)) == (len(tool.runs), tool.finished)
    assert ["user: go", "call a", "call b", f"{outcome} a", "skipped b"] == conversation.stored()


async def test_a_reader_outside_the_cancelled_scope_is_told(conversation, autojump_clock):
    """Anyone who still reads gets the terminal event, with the reason "host_cancelled"."""
    conversation.tool("look", takes=3.0)
    conversation.says(calls("look"))
    seen = []

    async def host(task_status):
        with trio.move_on_after(1):
            async with conversation.session() as session:
                task_status.started(await session.send_message("go"))
                await trio.sleep_forever()

    async with trio.open_nursery() as outside:
        turn = await outside.start(host)
        seen = await conversation.events(turn)

    assert (TurnCancelled, "host_cancelled") == (type(seen[-1]), seen[-1].reason)
    assert trio.current_time() == 3


@pytest.mark.parametrize("grace", [0, 5])
async def test_cancelled_while_a_session_opens(grace, conversation, autojump_clock):
    """A SessionStart hook is cut at the end of the grace, and no session is left."""
    conversation.on(SessionStart, lasts)
    conversation.configure(shutdown_grace_ms=grace * 1000)
    with conversation.takes(1 + grace, at_most=True), trio.move_on_after(1) as host:
        async with conversation.session():
            raise AssertionError("it must not open")

    assert host.cancelled_caught
    assert conversation.store._sessions == {}


async def test_cancelled_while_idle(conversation, autojump_clock):
    """Without a turn there is nothing to wait for."""
    with conversation.takes(1), trio.move_on_after(1) as host:
        async with conversation.session():
            await trio.sleep_forever()

    assert host.cancelled_caught


@pytest.mark.parametrize("grace", [0, 5])
async def test_cancelled_during_the_orderly_end_of_a_session(grace, conversation, autojump_clock):
    """A SessionEnd hook that runs at the cancel is cut at the end of the grace."""
    conversation.on(SessionEnd, lasts)
    conversation.configure(shutdown_grace_ms=grace * 1000, hook_timeout_ms=90_000)
    with conversation.takes(1 + grace), trio.move_on_after(1) as host:
        async with conversation.session():
            pass

    assert host.cancelled_caught
    assert conversation.log == ["SessionEnd begins"]


async def test_cancelled_during_extraction(conversation, autojump_clock):
    """An extraction that runs at the cancel is cut at the end of the grace."""
    conversation.memories = InMemoryMemoryStorage()
    conversation.says(say("noted"), [LONG, Done()])
    with conversation.takes(6), trio.move_on_after(1) as host:
        async with conversation.session() as session:
            await (await session.send_message("I like tea")).result()

    assert host.cancelled_caught
    assert conversation.memories.memories("default") == ()


async def test_cancelled_while_the_agent_is_entered(conversation, autojump_clock):
    """Plugins that were initialised are shut down; the one that is at it is cut at the end of the grace."""
    conversation.plugin("first")
    conversation.plugin("second", starting=lasts)
    conversation.plugin("third")
    with conversation.takes(6), trio.move_on_after(1) as host:
        async with conversation.agent():
            raise AssertionError("it must not be entered")

    assert host.cancelled_caught
    assert conversation.log == ["first begins", "second begins", "first ends", "first ended"]


async def test_cancelled_while_plugins_are_shut_down(conversation, autojump_clock):
    """A graceful shutdown that is cancelled becomes a hard one: each plugin gets an equal share of what is left."""
    for name in ("first", "second", "third"):
        conversation.plugin(name, stopping=lasts)
    with conversation.takes(1 + 7, at_most=True), trio.move_on_after(1) as host:
        async with conversation.agent():
            pass

    assert host.cancelled_caught
    assert conversation.log[3:] == ["third ends", "second ends", "first ends"]


async def test_plugins_share_the_closing_time(conversation, autojump_clock):
    """Three plugins that hang share what is left of ``closing_ms``; nobody starves, and the bound holds."""
    conversation.configure(shutdown_grace_ms=0, closing_ms=3_000)
    for name in ("first", "second", "third"):
        conversation.plugin(name, stopping=lasts)
    with conversation.takes(1 + 3), trio.move_on_after(1):
        async with conversation.session():
            await trio.sleep_forever()

    assert conversation.log[3:] == ["third ends", "second ends", "first ends"]


async def test_the_body_is_never_shielded(conversation, autojump_clock):
    """The host's code inside the block is cancelled at once, while a tool still uses its grace."""
    conversation.tool("look", takes=3.0)
    conversation.says(calls("look"))
    left = []
    with trio.move_on_after(1):
        async with conversation.session() as session:
            await session.send_message("go")
            try:
                await trio.sleep_forever()
            finally:
                left.append(trio.current_time())

    assert left == [1.0]
    assert trio.current_time() == 3


async def test_a_body_that_shields_itself_is_told_that_it_is_over(conversation, autojump_clock):
    """After the host's cancel nothing new starts, though a tool still has its grace: every request is refused."""
    conversation.tool("look", takes=4.0)
    conversation.says(calls("look"))
    codes = []
    with trio.move_on_after(1):
        async with conversation.agent() as agent:
            session = await agent.new_session()
            await session.send_message("go")
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
                for ask in (lambda: session.send_message("hi", queue=True), agent.new_session):
                    with pytest.raises(AgentClosed) as caught, conversation.takes(0):
                        await ask()
                    codes.append(caught.value.code)
                with conversation.takes(2):
                    await session.close()

    assert [ErrorCode.AGENT_CLOSED] * 2 == codes
    assert ["user: go", "call look", "ok look"] == conversation.stored()


async def test_graces_of_several_levels_do_not_add_up(conversation, autojump_clock):
    """Cancelled twice, by an inner and then an outer scope, with a close(grace) under way: the first points stand."""
    conversation.tool("look", takes=LONG)
    conversation.says(calls("look"))
    with conversation.takes(6), trio.move_on_after(3), trio.move_on_after(1):
        async with conversation.session() as session, trio.open_nursery() as nursery:
            await session.send_message("go")
            await trio.sleep(0.5)
            nursery.start_soon(session.close)
            await trio.sleep_forever()


async def test_a_second_stop_moves_no_point(conversation, autojump_clock):
    """Ctrl-C out of a tool two seconds after the host's cancel: the points of the first stop stand."""
    downs = []

    class HangsLater(InMemorySessionStorage):
        hangs = False

        async def save_events(self, session_id, events):
            if self.hangs:
                await trio.sleep_forever()
            await super().save_events(session_id, events)

    async def interrupts(_):
        conversation.store.hangs = True
        raise KeyboardInterrupt("on purpose")

    async def notes_the_time():
        downs.append(trio.current_time())
        await trio.sleep_forever()

    conversation.loses_log = True
    conversation.store = HangsLater()
    conversation.tool("late", takes=3.0, does=interrupts)
    conversation.tool("long", takes=LONG)
    conversation.plugin("plugin", stopping=notes_the_time)
    conversation.says(calls("late", "long"))
    with conversation.takes(8), pytest.raises(KeyboardInterrupt), trio.move_on_after(1):
        async with conversation.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert downs == [7.0]


async def test_tasks_cancelled_and_raising_pass_as_they_are(conversation, autojump_clock):
    """A group of Cancelled and an error out of the body: Trio takes the Cancelled, the error arrives alone."""

    async def raises_when_cancelled():
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("on my way out")

    with pytest.raises(BaseExceptionGroup) as caught, trio.move_on_after(1):
        async with conversation.session(), trio.open_nursery() as nursery:
            nursery.start_soon(raises_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    assert None is caught.value.split(ValueError)[1]


async def test_two_cancelled_tasks_are_still_a_cancel(conversation, autojump_clock):
    """A group of nothing but Cancelled passes untouched."""
    with trio.move_on_after(1) as host:
        async with conversation.session(), trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(trio.sleep_forever)

    assert host.cancelled_caught

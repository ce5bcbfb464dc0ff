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
async def test_running_tools_get_the_grace_and_no_more(takes, outcome, left_at, stage, autojump_clock):
    """A tool that needs less than the grace finishes and is recorded; one that needs more is "outcome unknown"."""
    tool = stage.tool("write", takes=takes, mutating=True)
    stage.says(calls(call("write", id="a"), call("write", id="b")))
    with stage.takes(left_at), trio.move_on_after(1):
        async with stage.session() as session:
            await (await session.send_message("go")).result()

    assert (1, int(takes == 3)) == (len(tool.runs), tool.finished)
    assert ["user: go", "call a", "call b", f"{outcome} a", "skipped b"] == stage.stored()


async def test_a_reader_outside_the_cancelled_scope_is_told(stage, autojump_clock):
    """Anyone who still reads gets the terminal event, with the reason "host_cancelled"."""
    stage.tool("look", takes=3.0)
    stage.says(calls("look"))
    seen = []

    async def host(task_status):
        with trio.move_on_after(1):
            async with stage.session() as session:
                task_status.started(await session.send_message("go"))
                await trio.sleep_forever()

    async with trio.open_nursery() as outside:
        turn = await outside.start(host)
        seen = await stage.events(turn)

    assert (TurnCancelled, "host_cancelled") == (type(seen[-1]), seen[-1].reason)
    assert trio.current_time() == 3


@pytest.mark.parametrize("grace", [0, 5])
async def test_cancelled_while_a_session_opens(grace, stage, autojump_clock):
    """A SessionStart hook is cut at the end of the grace, and no session is left."""
    stage.on(SessionStart, lasts)
    stage.configure(shutdown_grace_ms=grace * 1000)
    with stage.takes(1 + grace, at_most=True), trio.move_on_after(1) as host:
        async with stage.session():
            raise AssertionError("it must not open")

    assert host.cancelled_caught
    assert stage.store._sessions == {}


async def test_cancelled_while_idle(stage, autojump_clock):
    """Without a turn there is nothing to wait for."""
    with stage.takes(1), trio.move_on_after(1) as host:
        async with stage.session():
            await trio.sleep_forever()

    assert host.cancelled_caught


@pytest.mark.parametrize("grace", [0, 5])
async def test_cancelled_during_the_orderly_end_of_a_session(grace, stage, autojump_clock):
    """A SessionEnd hook that runs at the cancel is cut at the end of the grace."""
    stage.on(SessionEnd, lasts)
    stage.configure(shutdown_grace_ms=grace * 1000, hook_timeout_ms=90_000)
    with stage.takes(1 + grace), trio.move_on_after(1) as host:
        async with stage.session():
            pass

    assert host.cancelled_caught
    assert stage.log == ["SessionEnd begins"]


async def test_cancelled_during_extraction(stage, autojump_clock):
    """An extraction that runs at the cancel is cut at the end of the grace."""
    stage.memories = InMemoryMemoryStorage()
    stage.says(say("noted"))
    stage.extracts([LONG, Done()])
    with stage.takes(6), trio.move_on_after(1) as host:
        async with stage.session() as session:
            await (await session.send_message("I like tea")).result()

    assert host.cancelled_caught
    assert stage.memories.memories("default") == ()


async def test_cancelled_while_the_agent_is_entered(stage, autojump_clock):
    """Plugins that were initialised are shut down; the one that is at it is cut at the end of the grace."""
    stage.plugin("first")
    stage.plugin("second", starting=lasts)
    stage.plugin("third")
    with stage.takes(6), trio.move_on_after(1) as host:
        async with stage.agent():
            raise AssertionError("it must not be entered")

    assert host.cancelled_caught
    assert stage.log == ["first begins", "second begins", "first ends", "first ended"]


async def test_cancelled_while_plugins_are_shut_down(stage, autojump_clock):
    """A graceful shutdown that is cancelled becomes a hard one: each plugin gets an equal share of what is left."""
    for name in ("first", "second", "third"):
        stage.plugin(name, stopping=lasts)
    with stage.takes(1 + 7, at_most=True), trio.move_on_after(1) as host:
        async with stage.agent():
            pass

    assert host.cancelled_caught
    assert stage.log[3:] == ["third ends", "second ends", "first ends"]


async def test_plugins_share_the_closing_time(stage, autojump_clock):
    """Three plugins that hang share what is left of ``closing_ms``; nobody starves, and the bound holds."""
    stage.configure(shutdown_grace_ms=0, closing_ms=3_000)
    for name in ("first", "second", "third"):
        stage.plugin(name, stopping=lasts)
    with stage.takes(1 + 3), trio.move_on_after(1):
        async with stage.session():
            await trio.sleep_forever()

    assert stage.log[3:] == ["third ends", "second ends", "first ends"]


async def test_the_body_is_never_shielded(stage, autojump_clock):
    """The host's code inside the block is cancelled at once, while a tool still uses its grace."""
    stage.tool("look", takes=3.0)
    stage.says(calls("look"))
    left = []
    with trio.move_on_after(1):
        async with stage.session() as session:
            await session.send_message("go")
            try:
                await trio.sleep_forever()
            finally:
                left.append(trio.current_time())

    assert left == [1.0]
    assert trio.current_time() == 3


async def test_a_body_that_shields_itself_is_told_that_it_is_over(stage, autojump_clock):
    """After the host's cancel nothing new starts, though a tool still has its grace: every request is refused."""
    stage.tool("look", takes=4.0)
    stage.says(calls("look"))
    codes = []
    with trio.move_on_after(1):
        async with stage.agent() as agent:
            session = await agent.new_session()
            await session.send_message("go")
            with trio.CancelScope(shield=True):
                await trio.sleep(2)
                for ask in (lambda: session.send_message("hi", queue=True), agent.new_session):
                    with pytest.raises(AgentClosed) as caught, stage.takes(0):
                        await ask()
                    codes.append(caught.value.code)
                with stage.takes(2):
                    await session.close()

    assert [ErrorCode.AGENT_CLOSED] * 2 == codes
    assert ["user: go", "call look", "ok look"] == stage.stored()


async def test_graces_of_several_levels_do_not_add_up(stage, autojump_clock):
    """Cancelled twice, by an inner and then an outer scope, with a close(grace) under way: the first points stand."""
    stage.tool("look", takes=LONG)
    stage.says(calls("look"))
    with stage.takes(6), trio.move_on_after(3), trio.move_on_after(1):
        async with stage.session() as session, trio.open_nursery() as nursery:
            await session.send_message("go")
            await trio.sleep(0.5)
            nursery.start_soon(session.close)
            await trio.sleep_forever()


async def test_a_second_stop_moves_no_point(stage, autojump_clock):
    """Ctrl-C out of a tool two seconds after the host's cancel: the points of the first stop stand."""
    downs = []

    class HangsLater(InMemorySessionStorage):
        hangs = False

        async def save_events(self, session_id, events):
            if self.hangs:
                await trio.sleep_forever()
            await super().save_events(session_id, events)

    async def interrupts(_):
        stage.store.hangs = True
        raise KeyboardInterrupt("on purpose")

    async def notes_the_time():
        downs.append(trio.current_time())
        await trio.sleep_forever()

    stage.loses_log = True
    stage.store = HangsLater()
    stage.tool("late", takes=3.0, does=interrupts)
    stage.tool("long", takes=LONG)
    stage.plugin("plugin", stopping=notes_the_time)
    stage.says(calls("late", "long"))
    with stage.takes(8), pytest.raises(KeyboardInterrupt), trio.move_on_after(1):
        async with stage.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert downs == [7.0]


async def test_tasks_cancelled_and_raising_pass_as_they_are(stage, autojump_clock):
    """A group of Cancelled and an error out of the body: Trio takes the Cancelled, the error arrives alone."""

    async def raises_when_cancelled():
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("on my way out")

    with pytest.raises(BaseExceptionGroup) as caught, trio.move_on_after(1):
        async with stage.session(), trio.open_nursery() as nursery:
            nursery.start_soon(raises_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    assert None is caught.value.split(ValueError)[1]


async def test_two_cancelled_tasks_are_still_a_cancel(stage, autojump_clock):
    """A group of nothing but Cancelled passes untouched."""
    with trio.move_on_after(1) as host:
        async with stage.session(), trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(trio.sleep_forever)

    assert host.cancelled_caught


async def test_a_turn_s_block_that_is_cancelled_gives_its_tool_the_grace_of_a_shutdown(stage, autojump_clock):
    """Not the shorter one of a cancel that somebody asks for: nobody can read what would come of it."""
    stage.configure(cancel_grace_ms=1_000, shutdown_grace_ms=5_000)
    stage.tool("write", takes=4.0, mutating=True)
    stage.says(calls("write"))
    async with stage.session() as session:
        with stage.takes(4), trio.move_on_after(1):
            async with await session.send_message("go"):
                await trio.sleep_forever()
    assert ["user: go", "call write", "ok write"] == stage.stored()[:3]

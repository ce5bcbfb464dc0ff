"""A task that waits for what waits for it is refused; handles work in their own Trio run only (semantics 1.1)."""

from __future__ import annotations

import pytest
import trio
from youyou import (
    AfterToolUse,
    BeforeToolUse,
    Done,
    ErrorCode,
    SessionEnd,
    SessionStart,
    TextDelta,
    TurnEnd,
    TurnStart,
    TurnStatus,
    WouldDeadlock,
    WrongTrioRun,
)
from youyou.testing.agents.scripted import StrictProvider, calls, say
from youyou.testing.agents.stores import InMemorySessionStorage


class Handles:
    """What the host holds, for code that should not use all of it."""

    agent = session = turn = None

    async def read_on(self):
        async for _ in self.turn:
            pass

    async def leave_the_turn(self):
        async with self.turn:
            pass

    async def leave_the_session(self):
        async with self.session:
            pass

    def waits(self):
        """Every way to wait for the own turn, session or agent."""
        ways = {"shutdown": self.agent.shutdown}
        if self.session is not None:
            ways |= {"close": self.session.close, "leave session": self.leave_the_session}
        if self.turn is not None:
            ways |= {"result": self.turn.result, "read": self.read_on, "leave turn": self.leave_the_turn}
        return ways

    async def refused(self):
        """The ways that were refused, of those there are."""
        seen = set()
        for name, way in self.waits().items():
            try:
                await way()
            except WouldDeadlock:
                seen.add(name)
        return seen


@pytest.fixture
def handles():
    """Filled in by `converse`."""
    return Handles()


async def converse(stage, handles):
    """One turn that is read as it runs, with the handles filled in; then the end of session and agent."""
    async with stage.agent() as handles.agent, await handles.agent.new_session() as handles.session:
        handles.turn = await handles.session.send_message("go")
        return await stage.events(handles.turn)


EVERYTHING = {"shutdown", "close", "leave session", "result", "read", "leave turn"}


async def test_a_tool_may_not_wait_for_itself(stage, handles, autojump_clock):
    """A tool that awaits its turn, session or agent gets WOULD_DEADLOCK from each, at once."""
    seen = []

    async def waits(_):
        await trio.sleep(1)
        seen.append(await handles.refused())

    stage.tool("look", does=waits)
    stage.says(calls("look"), say("done"))
    with stage.takes(1):
        await converse(stage, handles)

    assert [EVERYTHING] == seen


@pytest.mark.parametrize("hook", [TurnStart, BeforeToolUse, AfterToolUse, TurnEnd])
async def test_a_hook_may_not_wait_for_itself(hook, stage, handles, autojump_clock):
    """The same for hooks of a turn, also in a task that the hook starts."""
    seen = []

    async def waits(_):
        await trio.sleep(1)

        async def asks():
            seen.append(await handles.refused())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(asks)

    stage.tool("look")
    stage.on(hook, waits)
    stage.says(calls("look"), say("done"))
    with stage.takes(1):
        await converse(stage, handles)

    assert [EVERYTHING] == seen


@pytest.mark.parametrize("hook", [SessionStart, SessionEnd])
async def test_a_session_hook_may_not_wait_for_its_session(hook, stage, handles, autojump_clock):
    """SessionStart and SessionEnd may wait neither for the session nor for the agent."""
    seen = []

    async def waits(_):
        await trio.sleep(1)
        seen.append(await handles.refused())

    stage.on(hook, waits)
    stage.says(say("done"))
    with stage.takes(1):
        await converse(stage, handles)

    # A turn that has ended may be waited for.
    assert [{"shutdown"} if hook is SessionStart else {"shutdown", "close", "leave session"}] == seen


@pytest.mark.parametrize("port", ["provider", "store", "plugin"])
async def test_a_port_may_not_wait_for_the_agent(port, stage, handles, autojump_clock):
    """A provider, a storage and the shutdown of a plugin are called by the agent, too."""
    seen = []

    async def waits():
        if handles.agent is not None and not seen:
            try:
                await handles.agent.shutdown()
            except WouldDeadlock as error:
                seen.append(error.code)

    class Asking(StrictProvider):
        async def chat(self, request):
            await waits()
            yield TextDelta("done")
            yield Done()

    class AskingStore(InMemorySessionStorage):
        async def save_events(self, session_id, events):
            await waits()

    if port == "provider":
        stage.provider = Asking([])
    elif port == "store":
        stage.ports["store"] = AskingStore()
    else:
        stage.plugin("plugin", stopping=waits)
    if port != "provider":
        stage.says(say("done"))
    await converse(stage, handles)

    assert [ErrorCode.WOULD_DEADLOCK] == seen


async def test_cancelling_from_inside_is_fine(stage, handles, autojump_clock):
    """A tool may cancel its own turn: it still finishes, and the turn is cancelled."""
    answers = []

    async def cancels(_):
        answers.append(handles.turn.cancel())
        await trio.sleep(1)

    look = stage.tool("look", takes=1.0, does=cancels)
    stage.says(calls("look"))
    events = await converse(stage, handles)

    assert ([True], 1) == (answers, look.finished)
    assert "cancelled" == events[-1].reason


async def test_a_task_of_the_host_may_wait(stage, handles, autojump_clock):
    """A tool may have a task of the host's wait: it does not wait itself."""
    seen = []

    async with trio.open_nursery() as host:

        async def waits():
            seen.append((await handles.turn.result()).status)

        async def delegates(_):
            host.start_soon(waits)

        stage.tool("look", takes=1.0, does=delegates)
        stage.says(calls("look"), say("done"))
        await converse(stage, handles)

    assert [TurnStatus.COMPLETED] == seen


async def test_an_agent_inside_a_tool_may_be_waited_for(stage, handles, autojump_clock):
    """A tool that runs an agent of its own waits for that one as it likes."""
    inner = type(stage)()
    inner.says(say("inner"))
    texts = []

    async def delegates(_):
        async with inner.session() as session:
            texts.append((await (await session.send_message("go")).result()).text)
            await session.close()

    stage.tool("delegate", does=delegates)
    stage.says(calls("delegate"), say("done"))
    await converse(stage, handles)

    assert ["inner"] == texts


# another run, another thread


def uses(handles):
    """Every use of a handle that belongs to the run."""

    async def read():
        async for _ in handles.turn:
            pass

    async def sync(use):
        use()

    return {
        "new_session": handles.agent.new_session,
        "shutdown": handles.agent.shutdown,
        "statistics": lambda: sync(handles.agent.statistics),
        "tree": lambda: sync(handles.agent.tree),
        "send_message": lambda: handles.session.send_message("hi"),
        "set_title": lambda: handles.session.set_title("t"),
        "close": handles.session.close,
        "cancel": lambda: sync(handles.turn.cancel),
        "detach": lambda: sync(handles.turn.detach),
        "steer": lambda: sync(lambda: handles.turn.steer("hi")),
        "result": handles.turn.result,
        "read": read,
    }


async def test_handles_belong_to_their_run(stage, handles, steady_clock):
    """In another Trio run every use of a handle raises WRONG_TRIO_RUN, and does nothing."""
    refused = []

    async def other_run():
        for name, use in uses(handles).items():
            try:
                await use()
            except WrongTrioRun:
                refused.append(name)

    stage.says([1.0, *say("done")])
    async with stage.agent() as handles.agent, await handles.agent.new_session() as handles.session:
        handles.turn = await handles.session.send_message("go")
        await trio.to_thread.run_sync(trio.run, other_run)
        assert list(uses(handles)) == refused
        assert TurnStatus.COMPLETED == (await handles.turn.result()).status

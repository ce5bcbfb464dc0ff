"""Exceptions reach the host bare, and in a fixed order of precedence (semantics 3)."""

from __future__ import annotations

import pytest
import trio
from youyou import AgentCrashed, AgentError, ErrorCode, PluginError, PluginInitFailed, SessionStart, TurnStatus
from youyou.actors.guard.guard import Guard
from youyou.actors.memory.extractor import MemoryExtractor
from youyou.actors.recorder.recorder import Recorder
from youyou.actors.session.session_actor import SessionActor
from youyou.actors.tool_pool.pool import ToolPool
from youyou.actors.turn.tool_batch import ToolBatch
from youyou.actors.turn.turn_actor import Turn
from youyou.testing.agents.scripted import calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage


async def raises(*_):
    raise RuntimeError("out of a plugin")


class Bug(Exception):
    """What a bug in the runtime would raise."""


async def test_the_body_s_own_exception_object_arrives(stage, autojump_clock):
    """A ValueError of the body leaves the agent as that very object, after running tools have finished."""
    write = stage.tool("write", takes=30.0)
    stage.says(calls("write"))
    mine = ValueError("mine")
    with stage.takes(30), pytest.raises(ValueError, match="mine") as caught:
        async with stage.session() as session:
            await session.send_message("go")
            await trio.sleep(1)
            raise mine

    assert mine is caught.value
    assert (mine.__cause__, mine.__context__) == (None, None)
    assert write.finished == 1


async def test_a_group_of_the_body_s_stays_that_group(stage, autojump_clock):
    """A group that the body raised arrives as it is."""
    mine = ExceptionGroup("mine", [ValueError(), TypeError()])
    with pytest.raises(ExceptionGroup) as caught:
        async with stage.session():
            raise mine

    assert mine is caught.value


async def test_the_body_s_exception_outranks_a_failing_shutdown(stage, autojump_clock, caplog):
    """A plugin that fails in its shutdown is logged and hides nothing."""
    stage.plugin("bad", stopping=raises)
    with pytest.raises(ValueError, match="mine"):
        async with stage.session():
            raise ValueError("mine")

    assert "plugin bad failed while it was left" in caplog.text


async def test_a_failing_shutdown_alone_is_logged(stage, autojump_clock, caplog):
    """Leaving an agent whose plugin fails in its shutdown raises nothing."""
    stage.plugin("bad", stopping=raises)
    async with stage.session():
        pass

    assert "out of a plugin" in caplog.text


@pytest.mark.parametrize("where", ["initialize", "apply"])
async def test_a_failing_entry_is_plugin_init_failed(where, stage, autojump_clock):
    """initialize or apply raises: entering fails, after the initialised plugins were shut down in reverse order."""
    stage.plugin("first")
    stage.plugin("second")
    bad = stage.plugin("bad", starting=raises if where == "initialize" else None)
    if where == "apply":
        bad.taps.append(("no class", raises, 0))
    with pytest.raises(PluginInitFailed) as caught:
        async with stage.agent():
            raise AssertionError("it must not be entered")

    assert caught.value.__cause__ is not None
    assert stage.log[-4:] == ["second ends", "second ended", "first ends", "first ended"]


async def test_a_session_that_a_hook_refuses(stage, autojump_clock):
    """SessionStart raises: new_session raises PLUGIN_ERROR bare; the agent goes on, the next one may open."""
    failing = [True]

    async def refuses_once(_):
        if failing.pop() if failing else False:
            raise ValueError("not now")

    stage.on(SessionStart, refuses_once)
    async with stage.agent() as agent:
        with pytest.raises(PluginError, match="not now"):
            await agent.new_session()
        async with await agent.new_session():
            pass


# bugs in the runtime

ACTORS = [
    (ToolBatch, "_record"),
    (Turn, "_begin"),
    (Turn, "_make_result"),
    (SessionActor, "_start_turn"),
    (Guard, "_admit_or_refuse"),
    (ToolPool, "_answer"),
    (ToolPool, "_call"),
    (Recorder, "_write"),
]


@pytest.mark.parametrize("actor, method", ACTORS, ids=lambda value: getattr(value, "__name__", value))
async def test_a_bug_in_an_actor_is_agent_crashed(actor, method, stage, autojump_clock, monkeypatch):
    """Wherever it is, a bug ends a body that waits forever, as AGENT_CRASHED from what happened; plugins end."""
    stage.loses_log = True
    stage.plugin("plugin")
    stage.tool("look")
    stage.says(calls("look"), say("done"))

    def breaks(*_):
        raise Bug(method)

    monkeypatch.setattr(actor, method, breaks)
    with stage.takes(7, at_most=True), pytest.raises(AgentCrashed) as caught:
        async with stage.session() as session:
            await session.send_message("go")
            await trio.sleep_forever()

    assert [method] == [str(leaf) for leaf in leaves(caught.value.__cause__)]
    assert stage.log == ["plugin begins", "plugin ends", "plugin ended"]


async def test_a_bug_in_the_extractor(stage, autojump_clock, monkeypatch):
    """The memory extractor breaks while a session closes: close() returns, the host gets AGENT_CRASHED."""
    stage.loses_log = True
    stage.memories = InMemoryMemoryStorage()
    stage.says(say("hello"))

    async def breaks(*_):
        raise Bug("extractor")

    monkeypatch.setattr(MemoryExtractor, "_take_in", breaks)
    with stage.takes(7, at_most=True), pytest.raises(AgentCrashed) as caught:
        async with stage.session() as session:
            await (await session.send_message("go")).result()

    assert [str(leaf) for leaf in leaves(caught.value.__cause__)] == ["extractor"]


async def test_a_crash_still_ends_the_turn(stage, autojump_clock, monkeypatch):
    """A bug during a turn: its reader gets exactly one terminal event, and result() returns."""
    stage.loses_log = True
    stage.tool("look")
    stage.says(calls("look"))
    monkeypatch.setattr(ToolBatch, "_record", breaks_now)
    async with trio.open_nursery() as outside:

        async def host(task_status):
            with pytest.raises(AgentCrashed):
                async with stage.session() as session:
                    task_status.started(await session.send_message("go"))
                    await trio.sleep_forever()

        turn = await outside.start(host)
        await stage.events(turn)
        assert (await turn.result()).status == TurnStatus.CANCELLED


def breaks_now(*_):
    raise Bug("now")


async def test_a_crash_holds_the_body_s_error_too(stage, autojump_clock, monkeypatch):
    """AGENT_CRASHED outranks the body's exception, and its cause holds both."""
    stage.loses_log = True
    monkeypatch.setattr(Turn, "_begin", breaks_now)
    mine = ValueError("mine")
    with pytest.raises(AgentCrashed) as caught:
        async with stage.session() as session:
            await session.send_message("go")
            try:
                await trio.sleep_forever()
            finally:
                raise mine

    assert {"mine", "now"} == {str(leaf) for leaf in leaves(caught.value.__cause__)}


async def test_an_interrupt_outranks_a_crash(stage, autojump_clock, monkeypatch):
    """Ctrl-C out of the body while an actor has crashed arrives as Ctrl-C."""
    stage.loses_log = True
    monkeypatch.setattr(Turn, "_begin", breaks_now)
    with pytest.raises(KeyboardInterrupt):
        async with stage.session() as session:
            await session.send_message("go")
            try:
                await trio.sleep_forever()
            finally:
                raise KeyboardInterrupt


async def test_who_asks_after_a_crash_is_answered(stage, autojump_clock, monkeypatch):
    """After a crash every question has an answer: AGENT_CLOSED or SESSION_CLOSED, at once."""
    stage.loses_log = True
    monkeypatch.setattr(Turn, "_begin", breaks_now)
    codes = []
    with pytest.raises(AgentCrashed):
        async with stage.agent() as agent:
            session = await agent.new_session()
            await session.send_message("go")
            with trio.CancelScope(shield=True):
                await trio.sleep(10)
                for ask in (agent.new_session, lambda: session.send_message("hi"), lambda: session.set_title("t")):
                    try:
                        await ask()
                    except AgentError as error:
                        codes.append(error.code)
                with stage.takes(0):
                    await session.close()
                    await agent.shutdown()

    assert codes == [ErrorCode.AGENT_CLOSED] * 3


def leaves(exc):
    if isinstance(exc, BaseExceptionGroup):
        return [leaf for item in exc.exceptions for leaf in leaves(item)]
    return [exc]

"""A store that takes a second for each write loses nothing when a turn or a session is stopped (semantics 6.1, 7)."""

from __future__ import annotations

import pytest
import trio
from youyou import Done, StorageError, TextDelta
from youyou.testing.agents.scripted import StrictProvider, call, calls, say


@pytest.fixture
def slow(stage):
    """A conversation with a slow store, three serial calls and some text."""
    stage.store.delay = 1.0
    stage.tool("write", takes=0.5, mutating=True)
    stage.says(calls(*[call("write", id=name) for name in "abc"], text="I will"), say("done"))
    return stage


MOMENTS = [0.25 * step for step in range(33)]


@pytest.mark.parametrize("grace", [None, 0])
@pytest.mark.parametrize("stop", ["turn", "session"])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_stop_at_any_moment_loses_nothing(moment, stop, grace, slow, autojump_clock):
    """Turn or session stopped at any quarter of a second: the store holds exactly what the session holds.

    A grace bounds the wait for the store; what is not stored by then is told, and stored before the agent is left.
    """
    async with slow.agent() as agent:
        session = await agent.new_session()
        turn = await session.send_message("go")
        turn.detach()
        await trio.sleep(moment)
        if stop == "turn":
            turn.cancel(grace=grace)
            await turn.result()
        try:
            await session.close(grace=grace)
        except StorageError as late:
            assert grace == 0 and "not stored yet" in late.message
        else:
            assert 0 == agent.statistics().unsaved_events

    assert slow.lines(session.history) == slow.stored()
    assert 1 == len(slow.facts("turn_ended"))


@pytest.mark.parametrize("moment", MOMENTS[::3])
async def test_the_host_s_cancel_leaves_a_prefix_that_resumes(moment, slow, autojump_clock):
    """The host's cancel may cut the log off where time ran out: it is a prefix of history, and resumes."""
    slow.loses_log = True
    with slow.takes(moment + 7, at_most=True), trio.move_on_after(moment):
        async with slow.session() as session:
            await (await session.send_message("go")).result()
            await trio.sleep_forever()
    if not slow.store._sessions:
        return
    history, stored = slow.lines(session.history), slow.stored()
    assert history[: len(stored)] == stored

    slow.store.delay = 0.0
    slow.provider = StrictProvider([say("hello again")])
    async with slow.agent() as agent, await agent.resume_session(session.id) as resumed:
        assert "hello again" == (await (await resumed.send_message("hi")).result()).text


async def test_the_first_request_waits_for_the_user_message(stage, autojump_clock):
    """The user message is stored before the model is asked."""
    stored = []

    class Noting(StrictProvider):
        def chat(self, request):
            stored.append(stage.stored())
            return super().chat(request)

    stage.store.delay = 1.0
    stage.provider = Noting([[TextDelta("a"), Done()]])
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert [["user: go"]] == stored


async def test_a_call_is_stored_before_its_tool_starts(stage, autojump_clock):
    """An assistant message with its calls, and that a tool starts, are stored before the tool runs."""
    seen = []

    async def notes(_):
        seen.append((stage.stored()[1:], [fact["call_id"] for fact in stage.facts("tool_started")]))

    stage.store.delay = 1.0
    stage.tool("write", does=notes, mutating=True)
    stage.says(calls(call("write", id="a"), call("write", id="b"), text="I will"), say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    calls_stored = ["assistant: I will", "call a", "call b"]
    assert [(calls_stored, ["a"]), ([*calls_stored, "ok a"], ["a", "b"])] == seen

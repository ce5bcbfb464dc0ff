"""``cancel(after_batch=True)`` and ``cancel_grace_ms`` (semantics 6.1): what a stop lets run, and for how long."""

from __future__ import annotations

import pytest
import trio
from youyou import (
    AfterToolUse,
    BeforeToolUse,
    InvalidConfig,
    TextDelta,
    ToolCallStart,
    ToolOutcome,
    TurnCancelled,
)
from youyou.testing import InMemorySessionStorage
from youyou.testing.agents.scripted import calls, say


class Filling(InMemorySessionStorage):
    """Refuses every write while it is full."""

    full = False

    async def save_events(self, session_id, events):
        if self.full:
            raise OSError("disk full")
        await super().save_events(session_id, events)


async def stopped(stage, session, after=1.0, **how):
    """The result of a turn that is cancelled after so many seconds, and when it ended."""
    turn = await session.send_message("go")
    await trio.sleep(after)
    assert turn.cancel(**how)
    return await turn.result()


def outcomes(result):
    return [each.outcome.value for each in result.tool_results]


@pytest.mark.parametrize("mutating", [False, True])
async def test_the_running_batch_comes_to_its_end(stage, mutating, autojump_clock):
    """Also the calls that wait in line, serial or for a free place; no further request is sent."""
    stage.configure(max_concurrent_tools=1)
    tool = stage.tool("write", takes=2.0, mutating=mutating)
    stage.says(calls("write", "write", "write"), say("never"))
    async with stage.session() as session:
        with stage.takes(6):
            result = await stopped(stage, session, after_batch=True)

    assert ("cancelled", ["ok"] * 3, 3) == (result.status, outcomes(result), tool.finished)
    assert ((), ()) == (result.skipped, result.interrupted)
    assert 1 == len(stage.provider.requests)


async def test_its_hooks_run_too(stage, autojump_clock):
    """What guards a call guards it after such a stop as well."""
    stage.tool("write", takes=2.0, mutating=True)
    stage.on(BeforeToolUse)
    stage.on(AfterToolUse)
    stage.says(calls("write", "write"), say("never"))
    async with stage.session() as session:
        await stopped(stage, session, after_batch=True)

    assert ["BeforeToolUse begins", "BeforeToolUse ended", "AfterToolUse begins", "AfterToolUse ended"] * 2 == (
        stage.log
    )


async def test_a_later_cancel_skips_what_has_not_started(stage, autojump_clock):
    """A stop only ever tightens; the other order loosens nothing."""
    stage.tool("write", takes=2.0, mutating=True)
    stage.says(calls("write", "write"), calls("write", "write"))
    async with stage.session() as session:
        for first in (True, False):
            turn = await session.send_message("go")
            await trio.sleep(1)
            turn.cancel(after_batch=first)
            turn.cancel(after_batch=not first)
            assert ["ok", "skipped"] == outcomes(await turn.result())


async def test_a_grace_bounds_the_batch_as_a_whole(stage, autojump_clock):
    """What runs at its end is cut, what has not started is skipped."""
    stage.tool("write", takes=2.0, mutating=True)
    stage.says(calls("write", "write", "write"))
    async with stage.session() as session:
        with stage.takes(3.5):
            result = await stopped(stage, session, after_batch=True, grace=2.5)

    assert ["ok", "unknown", "skipped"] == outcomes(result)


async def test_calls_that_wait_for_a_place_are_skipped_when_the_grace_is_over(stage, autojump_clock):
    """Concurrent ones, too."""
    stage.configure(max_concurrent_tools=1)
    stage.tool("look", takes=2.0)
    stage.says(calls("look", "look", "look"))
    async with stage.session() as session:
        with stage.takes(3.5):
            result = await stopped(stage, session, after_batch=True, grace=2.5)

    assert ["ok", "unknown", "skipped"] == outcomes(result)


async def test_without_a_batch_it_is_a_cancel(stage, autojump_clock):
    """The stream is closed at once; calls that it held are skipped."""
    stage.tool("write", mutating=True)
    stage.says([TextDelta("half"), *calls("write")[:-1], 60.0])
    async with stage.session() as session:
        with stage.takes(1):
            result = await stopped(stage, session, after_batch=True)

    assert ("cancelled", "half", ["skipped"]) == (result.status, result.text, outcomes(result))


async def test_a_call_that_cannot_be_stored_ends_the_batch(stage, autojump_clock):
    """Nothing starts that is not stored, whatever the stop allows."""
    stage.loses_log = True
    write = stage.tool("write", takes=2.0, mutating=True)
    stage.says(calls("write", "write"))
    stage.store = store = Filling()
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(after_batch=True)
        store.full = True
        result = await turn.result()
        store.full = False

    assert (["ok", "skipped"], 1) == (outcomes(result), len(write.runs))


async def test_each_call_that_ran_was_announced(stage, autojump_clock):
    """The events tell what happened after the stop."""
    stage.tool("write", takes=2.0, mutating=True)
    stage.says(calls("write", "write"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        turn.cancel(after_batch=True)
        payloads = await stage.events(turn)

    assert 2 == sum(isinstance(payload, ToolCallStart) for payload in payloads)
    assert [()] == [payload.skipped for payload in payloads if isinstance(payload, TurnCancelled)]


@pytest.mark.parametrize(("grace", "seconds"), [(None, 3), (1, 2), (4, 5)])
async def test_a_cancel_without_a_grace_gives_that_of_the_configuration(stage, grace, seconds, autojump_clock):
    """One that names a grace has its own, a longer one too."""
    stage.configure(cancel_grace_ms=2_000)
    stage.tool("write", takes=60.0, mutating=True)
    stage.says(calls("write"))
    async with stage.session() as session:
        with stage.takes(seconds):
            result = await stopped(stage, session, grace=grace)

    assert [ToolOutcome.UNKNOWN] == [each.outcome for each in result.tool_results]


@pytest.mark.parametrize("way", ["close", "shutdown", "turn's block", "session's block"])
async def test_closing_and_leaving_give_that_grace_too(stage, way, autojump_clock):
    """Every stop but a cancellation of the host's."""
    stage.configure(cancel_grace_ms=2_000)
    stage.tool("write", takes=60.0, mutating=True)
    stage.says(calls("write"))
    async with stage.agent() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        with stage.takes(2):
            match way:
                case "close":
                    await session.close()
                case "shutdown":
                    await agent.shutdown()
                case "turn's block":
                    async with turn:
                        pass
                case _:
                    await session.__aexit__(None, None, None)


async def test_a_host_that_is_cancelled_gives_the_grace_of_the_shutdown(stage, autojump_clock):
    """The configured grace of a cancel is not that of the host's own cancellation."""
    stage.configure(cancel_grace_ms=0, shutdown_grace_ms=5_000)
    tool = stage.tool("write", takes=3.0, mutating=True)
    stage.says(calls("write"))
    with trio.move_on_after(1):
        async with stage.session() as session:
            turn = await session.send_message("go")
            await turn.result()

    assert (1, 0) == (tool.finished, tool.cut)


@pytest.mark.parametrize("value", [-1, True, 1.5, "2"])
def test_the_grace_must_be_milliseconds(stage, value):
    """Refused by ``build()``, with what to write instead."""
    stage.configure(cancel_grace_ms=value)
    with pytest.raises(InvalidConfig, match=r"cancel_grace_ms .*; pass 0 or a positive integer, or None"):
        stage.builder().build()

"""A message put into a running turn is delivered in it or handed back, and never lost (semantics 13)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import youyou
from youyou import (
    Done,
    ProviderError,
    SingleShot,
    SkillDefinition,
    Step,
    TextDelta,
    TurnStatus,
    UserInput,
    UserMessage,
)
from youyou.core.randomness import randomness
from youyou.messages.content import text_of
from youyou.testing import Simulation, call, calls, say, sweep

MORE = UserInput("and this")


def heard(messages: Any) -> int:
    """How often the steered message stands there."""
    return sum(isinstance(m, UserMessage) and text_of(m.content) == "and this" for m in messages)


async def test_it_is_delivered_at_the_next_boundary(stage: Any, autojump_clock: Any) -> None:
    """Sent while a tool runs, it stands behind that tool's result and in the next request."""
    stage.tool("look", takes=2)
    stage.says(calls("look"), say("seen, and this too"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer("and this")
        result = await turn.result()

    assert [0, 1] == [heard(request.messages) for request in stage.requests]
    assert ["user: go", "call look", "ok look", "user: and this", "assistant: seen, and this too"] == stage.lines(
        session.history
    )
    assert (TurnStatus.COMPLETED, ()) == (result.status, result.undelivered)


async def test_a_last_answer_is_followed_by_one_more_round(stage: Any, autojump_clock: Any) -> None:
    """Sent while the model says its last words, the turn goes on instead of ending."""
    stage.says([TextDelta("so"), 2.0, Done()], say("and that"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer("and this")
        result = await turn.result()

    assert ("and that", ()) == (result.text, result.undelivered)
    assert [0, 1] == [heard(request.messages) for request in stage.requests]


async def test_several_are_delivered_in_order(stage: Any, autojump_clock: Any) -> None:
    """Messages steered one after the other come one after the other, each as a message of its own."""
    stage.tool("look", takes=1)
    stage.says(calls("look"), say("well"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        accepted = [turn.steer(text) for text in ("one", "two", "three")]
        await turn.result()

    assert [True, True, True] == accepted
    said = [each for each in stage.lines(session.history) if each.startswith("user")]
    assert ["user: go", "user: one", "user: two", "user: three"] == sorted(said, key=said.index)


async def test_what_is_decided_takes_nothing(stage: Any, autojump_clock: Any) -> None:
    """After the end, and after a cancel, it is refused and nowhere to be found."""
    stage.says(say("done"), [TextDelta("so"), 9.0, Done()])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await turn.result()
        ended = turn.steer("and this")
        turn = await session.send_message("go on")
        await trio.sleep(1)
        turn.cancel()
        cancelled = turn.steer("and this")
        result = await turn.result()

    assert (False, False) == (ended, cancelled)
    assert (0, ()) == (heard(session.history), result.undelivered)


@pytest.mark.parametrize("ending", ["cancel", "close", "failure"])
async def test_what_was_not_delivered_is_handed_back(stage: Any, autojump_clock: Any, ending: str) -> None:
    """A turn that ends otherwise gives it back, as it was given, in result and terminal event alike."""
    given = UserInput("and this", skills=())
    last = ProviderError("gone", retryable=False) if ending == "failure" else 9.0
    stage.says([TextDelta("so"), 2.0, last, Done()])
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer(given)
        if ending == "cancel":
            turn.cancel()
        if ending == "close":
            await session.close()
        events = [event.payload async for event in turn]
        result = await turn.result()

    assert result.status is not TurnStatus.COMPLETED
    assert ((given,), (given,)) == (result.undelivered, events[-1].undelivered)
    assert 0 == heard(session.history)


async def test_a_single_shot_hands_it_back(stage: Any, autojump_clock: Any) -> None:
    """One request is one request: what comes meanwhile is not delivered."""
    stage.profile("once", mode=SingleShot())
    stage.says([TextDelta("so"), 2.0, Done()])
    async with stage.session(skill="once") as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer(MORE)
        result = await turn.result()

    assert (TurnStatus.COMPLETED, (MORE,)) == (result.status, result.undelivered)
    assert 1 == len(stage.requests)


async def test_a_single_shot_step_leaves_it_to_the_next(stage: Any, autojump_clock: Any) -> None:
    """One request is one request: it is delivered behind the next step's prompt."""
    stage.pipeline(Step("a", "first", mode=SingleShot()), Step("b", "second: {steps.a}"))
    stage.says([TextDelta("so"), 2.0, Done()], say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer(MORE)
        result = await turn.result()

    assert [0, 1] == [heard(request.messages) for request in stage.requests]
    assert (["first", "and this"], "done", ()) == (stage.asked(), result.text, result.undelivered)


async def test_a_pipeline_takes_it_into_its_step(stage: Any, autojump_clock: Any) -> None:
    """The step that runs is asked once more; its new answer is its output."""
    stage.pipeline(Step("a", "first"), Step("b", "second: {steps.a}"))
    stage.says([TextDelta("so"), 2.0, Done()], say("better"), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.steer(MORE)
        result = await turn.result()

    assert ["first", "and this", "second: better"] == stage.asked()
    assert (TurnStatus.COMPLETED, ()) == (result.status, result.undelivered)


async def test_a_waiting_turn_can_be_steered(stage: Any, autojump_clock: Any) -> None:
    """It is delivered behind the input of the turn that waits in line."""
    stage.says([TextDelta("one"), 2.0, Done()], say("two"))
    async with stage.session() as session:
        first = await session.send_message("go")
        second = await session.send_message("next", queue=True)
        assert second.steer(MORE)
        await first.result()
        await second.result()

    assert ["user: go", "assistant: one", "user: next", "user: and this", "assistant: two"] == stage.lines(
        session.history
    )


async def test_a_refused_turn_hands_it_back(stage: Any, autojump_clock: Any) -> None:
    """A TurnStart hook that aborts takes nothing with it."""

    async def refuse(event: Any) -> Any:
        await trio.sleep(2)
        return youyou.Abort("no")

    stage.on(youyou.TurnStart, refuse)
    async with stage.session() as session:
        turn = await session.send_message("go")
        assert turn.steer(MORE)
        result = await turn.result()

    assert (TurnStatus.FAILED, (MORE,)) == (result.status, result.undelivered)


@pytest.mark.parametrize("input", ["", "  ", UserInput("x", skills=("nothing",))])
async def test_what_cannot_be_sent_cannot_be_steered(stage: Any, autojump_clock: Any, input: Any) -> None:
    """The same checks as for `send_message`, before anything is taken."""
    stage.says([2.0, *say("done")])
    async with stage.session() as session:
        turn = await session.send_message("go")
        with pytest.raises(youyou.AgentError):
            turn.steer(input)
        result = await turn.result()

    assert ((), 1) == (result.undelivered, len(stage.requests))


@pytest.mark.parametrize("more", ["now /tidy", UserInput("now", skills=("tidy",))])
async def test_a_steered_skill_is_injected_once_per_turn(stage: Any, autojump_clock: Any, more: Any) -> None:
    """A skill that a steered message names is injected before it, unless the turn has its prompt already."""
    builder = stage.builder().register_skill(SkillDefinition("tidy", "Tidy", "Tidies.", "Be tidy."))
    stage.tool("look", takes=1)
    for tool in stage.tools.values():
        builder.register_tool(tool)
    stage.says(calls("look"), calls(call("look", id="2")), say("tidied"))
    async with builder.build() as agent, await agent.new_session() as session:
        turn = await session.send_message("go")
        turn.steer(more)
        await trio.sleep(1.5)
        turn.steer(more)
        await turn.result()

    said = stage.lines(session.history)
    notes = [index for index, each in enumerate(said) if each.startswith("note: <skill>")]
    assert 1 == len(notes)
    assert said[notes[0] + 1].startswith("user: now")


Talk = Callable[[Any], Awaitable[None]]


def react(stage: Any) -> None:
    """Two rounds of tools, then an answer."""
    stage.tool("look", takes=1)
    stage.answers(lambda request: react_round(len([m for m in request.messages if isinstance(m, youyou.ToolCall)])))


def react_round(calls_so_far: int) -> Any:
    if calls_so_far < 2:
        return [TextDelta("hm"), 0.5, call("look", id=""), Done()]
    return [TextDelta("so"), 0.5, TextDelta(" it is"), Done()]


def once(stage: Any) -> None:
    """One request, retried once."""
    stage.profile("flow", mode=SingleShot())
    stage.answers(lambda _: [ProviderError("busy")] if len(stage.requests) < 1 else [0.5, *say("done")])


def steps(stage: Any) -> None:
    """Three steps, the last one in one request."""
    stage.pipeline(Step("a", "x"), Step("b", "y {steps.a}"), Step("c", "z", mode=SingleShot()))
    stage.answers(lambda _: [TextDelta("so"), 0.5, Done()])


def fails(stage: Any) -> None:
    """Ends as failed in its second round."""
    stage.tool("look", takes=1)
    stage.answers(
        lambda request: (
            calls(call("look", id="")) if len(request.messages) < 3 else [TextDelta("n"), ProviderError("x")]
        )
    )


@pytest.mark.parametrize("kind", [react, once, steps, fails])
@pytest.mark.parametrize("stopped", [False, True], ids=["runs on", "cancelled"])
@pytest.mark.long
def test_sent_after_every_step_it_is_in_one_place(make_stage: Any, kind: Any, stopped: bool) -> None:
    """At every step of the scheduler: in the requests from one on, exactly once, or in ``undelivered``; never both.

    A turn that is cancelled right after it took the message into history makes no request any more: there it stands in
    history exactly once, for the next turn.
    """

    taken: list[bool] = []

    async def scenario(sim: Simulation) -> None:
        randomness.set(sim.random)
        stage = make_stage()
        kind(stage)
        accepted: list[bool] = []
        async with stage.session() as session:
            turn = await session.send_message("go")

            def steer() -> bool:
                accepted.append(turn.steer(MORE))
                return accepted[-1]

            sim.action("steer", steer, done=lambda: True)
            async with trio.open_nursery() as nursery:
                if stopped:
                    nursery.start_soon(cancel_later, turn)
                result = await turn.result()
            kept, sent = heard(session.history), [heard(request.messages) for request in stage.requests]
        assert kept + len(result.undelivered) == sum(accepted), (kept, result.undelivered, accepted)
        assert sorted(sent) == sent, sent
        assert set(sent) <= {0, 1}, sent
        assert stopped or max(sent) == kept, (sent, kept)
        assert [] == stage.provider.violations
        taken.extend(accepted)

    report = sweep(scenario, cancel="steer")

    # Not assert_ok(): steering need not change a single step of the scheduler.
    assert () == tuple(report.failures)
    assert sum(taken) > 10


async def cancel_later(turn: Any) -> None:
    await trio.sleep(1.2)
    turn.cancel()

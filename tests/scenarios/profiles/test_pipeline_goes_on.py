"""A pipeline that was stopped goes on at its first step without an outcome, and runs no finished step again."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import youyou
from youyou import (
    ChatRequest,
    InvalidInput,
    Metadata,
    ProviderError,
    RetryPolicy,
    SessionStart,
    Step,
    StepEnd,
    StepStart,
    ToolResult,
    TurnStart,
    TurnStatus,
    UserMessage,
)
from youyou.core.randomness import randomness
from youyou.messages.content import text_of
from youyou.testing import InMemorySessionStorage, Simulation, call, calls, say, sweep

NAMES = ("read", "points", "cards")
STEPS = (
    Step("read", "read {input}"),
    Step("points", "points of {steps.read}", output="list"),
    Step("cards", "cards of {steps.list}"),
)
PROMPTS = ("read book", "points of read done", "cards of points done")


def answer(request: ChatRequest) -> list[Any]:
    """For each step's prompt first a call, then, when its result is there, ``<step> done``."""
    said = [index for index, message in enumerate(request.messages) if isinstance(message, UserMessage)]
    newest = request.messages[said[-1]]
    assert isinstance(newest, UserMessage)
    step = text_of(newest.content).split()[0]
    if any(isinstance(message, ToolResult) for message in request.messages[said[-1] :]):
        return [0.5, *say(f"{step} done")]
    return calls(call("look", id=""), text=f"{step}ing")


@pytest.fixture
def flow(stage: Any) -> Any:
    """Three steps, each of which calls a tool."""
    return prepared(stage)


def prepared(stage: Any) -> Any:
    stage.tool("look", takes=1, mutating=True)
    stage.pipeline(*STEPS)
    stage.answers(answer)
    return stage


def begun(requests: list[ChatRequest]) -> list[str]:
    """The steps that requests were made for, in order, each as often as its prompt was given."""
    given = [
        [text_of(message.content) for message in request.messages if isinstance(message, UserMessage)]
        for request in requests
    ]
    return [text.split()[0] for text in (given[-1] if given else []) if text in PROMPTS]


def finished(events: Any) -> list[str]:
    """The steps whose outcome is stored."""
    facts = [event.payload for event in events if isinstance(event.payload, Metadata)]
    return [fact.value["step"] for fact in facts if fact.key == "step_ended"]


async def test_a_cancelled_pipeline_goes_on_in_its_session(flow: Any, autojump_clock: Any) -> None:
    """Cancelled in its second step: that one begins again, the first's outcome is used, the input stands once."""
    async with flow.session() as session:
        turn = await session.send_message("book")
        with trio.move_on_after(2):
            await turn.result()
        turn.cancel()
        cancelled = await turn.result()
        turn = await session.continue_pipeline()
        events = [event.payload async for event in turn]

    assert TurnStatus.CANCELLED == cancelled.status
    assert ["points", "cards"] == [event.step for event in events if isinstance(event, StepStart)]
    assert [(1, "points done"), (2, "cards done")] == [
        (event.index, event.output) for event in events if isinstance(event, StepEnd)
    ]
    assert (TurnStatus.COMPLETED, "cards done") == (events[-1].status, events[-1].text)
    said = flow.lines(session.history)
    assert [1, 1, 2, 1] == [said.count(f"user: {text}") for text in ("book", *PROMPTS)]


async def test_a_failed_pipeline_goes_on(flow: Any, autojump_clock: Any) -> None:
    """A step that failed has no outcome: it is the one to begin with."""
    flow.configure(retry=RetryPolicy(attempts=1))
    failing = iter([True, False])

    def break_once(request: ChatRequest) -> list[Any]:
        newest = [m for m in request.messages if isinstance(m, UserMessage)][-1]
        return (
            [ProviderError("gone")]
            if text_of(newest.content) in PROMPTS[1:] and next(failing, False)
            else answer(request)
        )

    flow.answers(break_once)
    async with flow.session() as session:
        failed = await flow.turn(session, "book")
        result = await (await session.continue_pipeline()).result()

    assert "step 'points' failed: gone" == failed.error.message
    assert (TurnStatus.COMPLETED, "cards done") == (result.status, result.text)
    assert list(NAMES) == finished(flow.store.events(session.id))


async def test_it_goes_on_as_often_as_it_is_stopped(flow: Any, autojump_clock: Any) -> None:
    """Stopped in each step, in one session and in resumed ones, every step is finished once."""
    async with flow.session() as session:
        turn = await session.send_message("book")
        await stop_after(turn, 0.1)
        await stop_after(await session.continue_pipeline(), 2)
    async with flow.resumed(session.id) as session:
        await stop_after(await session.continue_pipeline(), 2)
        result = await (await session.continue_pipeline()).result()

    assert (TurnStatus.COMPLETED, "cards done") == (result.status, result.text)
    assert list(NAMES) == finished(flow.store.events(session.id))


async def stop_after(turn: Any, seconds: float) -> None:
    """Cancel a turn so many seconds from now."""
    await trio.sleep(seconds)
    assert turn.cancel()
    assert TurnStatus.CANCELLED == (await turn.result()).status


@pytest.mark.parametrize("resumed", [False, True])
async def test_without_an_unfinished_pipeline_there_is_nothing_to_go_on_with(
    flow: Any, autojump_clock: Any, resumed: bool
) -> None:
    """Before the first message, after a completed pipeline, and in a session without one: INVALID_INPUT."""
    async with flow.session() as session:
        with pytest.raises(InvalidInput, match="no pipeline of this session is unfinished"):
            await session.continue_pipeline()
        await flow.turn(session, "book")
        if not resumed:
            with pytest.raises(InvalidInput, match="send a message instead"):
                await session.continue_pipeline()
    if resumed:
        async with flow.resumed(session.id) as session:
            with pytest.raises(InvalidInput, match="send a message instead"):
                await session.continue_pipeline()
    async with flow.session(domain=None) as session:
        await flow.turn(session, "book")
        with pytest.raises(InvalidInput):
            await session.continue_pipeline()


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_message_after_a_stopped_pipeline_begins_a_new_one(
    flow: Any, autojump_clock: Any, resumed: bool
) -> None:
    """What there is to go on with is the newest message's pipeline, even if it was stopped before its first step."""

    async def hold(event: Any) -> None:
        if text_of(event.user_input.content) == "other":
            await trio.sleep(5)

    flow.on(TurnStart, hold)
    async with flow.session() as session:
        await stop_after(await session.send_message("book"), 2)
        await stop_after(await session.send_message("other"), 1)
        if not resumed:
            result = await (await session.continue_pipeline()).result()
    if resumed:
        async with flow.resumed(session.id) as session:
            result = await (await session.continue_pipeline()).result()

    assert (TurnStatus.COMPLETED, "cards done") == (result.status, result.text)
    assert "read other" in flow.asked()
    assert ["read", "read", "points", "cards"] == finished(flow.store.events(session.id))


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_refused_message_leaves_the_stopped_pipeline_as_it_was(
    flow: Any, autojump_clock: Any, resumed: bool
) -> None:
    """An input that a TurnStart hook refused never happened: the pipeline before it can still go on."""

    async def refuse(event: Any) -> Any:
        return youyou.Abort("not now") if text_of(event.user_input.content) == "other" else None

    flow.on(TurnStart, refuse)
    async with flow.session() as session:
        await stop_after(await session.send_message("book"), 2)
        assert TurnStatus.FAILED == (await flow.turn(session, "other")).status
        if not resumed:
            result = await (await session.continue_pipeline()).result()
    if resumed:
        async with flow.resumed(session.id) as session:
            result = await (await session.continue_pipeline()).result()

    assert (TurnStatus.COMPLETED, "cards done") == (result.status, result.text)
    assert list(NAMES) == finished(flow.store.events(session.id))


async def test_after_a_crash_at_every_stored_event(flow: Any, autojump_clock: Any) -> None:
    """Whatever part of the log survives: finished steps are not run again, the others are, and the turn completes."""
    async with flow.session() as session:
        await flow.turn(session, "book")
    log = flow.store.events(session.id)
    continued = 0
    for kept in range(1, len(log) + 1):
        flow.store = InMemorySessionStorage()
        await flow.store.save_events(session.id, log[:kept])
        flow.answers(answer)
        done = finished(log[:kept])
        has_input = any(isinstance(event.payload, UserMessage) for event in log[:kept])
        async with flow.resumed(session.id) as again:
            if kept == len(log) or not has_input:
                with pytest.raises(InvalidInput):
                    await again.continue_pipeline()
                continue
            result = await (await again.continue_pipeline()).result()

        continued += 1
        assert (kept, TurnStatus.COMPLETED, "cards done") == (kept, result.status, result.text)
        assert (kept, list(NAMES)) == (kept, finished(flow.store.events(session.id)))
        left = NAMES[len(done) :]
        assert (kept, [name for name in left for _ in range(2)]) == (
            kept, [text.split()[0] for text in flow.asked()]
        )  # fmt: skip
        assert [] == flow.provider.violations
    assert continued > 20


async def test_the_resumed_turn_knows_no_session_start(flow: Any, autojump_clock: Any) -> None:
    """Going on after a resume runs TurnStart hooks for the turn, and no SessionStart hook for the session."""
    seen: list[str] = []

    async def note(event: Any) -> None:
        seen.append(type(event).__name__)

    flow.on(SessionStart, note)
    async with flow.session() as session:
        await stop_after(await session.send_message("book"), 2)
    async with flow.resumed(session.id) as session:
        await (await session.continue_pipeline()).result()

    assert ["SessionStart"] == seen


@pytest.mark.long
@pytest.mark.parametrize("resumed", [False, True], ids=["same session", "resumed"])
def test_cancelled_after_every_step(make_stage: Any, resumed: bool) -> None:
    """At every step of the scheduler: one terminal event, finished steps are kept, the rest is done later."""

    async def scenario(sim: Simulation) -> None:
        randomness.set(sim.random)
        stage = prepared(make_stage())
        sim.at_end(lambda: not stage.provider.violations, "every request is sendable")
        async with stage.session() as session:
            turn = await session.send_message("book")
            sim.action("turn", turn.cancel, done=lambda: turn.status.value in ("cancelled", "completed"))
            seen = [event.payload async for event in turn]
            told = [event.step for event in seen if isinstance(event, StepEnd) and event.success]
            assert 1 == sum(isinstance(each, youyou.TurnComplete | youyou.TurnCancelled) for each in seen)
            assert told == finished(stage.store.events(session.id))
            if not resumed:
                await go_on(session, turn, told)
        if resumed:
            async with stage.resumed(session.id) as again:
                await go_on(again, turn, told)
        assert list(NAMES) == finished(stage.store.events(session.id))

    async def go_on(session: youyou.Session, turn: youyou.RunningTurn, told: list[str]) -> None:
        if (await turn.result()).status is TurnStatus.COMPLETED:
            return
        again = await session.continue_pipeline()
        events = [event.payload async for event in again]
        assert list(NAMES[len(told) :]) == [event.step for event in events if isinstance(event, StepStart)]
        assert (TurnStatus.COMPLETED, "cards done") == (events[-1].status, events[-1].text)

    report = sweep(scenario, cancel="turn")

    report.assert_ok()
    assert report.runs > 120


async def test_the_prompt_of_a_failed_step_does_not_pile_up(stage: Any, autojump_clock: object) -> None:
    """Tried again within the turn and in turns that go on: it stands in history once."""
    broken = [True]
    stage.pipeline(Step("read", "read {input}", retries=2), Step("points", "points of {steps.read}"))
    stage.answers(lambda request: [ProviderError("down")] if broken[0] else say("done"))
    async with stage.session() as session:
        failed = await (await session.send_message("book")).result()
        for _ in range(3):
            failed = await (await session.continue_pipeline()).result()
        prompts = [text_of(each.content) for each in session.history if isinstance(each, UserMessage)]
        broken[0] = False
        result = await (await session.continue_pipeline()).result()
        all_prompts = [text_of(each.content) for each in session.history if isinstance(each, UserMessage)]

    assert (TurnStatus.FAILED, TurnStatus.COMPLETED) == (failed.status, result.status)
    assert 1 == prompts.count("read book")
    assert 1 == all_prompts.count("read book") == all_prompts.count("points of done")

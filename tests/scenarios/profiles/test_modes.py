"""A turn as its mode says: rounds until no calls, one request, or fixed steps (semantics 13, L2)."""

from __future__ import annotations

from typing import Any

import pytest
import youyou
from youyou import (
    Budget,
    Done,
    ErrorCode,
    ProviderError,
    ReAct,
    RetryPolicy,
    RetryScheduled,
    SingleShot,
    Step,
    StepEnd,
    StepStart,
    StopReason,
    TextDelta,
    TurnComplete,
    TurnStatus,
)
from youyou.testing import call, calls, say

BUSY = ProviderError("busy")


def steps_of(events: list[Any]) -> list[Any]:
    """The events of steps, and the terminal one's status."""
    told = [event.payload for event in events]
    return [
        payload.status if isinstance(payload, TurnComplete) else payload
        for payload in told
        if isinstance(payload, StepStart | StepEnd | TurnComplete)
    ]


async def test_react_goes_on_until_the_model_asks_for_no_more(stage: Any, autojump_clock: Any) -> None:
    """Each round with calls is followed by another one; the turn's text is the last round's."""
    stage.tool("look")
    stage.profile("free", mode=ReAct())
    stage.says(calls("look", text="let me see"), calls(call("look", id="again")), say("seen"))

    async with stage.session(skill="free") as session:
        result = await stage.turn(session)

    assert (TurnStatus.COMPLETED, "seen") == (result.status, result.text)
    assert {"look": 2} == stage.runs


async def test_single_shot_is_one_request_without_tools(stage: Any, autojump_clock: Any) -> None:
    """No tool is offered; calls that come all the same do not run and bring no second request."""
    stage.tool("look")
    stage.profile("once", mode=SingleShot())
    stage.says(calls("look", text="I would look"))

    async with stage.session(skill="once") as session:
        result = await stage.turn(session)

    assert [()] == stage.offered()
    assert (TurnStatus.COMPLETED, "I would look") == (result.status, result.text)
    assert {} == stage.runs


@pytest.mark.parametrize("text", ["I would look", ""])
async def test_a_single_shot_step_is_one_request_too(stage: Any, autojump_clock: Any, text: str) -> None:
    """Calls in it bring no second request; its own text is its output, even an empty one, not an earlier text."""
    stage.tool("look")
    stage.pipeline(Step("a", "x"), Step("b", "y", mode=SingleShot()), Step("c", "z: {steps.b}"))
    stage.says(say("before"), calls("look", text=text), say("done"))

    async with stage.session() as session:
        result = await stage.turn(session)

    assert ["x", "y", f"z: {text}"] == stage.asked()
    assert (TurnStatus.COMPLETED, {}) == (result.status, stage.runs)


@pytest.mark.parametrize(
    ("mode", "attempts"),
    [(SingleShot(), 3), (SingleShot(RetryPolicy(2, 100, jitter=0.0)), 2), (SingleShot(RetryPolicy(1)), 1)],
)
async def test_single_shot_retries_by_its_policy(
    stage: Any, autojump_clock: Any, mode: SingleShot, attempts: int
) -> None:
    """The mode's own policy, or the agent's; each retry is told, the last failure fails the turn."""
    stage.profile("once", mode=mode)
    stage.says(*[[BUSY] for _ in range(attempts)])

    async with stage.session(skill="once") as session:
        turn = await session.send_message("go")
        events = [event.payload async for event in turn]

    assert attempts == len(stage.requests)
    retries = [(each.attempt, each.delay_ms) for each in events if isinstance(each, RetryScheduled)]
    base = (mode.retry or stage.config.retry).base_ms
    assert [(number, base * 2 ** (number - 1)) for number in range(1, attempts)] == retries
    assert (TurnStatus.FAILED, BUSY) == (events[-1].status, events[-1].error)


async def test_single_shot_does_not_repeat_what_was_seen(stage: Any, autojump_clock: Any) -> None:
    """After the first word a failure ends the turn (semantics 4)."""
    stage.profile("once", mode=SingleShot())
    stage.says([TextDelta("hel"), BUSY])

    async with stage.session(skill="once") as session:
        result = await stage.turn(session)

    assert (TurnStatus.FAILED, "hel") == (result.status, result.text)
    assert 1 == len(stage.requests)


async def test_a_pipeline_takes_its_steps_in_order(stage: Any, autojump_clock: Any) -> None:
    """Each step is told of, sees the input and what the steps before it came to, and the last one's text is the turn's.

    History holds the user's message, then each step's prompt and its outcome.
    """
    stage.tool("look", takes=1)
    stage.pipeline(
        Step("read", "Read {input}.", output="text"),
        Step("cut", "Cut {steps.text} of {input}"),
        Step("join", "Join {steps.cut}, not {steps.text}: {rest}"),
    )
    stage.says(calls("look"), say("words"), say("{input}"), say("done"))

    async with stage.session() as session:
        turn = await session.send_message("book")
        events = [event async for event in turn]

    assert [
        StepStart("read", 0), StepEnd("read", 0, True, "words"),
        StepStart("cut", 1), StepEnd("cut", 1, True, "{input}"),
        StepStart("join", 2), StepEnd("join", 2, True, "done"),
        TurnStatus.COMPLETED,
    ] == steps_of(events)  # fmt: skip
    assert ["Read book.", "Read book.", "Cut words of book", "Join {input}, not words: {rest}"] == stage.asked()
    assert [
        "user: book",
        "user: Read book.", "call look", "ok look", "assistant: words",
        "user: Cut words of book", "assistant: {input}",
        "user: Join {input}, not words: {rest}", "assistant: done",
    ] == stage.lines(session.history)  # fmt: skip
    assert "done" == (await turn.result()).text


async def test_a_step_has_its_own_tools_mode_and_budget(stage: Any, autojump_clock: Any) -> None:
    """Tools: those it names, even beyond the profile's, or else the profile's; a single shot has none."""
    stage.tool("look")
    stage.tool("save")
    stage.pipeline(
        Step("own", "a", tools=("save",)),
        Step("none", "b", tools=()),
        Step("profile", "c"),
        Step("once", "d", mode=SingleShot()),
        tools=("look",),
    )
    stage.says(say("1"), say("2"), say("3"), say("4"))

    async with stage.session() as session:
        await stage.turn(session)

    assert [("save",), (), ("look",), ()] == stage.offered()


@pytest.mark.parametrize(
    "step",
    [
        Step("a", "x", budget=Budget(max_tool_calls=1)),
        Step("a", "x", mode=ReAct(Budget(max_tool_calls=1))),
        Step("a", "x", mode=ReAct(Budget(max_tool_calls=9)), budget=Budget(max_tool_calls=1)),
        Step("a", "x", mode=ReAct(Budget(max_rounds=1))),
    ],
)
async def test_a_steps_budget_is_its_own(stage: Any, autojump_clock: Any, step: Step) -> None:
    """A step's limit holds within that step, and a step after it starts afresh."""
    stage.tool("look")
    once = [] if step.mode.budget and step.mode.budget.max_rounds else [calls("look")]
    stage.pipeline(Step("before", "y", budget=Budget(max_tool_calls=1)), step)
    stage.says(calls(call("look", id="before")), say("before"), *once, calls(call("look", id="late")))

    async with stage.session() as session:
        result = await stage.turn(session)

    assert ErrorCode.MAX_TOOL_CALLS_EXCEEDED == result.error.code
    assert result.error.message.startswith("step 'a' failed: ")
    assert {"look": 1 + len(once)} == stage.runs


async def test_the_turns_limit_holds_over_all_steps(stage: Any, autojump_clock: Any) -> None:
    """Steps together have no more calls than a turn may have."""
    stage.tool("look")
    stage.configure(max_tool_calls_per_turn=1)
    stage.pipeline(Step("a", "x"), Step("b", "y"))
    stage.says(calls("look"), say("one"), calls(call("look", id="late")))

    async with stage.session() as session:
        result = await stage.turn(session)

    assert ErrorCode.MAX_TOOL_CALLS_EXCEEDED == result.error.code
    assert {"look": 1} == stage.runs


async def test_a_failed_step_is_tried_again(stage: Any, autojump_clock: Any) -> None:
    """``retries`` further tries, each with the step's prompt; one success is enough, and the steps before it stay."""
    stage.configure(retry=RetryPolicy(attempts=1))
    stage.pipeline(Step("a", "first"), Step("b", "second", retries=2), Step("c", "third {steps.b}"))
    stage.says(say("1"), [BUSY], [TextDelta("hal"), BUSY], say("2"), say("3"))

    async with stage.session() as session:
        turn = await session.send_message("go")
        events = [event async for event in turn]

    assert ["first", "second", "second", "second", "third 2"] == stage.asked()
    assert [StepStart("b", 1), StepEnd("b", 1, True, "2")] == steps_of(events)[2:4]
    assert TurnStatus.COMPLETED == events[-1].payload.status


async def test_a_step_that_fails_for_good_fails_the_turn_by_name(stage: Any, autojump_clock: Any) -> None:
    """After the last try the turn fails with the step's error and its name; later steps do not begin."""
    stage.configure(retry=RetryPolicy(attempts=1))
    stage.pipeline(Step("a", "first"), Step("b", "second", retries=1), Step("c", "third"))
    stage.says(say("1"), [BUSY], [ProviderError("still busy")])

    async with stage.session() as session:
        turn = await session.send_message("go")
        events = [event async for event in turn]

    assert [
        StepStart("a", 0), StepEnd("a", 0, True, "1"),
        StepStart("b", 1), StepEnd("b", 1, False, ""),
        TurnStatus.FAILED,
    ] == steps_of(events)  # fmt: skip
    error = events[-1].payload.error
    assert (ErrorCode.PROVIDER_ERROR, "step 'b' failed: still busy") == (error.code, error.message)
    assert [True] == [fact["success"] for fact in stage.facts("step_ended", session.id)]


async def test_only_the_last_step_completes_the_turn(stage: Any, autojump_clock: Any) -> None:
    """A cancel between the last word of one step and the first of the next is still a cancel."""
    stage.pipeline(Step("a", "first"), Step("b", "second"))
    stage.says(say("1"), [5.0, *say("2")])

    async with stage.session() as session:
        turn = await session.send_message("go")
        async for event in turn:
            if isinstance(event.payload, StepEnd):
                assert turn.cancel()
    result = await turn.result()

    assert TurnStatus.CANCELLED == result.status
    assert [("a", "1")] == [(fact["step"], fact["output"]) for fact in stage.facts("step_ended", session.id)]


async def test_a_step_outcome_is_stored_before_the_next_request(stage: Any, autojump_clock: Any) -> None:
    """When the model is asked for the next step, the storage has acknowledged the one before."""
    stage.pipeline(Step("a", "first"), Step("b", "second"), Step("c", "third"))
    stored: list[int] = []
    ask = stage.provider.chat

    def chat(request: youyou.ChatRequest) -> Any:
        stored.append(len(stage.facts("step_ended", next(iter(stage.store._sessions)))))
        return ask(request)

    stage.provider.chat = chat
    stage.store.delay = 0.5
    stage.says(say("1"), say("2"), say("3"))

    async with stage.session() as session:
        await stage.turn(session)

    assert [0, 1, 2] == stored
    assert [
        {"step": "a", "index": 0, "success": True, "output": "1"},
        {"step": "b", "index": 1, "success": True, "output": "2"},
        {"step": "c", "index": 2, "success": True, "output": "3"},
    ] == [{key: fact[key] for key in ("step", "index", "success", "output")}
          for fact in stage.facts("step_ended", session.id)]  # fmt: skip


async def test_an_empty_answer_is_asked_for_once_more_in_each_mode(stage: Any, autojump_clock: Any) -> None:
    """Neither text nor calls: one more request, also for a single shot and in a step (semantics 4)."""
    stage.profile("once", mode=SingleShot())
    stage.pipeline(Step("a", "x", mode=SingleShot()))
    for skill in ("once", "flow"):
        stage.says([Done()], say("here"))
        async with stage.session(skill=skill) as session:
            result = await stage.turn(session)
        assert (skill, TurnStatus.COMPLETED, "here") == (skill, result.status, result.text)


async def test_a_step_cut_at_its_length_keeps_what_it_said(stage: Any, autojump_clock: Any) -> None:
    """An answer that stops for length without calls is the step's output."""
    stage.pipeline(Step("a", "x"), Step("b", "{steps.a}"))
    stage.says([TextDelta("hal"), Done(None, StopReason.LENGTH)], say("done"))

    async with stage.session() as session:
        await stage.turn(session)

    assert ["x", "hal"] == stage.asked()


async def test_a_model_without_tools_gets_none_in_steps(stage: Any, autojump_clock: Any) -> None:
    """A step's own tools are not offered to a model that takes none."""
    model = youyou.ModelInfo("scripted", "Plain", 100_000, youyou.ModelCapabilities(tool_use=False))
    stage.provider._models = (model,)
    stage.tool("look")
    stage.pipeline(Step("a", "x", tools=("look",)))
    stage.says(say("done"))

    async with stage.session() as session:
        await stage.turn(session)

    assert [()] == stage.offered()

"""Turns whose answer must be something (semantics 13.1): repair rounds, stops, tools, steering, pipelines, resume."""

from __future__ import annotations

from contextlib import asynccontextmanager

import attrs
import pytest
import trio
from youyou import (
    AgentProfile,
    Budget,
    Done,
    InvalidConfig,
    InvalidInput,
    InvalidOutput,
    ModelCapabilities,
    OutputRejected,
    Pipeline,
    ProfileKind,
    ProviderError,
    ReAct,
    SessionConfig,
    SingleShot,
    Step,
    StopReason,
    TextDelta,
    TurnStatus,
)
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, calls, say

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WRONG, RIGHT = '{"city": 7}', '{"city": "Oslo"}'


@attrs.frozen
class City:
    """A city."""

    city: str


@attrs.frozen
class Broken:
    """A class with a mistake in it."""

    city: str

    def __attrs_post_init__(self) -> None:
        raise ZeroDivisionError(self.city)


@asynccontextmanager
async def working(stage, mode):
    """A session that works in this mode, and whose answers are cities."""
    profile = AgentProfile("job", ProfileKind.SKILL, "Job", "A job.", mode=mode)
    builder = stage.builder().register_profile(profile)
    async with builder.build() as agent, agent.new_session(SessionConfig(skill="job"), output=City) as session:
        yield session


async def test_an_answer_that_fits_completes_the_turn(stage, autojump_clock):
    """The request carries the schema, the result the instance."""
    stage.says(say('{"city": ', '"Oslo"}'))
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=City)).result()

    assert (TurnStatus.COMPLETED, City("Oslo"), '{"city": "Oslo"}') == (result.status, result.output, result.text)
    assert False is stage.provider.requests[0].response_schema["additionalProperties"]


async def test_an_answer_that_does_not_fit_is_sent_back_with_the_validators_words(stage, autojump_clock):
    """Both stay in history and in the store; the host learns that what it has shown is void."""
    stage.says(say(WRONG), say(RIGHT))
    async with stage.session() as session:
        turn = await session.send_message("where?", output=City)
        events = await stage.events(turn)
        lines = stage.lines(session.history)

    words = '- city: the value is not of type "string"; expected {"type":"string"}'
    assert [OutputRejected(1, words)] == [event for event in events if isinstance(event, OutputRejected)]
    assert [type(event).__name__ for event in events] == ["TextDelta", "OutputRejected", "TextDelta", "TurnComplete"]
    assert City("Oslo") == (await turn.result()).output
    assert lines == stage.stored() == ["user: where?", f"assistant: {WRONG}", lines[2], f"assistant: {RIGHT}"]
    assert lines[2].startswith("note: [This answer does not fit") and lines[2].endswith(words)


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_the_repair_rounds_are_bounded(stage, autojump_clock, most):
    """Then the turn fails; its last answer is kept, and the session goes on."""
    stage.configure(max_output_repairs=most)
    stage.says(*[say(WRONG)] * (most + 1), say("hello"))
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=City)).result()
        free = await (await session.send_message("hello")).result()

    assert (TurnStatus.FAILED, None, WRONG) == (result.status, result.output, result.text)
    assert isinstance(result.error, InvalidOutput) and not result.error.retryable
    assert f"after {most} repair rounds" in result.error.message and "- city: " in result.error.message
    assert most + 1 == result.usage.requests
    assert ("hello", None, None) == (free.text, free.output, stage.provider.requests[-1].response_schema)


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.CONTENT_FILTER, StopReason.REFUSAL])
async def test_an_answer_that_was_cut_or_refused_is_not_asked_for_again(stage, autojump_clock, reason):
    """The same request would end in the same way."""
    stage.says([TextDelta('{"city": '), Done(stop_reason=reason)])
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=City)).result()

    assert (InvalidOutput, 1) == (type(result.error), result.usage.requests)


async def test_a_cut_answer_that_fits_all_the_same_completes_the_turn(stage, autojump_clock):
    """What counts is the answer."""
    stage.says([TextDelta(RIGHT), Done(stop_reason=StopReason.LENGTH)])
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=City)).result()

    assert (City("Oslo"), StopReason.LENGTH) == (result.output, result.stop_reason)


async def test_a_class_that_raises_fails_the_turn_at_once(stage, autojump_clock):
    """Its exception is the cause of the error."""
    stage.says(say(RIGHT))
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=Broken)).result()

    assert (InvalidOutput, ZeroDivisionError) == (type(result.error), type(result.error.__cause__))


async def test_a_cancel_in_a_repair_round_is_a_cancel_in_a_stream(stage, autojump_clock):
    """The rejected answer, its note and the beginning of the next one stay; nothing is the output."""
    stage.says(say(WRONG), [TextDelta('{"ci'), 60.0, TextDelta('ty": "Oslo"}'), Done()])
    async with stage.session() as session:
        turn = await session.send_message("where?", output=City)
        await trio.sleep(1)
        assert turn.cancel()
        result = await turn.result()
        lines = stage.lines(session.history)

    assert (TurnStatus.CANCELLED, None) == (result.status, result.output)
    assert [f"assistant: {WRONG}", lines[2], 'assistant: {"ci [cancelled]'] == lines[1:]


async def test_a_cancel_while_a_stream_with_a_misfit_closes_cancels_the_turn(stage, autojump_clock):
    """Nothing was completed yet."""

    class Slow(StrictProvider):
        """Takes a second to close."""

        def chat(self, request):
            stream = super().chat(request)
            leave = stream.__aexit__

            class Held:
                """The stream, held open at its end."""

                __aenter__ = staticmethod(stream.__aenter__)

                async def __aexit__(self, *exc):
                    await leave(*exc)
                    await trio.sleep(1)

            return Held()

    stage.provider = Slow([say(WRONG)])
    async with stage.session() as session:
        turn = await session.send_message("where?", output=City)
        await trio.sleep(0.5)
        turn.cancel()

        assert TurnStatus.CANCELLED is (await turn.result()).status


async def test_only_the_last_answer_must_fit(stage, autojump_clock):
    """What the model says beside its calls is free, and a repair round may call tools again."""
    stage.tool("look")
    stage.says(calls("look", text="let me see"), say(WRONG), calls("look", text="again"), say(RIGHT))
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=City)).result()

    assert (City("Oslo"), 4, 2) == (result.output, result.usage.requests, result.usage.tool_calls)
    assert all(request.tools for request in stage.provider.requests)


async def test_an_answer_before_a_steered_message_is_not_the_last(stage, autojump_clock):
    """It is not validated, and no repair round is spent on it."""
    stage.says([TextDelta(WRONG), 2.0, Done()], say(RIGHT))
    async with stage.session() as session:
        turn = await session.send_message("where?", output=City)
        await trio.sleep(1)
        assert turn.steer("in Norway")
        events = await stage.events(turn)

    assert [] == [event for event in events if isinstance(event, OutputRejected)]
    assert City("Oslo") == (await turn.result()).output


async def test_a_failed_request_in_a_repair_round_is_retried(stage, autojump_clock):
    """The two bounds do not mix."""
    stage.says(say(WRONG), [ProviderError("busy", retryable=True)], say(RIGHT))
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=City)).result()

    assert (City("Oslo"), 1) == (result.output, result.usage.retries)


async def test_what_was_read_before_a_failure_is_not_the_output(stage, autojump_clock):
    """A steered turn may read one answer that fits, and then fail."""
    stage.says([TextDelta(RIGHT), 2.0, Done()], [ProviderError("gone", retryable=False)])
    async with stage.session() as session:
        turn = await session.send_message("where?", output=City)
        await trio.sleep(1)
        turn.steer("in Norway")
        result = await turn.result()

    assert (TurnStatus.FAILED, None) == (result.status, result.output)


async def test_max_rounds_bounds_repair_rounds_too(stage, autojump_clock):
    """A budget of one round leaves none for a repair."""
    stage.says(say(WRONG))
    async with working(stage, ReAct(budget=Budget(max_rounds=1))) as session:
        result = await (await session.send_message("where?")).result()

    assert (InvalidOutput, 1) == (type(result.error), result.usage.requests)


async def test_a_single_shot_is_repaired(stage, autojump_clock):
    """Each repair is a request of its own."""
    stage.says(say(WRONG), say(RIGHT))
    async with working(stage, SingleShot()) as session:
        result = await (await session.send_message("where?")).result()

    assert (City("Oslo"), 2) == (result.output, result.usage.requests)


async def test_only_the_last_step_of_a_pipeline_must_fit(stage, autojump_clock):
    """Its requests alone carry the schema."""
    stage.says(say("some notes"), say(WRONG), say(RIGHT))
    pipeline = Pipeline((Step("read", "Read: {input}"), Step("answer", "Answer: {steps.read}")))
    async with working(stage, pipeline) as session:
        result = await (await session.send_message("a text")).result()

    assert City("Oslo") == result.output
    assert [False, True, True] == [r.response_schema is not None for r in stage.provider.requests]


async def test_a_model_without_such_an_api_is_told_the_schema(stage, autojump_clock):
    """In the system prompt of the requests that need it."""
    model = attrs.evolve(SCRIPTED_MODEL, capabilities=ModelCapabilities(structured_output=False))
    stage.provider = StrictProvider([say(RIGHT), say("hello")], models=[model])
    async with stage.session() as session:
        result = await (await session.send_message("where?", output=City)).result()
        await (await session.send_message("hello")).result()

    told, free = (request.system.dynamic for request in stage.provider.requests)
    assert City("Oslo") == result.output
    assert "<answer_format>" in told and '"required":["city"]' in told
    assert "answer_format" not in free


async def test_a_sessions_schema_alone_is_enforced(stage, autojump_clock):
    """Answers are read-only JSON data; a message may ask for something else."""
    stage.says(say(WRONG), say('{"city": "Oslo", "more": []}'), say(RIGHT))
    async with stage.agent() as agent, agent.new_session(SessionConfig(response_schema=CITY)) as session:
        data = await (await session.send_message("where?")).result()
        typed = await (await session.send_message("where?", output=City)).result()

    assert {"city": "Oslo", "more": []} == data.output
    assert City("Oslo") == typed.output
    with pytest.raises(TypeError, match="read-only"):
        data.output["city"] = "Rome"


async def test_a_schema_is_enforced_after_a_resume(stage, autojump_clock):
    """As JSON data; with the class, as its instances again."""
    stage.says(say(RIGHT), say(WRONG), say(RIGHT), say(WRONG), say(RIGHT))
    outputs = []
    async with stage.agent() as agent:
        async with agent.new_session(output=City) as session:
            outputs.append((await (await session.send_message("where?")).result()).output)
        async with agent.resume_session(session.id) as session:
            outputs.append((await (await session.send_message("where?")).result()).output)
        async with agent.resume_session(session.id, output=City) as session:
            outputs.append((await (await session.send_message("where?")).result()).output)

    assert [City("Oslo"), {"city": "Oslo"}, City("Oslo")] == outputs


async def test_what_cannot_be_asked_for_is_refused_before_anything_happens(stage, autojump_clock):
    """Nothing is stored, no session is open, no turn runs."""
    async with stage.agent() as agent:
        with pytest.raises(InvalidInput, match="with the value in a field"):
            await agent.new_session(output=int)
        with pytest.raises(InvalidConfig, match="response_schema"):
            await agent.new_session(SessionConfig(response_schema={"type": "city"}))
        with pytest.raises(InvalidConfig, match="give one of them"):
            await agent.new_session(SessionConfig(response_schema=CITY), output=City)
        async with agent.new_session() as session:
            with pytest.raises(InvalidInput, match="output is a City"):
                await session.send_message("where?", output=City("Oslo"))
            assert () == tuple(session.history)

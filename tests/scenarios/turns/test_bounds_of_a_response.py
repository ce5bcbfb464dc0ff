"""What bounds a response, also where its end comes at once, and a model that pauses (semantics 4)."""

from __future__ import annotations

import pytest
from youyou import Done, StopReason, TextDelta, ToolCallDelta, TurnStatus


async def test_a_response_that_is_cut_has_failed_even_if_its_end_follows_at_once(stage, autojump_clock):
    """What is within the bound is kept; half an answer must not pass for a whole one."""
    stage.configure(max_response_chars=10)
    stage.says([TextDelta("x" * 12), Done()])
    async with stage.session() as session:
        result = await stage.turn(session)

    assert (TurnStatus.FAILED, "x" * 10) == (result.status, result.text)
    assert "longer than 10 characters" in result.error.message


async def test_a_response_of_exactly_the_bound_is_whole(stage, autojump_clock):
    """The bound is the most that is taken."""
    stage.configure(max_response_chars=10)
    stage.says([TextDelta("x" * 10), Done()])
    async with stage.session() as session:
        result = await stage.turn(session)

    assert (TurnStatus.COMPLETED, "x" * 10) == (result.status, result.text)


async def test_a_call_that_grows_too_long_is_cut_while_it_is_written(stage, autojump_clock):
    """Not when it is whole: it may never be."""
    stage.configure(max_response_chars=10)
    stage.says([ToolCallDelta("c", "write", "x" * 6), ToolCallDelta("c", "write", "x" * 6), 60.0, Done()])
    async with stage.session() as session:
        with stage.takes(0):
            result = await stage.turn(session)

    assert "longer than 10 characters" in result.error.message


@pytest.mark.parametrize("limit", [1, 3])
async def test_a_model_that_pauses_forever_is_bounded_as_one_that_calls_forever(limit, stage, autojump_clock):
    """By the number of calls of a turn."""
    stage.configure(max_tool_calls_per_turn=limit)
    stage.answers(lambda _: [TextDelta("wait"), Done(None, StopReason.PAUSE)])
    async with stage.session() as session:
        result = await stage.turn(session)

    assert (limit, TurnStatus.FAILED) == (len(stage.requests), result.status)
    assert f"paused {limit} times" in result.error.message

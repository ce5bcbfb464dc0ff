"""What a stored session says and nobody can read is told, and the rest of it counts (semantics 7)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from youyou import ErrorEvent, Metadata, SessionConfig, SessionEvent, TurnComplete, UserMessage
from youyou.core.config import Notices
from youyou.core.resume import resume
from youyou.messages.events import TurnStatus
from youyou.testing import say

TURN = {"turn_id": "1", "number": 1, "sequence": 3}


def facts(*payloads):
    """What a log of these resumes to."""
    now = datetime.now(UTC)
    return resume([SessionEvent(seq, now, payload) for seq, payload in enumerate(payloads, 1)], Notices())


def test_the_other_fields_of_a_configuration_are_kept():
    """One that is of a later version, or damaged, does not take the model away."""
    stored = {"model_id": "m", "max_tokens": "many", "temperature": 0.5, "environment": 7}
    resumed = facts(Metadata("session_config", stored))

    assert SessionConfig(model_id="m", temperature=0.5) == resumed.config
    assert {"max_tokens of session_config is 'many'", "environment of session_config is 7"} == set(resumed.problems)


def test_the_other_fields_of_a_usage_report_are_kept():
    """Added up all the same."""
    ended = {**TURN, "status": "completed", "usage": {"input_tokens": 5, "output_tokens": "x"}}
    resumed = facts(Metadata("turn_started", TURN), UserMessage("hi"), Metadata("turn_ended", ended))

    assert (5, 0) == (resumed.usage.input_tokens, resumed.usage.output_tokens)
    assert ("output_tokens of usage is 'x'",) == resumed.problems


@pytest.mark.parametrize("status", [None, "ended", 7])
def test_a_turn_without_its_status_has_failed(status):
    """It ended; how is not known."""
    ended = {**TURN, "status": status, "usage": None}
    resumed = facts(Metadata("turn_started", TURN), UserMessage("hi"), Metadata("turn_ended", ended))

    assert TurnStatus.FAILED == resumed.last_turn.status
    assert (f"status is {status!r}",) == resumed.problems


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("session_config", []),
        ("title", 7),
        ("compaction", {"kind": "summary"}),
        ("compaction", None),
        ("turn_started", {}),
        ("turn_ended", "x"),
        ("sequence", None),
        ("session_opened", {"epoch": "x"}),
        ("memory_mark", {}),
        ("step_ended", {"turn_id": "1", "step": 7, "index": "x"}),
        ("tool_started", {"call_id": 1}),
    ],
)
def test_every_fact_that_is_not_of_its_shape_is_told(key, value):
    """One line, with its name and the beginning of what stands there."""
    (problem,) = facts(Metadata(key, value)).problems

    assert problem.startswith(f"{key} is ")
    assert len(problem) < 120


def test_a_fact_of_a_later_version_is_not_a_problem():
    """Unknown keys are ignored; a log of today has none."""
    assert () == facts(Metadata("future", {"x": 1}), Metadata("title", "t")).problems


async def test_the_next_turn_tells_it_once(stage, caplog, autojump_clock):
    """As an event, and in the log of the program when the session is resumed."""
    broken = {"model_id": "scripted", "max_tokens": "many"}
    await stage.keep("s", Metadata("session_config", broken), Metadata("title", 7))
    stage.says(say("ok"), say("ok"))
    told = []
    async with stage.resumed("s") as session:
        for _ in range(2):
            payloads = [event.payload async for event in await session.send_message("go")]
            told.append([str(each.error) for each in payloads if isinstance(each, ErrorEvent)])
            assert isinstance(payloads[-1], TurnComplete)
            assert payloads[-1].error is None

    assert [
        [
            "[STORAGE_ERROR] what is stored of this session cannot all be read: max_tokens of session_config is "
            "'many'; title is 7"
        ],
        [],
    ] == told
    assert 2 == sum("cannot be read" in record.getMessage() for record in caplog.records)

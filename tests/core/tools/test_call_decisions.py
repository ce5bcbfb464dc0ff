"""Decisions about a tool call, as tables (semantics 8)."""

from __future__ import annotations

import pytest
from youyou.core.config import Notices
from youyou.core.stopping import CutReason
from youyou.core.tools.call_decisions import aborted, forbidden, judge, unfit_arguments, unreported
from youyou.core.tools.schema import ArgumentChecker
from youyou.messages.errors import ErrorCode, PluginError
from youyou.messages.events import ToolOutput
from youyou.messages.history import StopReason, ToolCall, ToolOutcome

NOTICES = Notices.english()
CALL = ToolCall("c1", "look", {"x": 1})
UNREADABLE = ToolCall("c1", "look", {}, raw_arguments="{x: 1")
CHECKER = ArgumentChecker("look", {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]})


@pytest.mark.parametrize(
    ("index", "allowed", "stop_reason", "offered", "code"),
    [
        (0, 1, StopReason.TOOL_USE, {"look"}, None),
        (1, 1, StopReason.TOOL_USE, {"look"}, ErrorCode.MAX_TOOL_CALLS_EXCEEDED),
        (0, 0, StopReason.TOOL_USE, {"look"}, ErrorCode.MAX_TOOL_CALLS_EXCEEDED),
        (0, 1, StopReason.LENGTH, {"look"}, ErrorCode.INVALID_TOOL_ARGUMENTS),
        (0, 1, StopReason.TOOL_USE, {"other"}, ErrorCode.TOOL_NOT_FOUND),
        (0, 1, StopReason.END_TURN, set(), ErrorCode.TOOL_NOT_FOUND),
        (1, 1, StopReason.OTHER, set(), ErrorCode.MAX_TOOL_CALLS_EXCEEDED),  # the limit is named first
        (0, 1, StopReason.CONTENT_FILTER, set(), ErrorCode.INVALID_TOOL_ARGUMENTS),
    ],
)
def test_what_forbids_a_call_before_any_hook(index, allowed, stop_reason, offered, code):
    """The limit, then a response that did not end well, then a tool that was not offered."""
    refusal = forbidden(CALL, index=index, allowed=allowed, stop_reason=stop_reason, offered=offered)
    assert code == (refusal and refusal.error.code)


def test_an_unknown_tool_is_told_what_there_is():
    """The model reads the names, in order."""
    refusal = forbidden(CALL, index=0, allowed=1, stop_reason=StopReason.TOOL_USE, offered={"b", "a"})
    assert refusal is not None
    assert "unknown tool 'look'; the available tools are: a, b" == refusal.content


@pytest.mark.parametrize(
    ("call", "arguments", "problem"),
    [
        (CALL, {"x": 1}, None),
        (CALL, {"x": "one"}, "look"),
        (CALL, {}, "look"),
        (UNREADABLE, {}, "not a JSON object: '{x: 1'"),
        (UNREADABLE, {"x": 1}, None),  # a hook has put it right
        (UNREADABLE, {"x": "one"}, "look"),
    ],
)
def test_whether_arguments_fit(call, arguments, problem):
    """Against the schema; what could not be read is refused as such, unless a hook has replaced it."""
    refusal = unfit_arguments(call, arguments, CHECKER)
    assert (problem is None) == (refusal is None)
    if refusal is not None:
        assert problem in refusal.content
        assert ErrorCode.INVALID_TOOL_ARGUMENTS is refusal.error.code


def test_a_refusal_by_a_hook_tells_the_model_why_and_the_host_whose_fault_it_was():
    """HOOK_ABORTED, or what went wrong in the hook itself."""
    broken = PluginError("plugin 'p' raised")
    assert ErrorCode.HOOK_ABORTED is aborted("no", None, NOTICES).error.code
    assert broken is aborted("no", broken, NOTICES).error
    assert NOTICES.aborted_tool.format(reason="no") == aborted("no", broken, NOTICES).content


@pytest.mark.parametrize(
    ("came", "content", "outcome", "code"),
    [
        (ToolOutput("fine"), "fine", ToolOutcome.OK, None),
        (ToolOutput("a\ud83d"), "a\ufffd", ToolOutcome.OK, None),
        (ToolOutput("bad", is_error=True), "bad", ToolOutcome.FAILED, ErrorCode.TOOL_EXECUTION_ERROR),
        (ValueError("x"), "Tool failed: ValueError: x", ToolOutcome.FAILED, ErrorCode.TOOL_EXECUTION_ERROR),
        (
            CutReason.TIMED_OUT,
            NOTICES.timed_out_tool.format(ms=50),
            ToolOutcome.FAILED,
            ErrorCode.TOOL_TIMEOUT,
        ),
        (CutReason.INTERRUPTED, NOTICES.unknown_outcome, ToolOutcome.UNKNOWN, ErrorCode.REQUEST_CANCELLED),
    ],
)
def test_what_came_of_a_run(came, content, outcome, code):
    """What the model reads, what history keeps, and what the host is told."""
    judgement = judge(CALL, came, timeout_ms=50, notices=NOTICES)
    assert (content, outcome) == (judgement.output.content, judgement.outcome)
    assert code == (judgement.error and judgement.error.code)
    assert (outcome is not ToolOutcome.OK) == judgement.output.is_error


def test_what_a_tool_raised_is_the_cause():
    """So that a log shows its traceback."""
    error = ValueError("x")
    judged = judge(CALL, error, timeout_ms=50, notices=NOTICES)
    assert judged.error is not None
    assert error is judged.error.__cause__


@pytest.mark.parametrize(("is_error", "code"), [(False, None), (True, ErrorCode.REQUEST_CANCELLED)])
def test_an_end_that_has_to_be_said_late(is_error, code):
    """A result that was OK is not announced as a failure."""
    error = unreported(is_error)
    assert code == (error and error.code)

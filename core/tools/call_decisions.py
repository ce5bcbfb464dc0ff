"""Decisions about a tool call (semantics 8): may it run at all, do its arguments fit, how its run ended. Pure.

forbidden(call, index=3, allowed=2, stop_reason=StopReason.TOOL_USE, offered=names)     # Refusal(...), or None
unfit_arguments(call, arguments, checker)                               # Refusal(...), or None
judge(call, ToolOutput("21 degrees"), timeout_ms=5_000, notices=notices)        # Judgement(..., ToolOutcome.OK)
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import attrs

from ...messages.errors import (
    AgentError,
    HookAborted,
    InvalidToolArguments,
    MaxToolCallsExceeded,
    RequestCancelled,
    ToolExecutionError,
    ToolNotFound,
    ToolTimeout,
)
from ...messages.events import ToolOutput
from ...messages.history import StopReason, ToolCall, ToolOutcome
from ...messages.text import clean_text, safe_str, truncate
from ..config import Notices
from ..ports.call_arguments import problem_of
from ..ports.stop_rules import refusal_of_calls
from ..stopping import CutReason
from .schema import ArgumentChecker

_SHOWN = 500


@attrs.frozen
class Refusal:
    """A call that is answered with an error and not executed. ``content`` is what the model reads."""

    content: str
    error: AgentError

    @classmethod
    def of(cls, error: AgentError) -> Refusal:
        """The model reads the same words as the host."""
        return cls(error.message, error)


@attrs.frozen
class Judgement:
    """How a call ended: the output that is shown and kept, its outcome, and for the host why it did not succeed."""

    output: ToolOutput
    outcome: ToolOutcome
    error: AgentError | None = None


def forbidden(
    call: ToolCall, *, index: int, allowed: int, stop_reason: StopReason, offered: Set[str]
) -> Refusal | None:
    """What forbids a call before any hook sees it.

    Args:
        index: its place in its response, from 0.
        allowed: how many calls of the response may still run.
        stop_reason: how the response ended.
        offered: the names of the tools that the request offered.
    """
    if index >= allowed:
        return Refusal.of(MaxToolCallsExceeded("not run: the limit of tool calls per turn is reached"))
    if (why := refusal_of_calls(stop_reason)) is not None:
        return Refusal.of(InvalidToolArguments(why))
    if call.tool_name not in offered:
        known = ", ".join(sorted(offered)) or "none"
        return Refusal.of(ToolNotFound(f"unknown tool {call.tool_name!r}; the available tools are: {known}"))
    return None


def aborted(reason: str, error: AgentError | None, notices: Notices) -> Refusal:
    """The answer to a call that a hook refused; with ``error`` because the hook itself failed."""
    content = notices.aborted_tool.format(reason=reason)
    return Refusal(content, error or HookAborted(content))


def unfit_arguments(call: ToolCall, arguments: Any, checker: ArgumentChecker) -> Refusal | None:
    """Whether ``arguments``, as the hooks left them, do not fit the tool.

    What the model sent and could not be read as an object is refused as such, unless it can be meant in one way only,
    or a hook has put it right.
    """
    problem = problem_of(call, takes_nothing=checker.takes_nothing) if arguments == call.arguments else None
    if problem is None:
        problem = checker.check(arguments)
    return None if problem is None else Refusal.of(InvalidToolArguments(problem))


def judge(
    call: ToolCall, came: ToolOutput | BaseException | CutReason, *, timeout_ms: int, notices: Notices
) -> Judgement:
    """The outcome of a call that ran: what the tool returned or raised, or why it was cut."""
    match came:
        case ToolOutput() as output:
            return _returned(call, output, notices)
        case CutReason.TIMED_OUT:
            text = notices.timed_out_tool.format(ms=timeout_ms)
            late = ToolTimeout(f"tool {call.tool_name!r}: {text}; raise its timeout_ms if it needs longer")
            return Judgement(ToolOutput(text, True), ToolOutcome.FAILED, late)
        case CutReason.INTERRUPTED:
            cut = RequestCancelled(f"tool {call.tool_name!r} was cut: its outcome is unknown")
            return Judgement(ToolOutput(notices.unknown_outcome, True), ToolOutcome.UNKNOWN, cut)
        case exc:
            text = truncate(clean_text(f"Tool failed: {safe_str(exc)}"), notices.truncated)
            failed = ToolExecutionError(f"tool {call.tool_name!r} raised {safe_str(exc)}")
            failed.__cause__ = exc
            return Judgement(ToolOutput(text, True), ToolOutcome.FAILED, failed)


def _returned(call: ToolCall, output: ToolOutput, notices: Notices) -> Judgement:
    content = truncate(output.content, notices.truncated)
    if content is not output.content:
        output = attrs.evolve(output, content=content)
    if not output.is_error:
        return Judgement(output, ToolOutcome.OK)
    failed = ToolExecutionError(f"tool {call.tool_name!r} says: {content[:_SHOWN]}")
    return Judgement(output, ToolOutcome.FAILED, failed)


def unreported(result_is_error: bool) -> AgentError | None:
    """The error of a ``ToolCallEnd`` that has to be said at the very end: none where the tool had succeeded."""
    return RequestCancelled("the turn was cut before the end of the tool was reported") if result_is_error else None

"""Events in words: what a tool call, its outcome, an ending look like on one line. Plain text, no colours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...messages.chat import TokenUsage
from ...messages.content import text_of
from ...messages.events import (
    AgentEventPayload,
    ContextCompacted,
    ErrorEvent,
    RetryScheduled,
    StepEnd,
    StepStart,
    ToolCallEnd,
    ToolCallStart,
    ToolProgress,
    TurnCancelled,
    TurnComplete,
)
from ...messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage

PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} "
"""What stands before what the user types."""

_REASONS = {
    "cancelled": "cancelled",
    "session_closed": "cancelled: the session was closed",
    "agent_shutdown": "cancelled: the agent was shut down",
    "host_cancelled": "cut short: the program was stopped",
    "dropped": "cancelled: the session was dropped",
}


def shorten(text: str, length: int = 72) -> str:
    """``text`` on one line of at most ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def call_text(name: str, arguments: Mapping[str, Any], length: int = 72) -> str:
    """A call as code: ``calculator(expression="12 * 7")``."""
    given = {key: json.dumps(value, ensure_ascii=False, default=str) for key, value in arguments.items()}
    return f"{name}({shorten(', '.join(f'{key}={value}' for key, value in given.items()), length)})"


def seconds(milliseconds: float) -> str:
    """A duration."""
    return f"{milliseconds / 1000:.1f} s"


def tokens(usage: TokenUsage) -> str:
    """Tokens in and out."""
    return f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"


def outcome(end: ToolCallEnd) -> str:
    """What a call brought."""
    if end.success:
        return shorten(end.output.content) or "done"
    return shorten(str(end.error) if end.error is not None else end.output.content)


def progress_text(progress: object) -> str:
    """The newest progress of a tool."""
    if isinstance(progress, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')}: {value}" for key, value in progress.items())
    return str(progress)


def ending(payload: TurnComplete | TurnCancelled) -> str:
    """How a turn ended."""
    match payload:
        case TurnCancelled():
            parts = [_REASONS.get(payload.reason, payload.reason)]
            parts += [f"{_calls(payload.skipped)} skipped"] if payload.skipped else []
            parts += [f"{_calls(payload.interrupted)} cut, outcome unknown"] if payload.interrupted else []
            return ", ".join(parts)
        case TurnComplete(error=None):
            return str(payload.status)
        case _:
            return f"{payload.status}: {payload.error}"


def event_line(payload: AgentEventPayload) -> str | None:
    """An event other than text, on one line; None for text."""
    match payload:
        case ToolCallStart():
            return f"start  {call_text(payload.tool_name, payload.arguments)}"
        case ToolProgress():
            return f"...    {progress_text(payload.progress)}"
        case ToolCallEnd():
            how = "ok" if payload.success else "failed"
            return f"{how:<6} {payload.tool_name}: {outcome(payload)}  ({seconds(payload.duration_ms)})"
        case ContextCompacted():
            return f"context made smaller by {payload.kind}: {payload.before:,} to {payload.after:,} tokens"
        case RetryScheduled():
            return f"attempt {payload.attempt} failed, next in {seconds(payload.delay_ms)}: {payload.error}"
        case StepStart():
            return f"step {payload.index + 1}: {payload.step}"
        case StepEnd():
            return f"step {payload.index + 1}: {payload.step} {'done' if payload.success else 'failed'}"
        case ErrorEvent():
            return f"error: {payload.error}"
        case TurnComplete() | TurnCancelled():
            return ending(payload)
    return None


def message_text(message: Message) -> tuple[str, str]:
    """A message of history: who, and what."""
    match message:
        case UserMessage():
            return "you", text_of(message.content)
        case AssistantMessage():
            mark = "" if message.cause is None else f"  [{message.cause}]"
            return "model", message.text + mark
        case ToolCall():
            return "call", call_text(message.tool_name, message.arguments)
        case ToolResult():
            return f"result {message.outcome}", message.content
        case SystemMessage():
            return "note", message.content


def _calls(call_ids: Sequence[str]) -> str:
    return "1 call" if len(call_ids) == 1 else f"{len(call_ids)} calls"

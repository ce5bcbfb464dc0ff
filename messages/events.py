"""What a host reads while a turn runs, and what is left when it ended (semantics 6).

async for event in turn:
    match event.payload:
        case TextDelta(text=text): print(text, end="")
        case TurnComplete(status=status): print(status)
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

import attrs

from .chat import ReasoningDelta, TextDelta, TokenUsage
from .content import UserInput, texts
from .errors import AgentError
from .history import ToolResult
from .jsonvalue import JsonObject, freeze, json_object


# Not plain tuple: mypy cannot see through a generic converter.
def _inputs(values: Iterable[UserInput]) -> tuple[UserInput, ...]:
    return tuple(values)


def _results(values: Iterable[ToolResult]) -> tuple[ToolResult, ...]:
    return tuple(values)


class TurnStatus(StrEnum):
    """Where a turn stands. The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    FAILED = "failed"


@attrs.frozen
class ToolOutput:
    """What a tool returns. ``metadata`` is for the host: it is in the event, the model never sees it."""

    content: str
    is_error: bool = False
    metadata: JsonObject | None = attrs.field(default=None, converter=attrs.converters.optional(json_object))


@attrs.frozen
class ToolCallStart:
    """A worker took the call, or it was refused (an end with ``success=False`` follows). The arguments that run."""

    call_id: str
    tool_name: str
    arguments: JsonObject = attrs.field(converter=json_object)


@attrs.frozen
class ToolProgress:
    """The newest progress a running tool reported; older unread ones of that call are replaced."""

    call_id: str
    progress: Any = attrs.field(converter=freeze)


@attrs.frozen
class ToolCallEnd:
    """A call is over. ``error`` says why when it did not succeed."""

    call_id: str
    tool_name: str
    output: ToolOutput
    duration_ms: int
    success: bool
    error: AgentError | None = None


@attrs.frozen
class ContextCompacted:
    """Old history was replaced. ``kind``: "summary" or "truncation"; sizes in estimated tokens."""

    kind: str
    before: int
    after: int


@attrs.frozen
class RetryScheduled:
    """The request failed and will be sent again after ``delay_ms``. ``attempt`` counts from 1: the one that failed."""

    attempt: int
    delay_ms: int
    error: AgentError


@attrs.frozen
class StepStart:
    """A pipeline step begins."""

    step: str
    index: int


@attrs.frozen
class StepEnd:
    """A pipeline step is over; ``output`` is its text, also stored."""

    step: str
    index: int
    success: bool
    output: str


@attrs.frozen
class ErrorEvent:
    """Something went wrong. Only a terminal event ends the turn."""

    error: AgentError


@attrs.frozen
class TurnComplete:
    """Terminal: the turn completed, or failed with ``error``."""

    status: TurnStatus
    text: str
    usage: TokenUsage
    error: AgentError | None = None
    undelivered: tuple[UserInput, ...] = attrs.field(default=(), converter=_inputs)


@attrs.frozen
class TurnCancelled:
    """Terminal: the turn was stopped. ``skipped`` never started, ``interrupted`` were cut: outcome unknown (call ids).

    ``reason``: "cancelled", "session_closed", "agent_shutdown", "host_cancelled" or "dropped".
    """

    reason: str
    text: str
    usage: TokenUsage
    skipped: tuple[str, ...] = attrs.field(default=(), converter=texts)
    interrupted: tuple[str, ...] = attrs.field(default=(), converter=texts)
    undelivered: tuple[UserInput, ...] = attrs.field(default=(), converter=_inputs)


AgentEventPayload: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolProgress
    | ToolCallEnd
    | ContextCompacted
    | RetryScheduled
    | StepStart
    | StepEnd
    | TurnComplete
    | TurnCancelled
    | ErrorEvent
)


@attrs.frozen
class AgentEvent:
    """The envelope: who, when (aware UTC), and ``sequence``, +1 for each event of a session."""

    session_id: str
    turn_id: str
    timestamp: datetime
    sequence: int
    payload: AgentEventPayload


@attrs.frozen
class TurnResult:
    """What is left of a turn. ``text``: the last assistant message; ``usage``: all of it, retries and compaction."""

    turn_id: str
    status: TurnStatus
    text: str
    usage: TokenUsage
    error: AgentError | None = None
    tool_results: tuple[ToolResult, ...] = attrs.field(default=(), converter=_results)
    skipped: tuple[str, ...] = attrs.field(default=(), converter=texts)
    interrupted: tuple[str, ...] = attrs.field(default=(), converter=texts)
    undelivered: tuple[UserInput, ...] = attrs.field(default=(), converter=_inputs)

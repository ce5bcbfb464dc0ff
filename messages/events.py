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
from typing import Any, Generic, TypeAlias, assert_never

import attrs
from typing_extensions import TypeVar

from . import shown
from .chat import ReasoningDelta, TextDelta, ToolCallDelta, Usage
from .content import UserInput, texts
from .errors import AgentError
from .history import StopReason, ToolResult
from .jsonvalue import JsonObject, freeze, json_object
from .misuse import misused


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
    """What the model reads. Over 1 MiB (UTF-8) it is cut at a character and a notice is appended."""
    is_error: bool = False
    """True when the tool ran and reports a failure; the result's outcome is then ``FAILED``."""
    metadata: JsonObject | None = attrs.field(default=None, converter=attrs.converters.optional(json_object))
    """JSON object for the host, at most 1 MiB of JSON text; the model never sees it. None: nothing."""


@attrs.frozen
class ToolCallStart:
    """A worker took the call, or it was refused (an end with ``success=False`` follows). The arguments that run."""

    call_id: str
    """The call; its ``ToolCallEnd`` has the same id."""
    tool_name: str
    """The tool as the model named it."""
    arguments: JsonObject = attrs.field(converter=json_object)
    """The arguments that run: after ``BeforeToolUse`` hooks, read-only."""


@attrs.frozen
class ToolProgress:
    """The newest progress a running tool reported; older unread ones of that call are replaced."""

    call_id: str
    """The running call."""
    progress: Any = attrs.field(converter=freeze)
    """What the tool passed to ``ToolInput.report``: JSON data, at most 64 KiB."""


@attrs.frozen
class ToolCallEnd:
    """A call is over. ``error`` says why when it did not succeed."""

    call_id: str
    """The call that ended."""
    tool_name: str
    """The tool as the model named it."""
    output: ToolOutput
    """What the model reads and the tool's metadata; of a failed call the error's text."""
    duration_ms: int
    """Milliseconds from the start of the tool to its end; 0 when it never ran."""
    success: bool
    """True when the tool ran and did not report an error."""
    error: AgentError | None = None
    """Why it did not succeed. None on success."""


@attrs.frozen
class ContextCompacted:
    """Old history was replaced. ``kind``: "summary" or "truncation"; sizes in estimated tokens."""

    kind: str
    """"summary" (a model condensed old history) or "truncation" (old rounds were left out)."""
    before: int
    """Estimated tokens of the request before."""
    after: int
    """Estimated tokens of the request after."""


@attrs.frozen
class RetryScheduled:
    """The request failed and will be sent again after ``delay_ms``. ``attempt`` counts from 1: the one that failed.

    Pieces of calls that were shown (`ToolCallDelta`) are void.
    """

    attempt: int
    """The attempt that failed, counted from 1."""
    delay_ms: int
    """Milliseconds until the next attempt starts."""
    error: AgentError
    """What the attempt failed with."""


@attrs.frozen
class OutputRejected:
    """An answer did not fit the schema that was asked for, and the model is asked again (semantics 13).

    The text that was shown of that answer is void.
    """

    attempt: int
    """The repair round that follows, counted from 1."""
    problems: str
    """What does not fit, as the model is told: a line for each of the first few places."""


@attrs.frozen
class StepStart:
    """A pipeline step begins."""

    step: str
    """``Step.name``."""
    index: int
    """Position of the step in its pipeline, counted from 0."""


@attrs.frozen
class StepEnd:
    """A pipeline step is over; ``output`` is its text, also stored."""

    step: str
    """``Step.name``."""
    index: int
    """Position of the step in its pipeline, counted from 0."""
    success: bool
    """False when the step failed after its retries; the turn then fails."""
    output: str
    """The last text of the step. It is stored, and later steps find it as ``{steps.NAME}``."""


@attrs.frozen
class ErrorEvent:
    """Something went wrong. Only a terminal event ends the turn."""

    error: AgentError
    """What went wrong. ``error.source`` names the part, ``error.retryable`` whether trying again may help."""


@attrs.frozen
class TurnComplete:
    """Terminal: the turn completed, or failed with ``error``."""

    status: TurnStatus
    """``COMPLETED`` or ``FAILED``."""
    text: str
    """Text of the last assistant message; empty when there is none."""
    usage: Usage
    """Tokens of all requests of the turn, with retries and compaction, and how many requests and calls there were."""
    error: AgentError | None = None
    """Why the turn failed, or that its end is not stored. None when neither is so."""
    undelivered: tuple[UserInput, ...] = attrs.field(default=(), converter=_inputs)
    """Steering that was accepted and reached no request, in order of arrival."""
    stop_reason: StopReason | None = None
    """Why the model stopped at last: it tells a cut answer from a whole one. None if no response came to its end."""


@attrs.frozen
class TurnCancelled:
    """Terminal: the turn was stopped. ``skipped`` never started, ``interrupted`` were cut: outcome unknown (call ids).

    ``reason``: "cancelled", "session_closed", "agent_shutdown", "host_cancelled" or "dropped".
    """

    reason: str
    """"cancelled", "session_closed", "agent_shutdown", "host_cancelled" or "dropped"."""
    text: str
    """Text of the last assistant message, perhaps incomplete; empty when there is none."""
    usage: Usage
    """Tokens of all requests of the turn, as far as they were reported, and how many requests and calls there were."""
    skipped: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Ids of calls that never started, in the model's order."""
    interrupted: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Ids of calls that were cut while they ran: their effect is unknown."""
    undelivered: tuple[UserInput, ...] = attrs.field(default=(), converter=_inputs)
    """Inputs that reached no request: steering, and the input itself of a turn that never left the queue."""


AgentEventPayload: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolCallDelta
    | ToolCallStart
    | ToolProgress
    | ToolCallEnd
    | ContextCompacted
    | RetryScheduled
    | OutputRejected
    | StepStart
    | StepEnd
    | TurnComplete
    | TurnCancelled
    | ErrorEvent
)


@misused(any_attribute="this is the envelope; write event.payload.{name}, after isinstance(event.payload, ...)")
@attrs.frozen
class AgentEvent:
    """The envelope: who, when (aware UTC), and ``sequence``, +1 for each event of a session."""

    session_id: str
    """The session."""
    turn_id: str
    """The turn within it."""
    timestamp: datetime
    """When the event was numbered; timezone-aware, UTC."""
    sequence: int
    """One more for each event of a session, also after it was resumed. Gaps are events that nobody read."""
    payload: AgentEventPayload
    """What happened."""

    def __str__(self) -> str:
        """One short line for people: ``#3 ToolCallStart weather(city='Oslo')``. Secrets by name are left out."""
        return f"#{self.sequence} {type(self.payload).__name__} {_summary(self.payload)}".rstrip()


def _summary(payload: AgentEventPayload) -> str:
    match payload:
        case TextDelta() | ReasoningDelta():
            return shown.quoted(payload.text)
        case ToolCallDelta():
            return f"{shown.clip(payload.tool_name or payload.call_id)} +{shown.count(len(payload.text), 'character')}"
        case ToolCallStart():
            return f"{shown.clip(payload.tool_name)}({shown.arguments(payload.arguments)})"
        case ToolProgress():
            return shown.clip(payload.call_id)
        case ToolCallEnd():
            told = shown.quoted(payload.output.content) if payload.error is None else shown.clip(str(payload.error))
            return f"{shown.clip(payload.tool_name)} {'ok' if payload.success else 'failed'}: {told}"
        case ContextCompacted():
            return f"{payload.kind}: {payload.before:,} -> {payload.after:,} tokens"
        case RetryScheduled():
            return f"attempt {payload.attempt} failed, again in {payload.delay_ms} ms: {shown.clip(str(payload.error))}"
        case OutputRejected():
            return f"repair {payload.attempt}: {shown.clip(payload.problems)}"
        case StepStart() | StepEnd():
            return shown.clip(payload.step)
        case ErrorEvent():
            return shown.clip(str(payload.error))
        case TurnComplete():
            return f"{payload.status} {_end(payload.text, payload.error)}"
        case TurnCancelled():
            return f"{payload.reason} {shown.quoted(payload.text)}"
        case _:
            assert_never(payload)


def _end(text: str, error: AgentError | None) -> str:
    return shown.quoted(text) if error is None else shown.clip(str(error))


OutputT = TypeVar("OutputT", default=Any)
"""What `Session.send_message` was given as ``output``. Without it, an output is JSON data, or there is none."""


@attrs.frozen
class TurnResult(Generic[OutputT]):
    """What is left of a turn. ``text``: the last assistant message; ``usage``: all of it, retries and compaction."""

    turn_id: str
    """The turn, as in its events."""
    status: TurnStatus
    """One of the three final states."""
    text: str
    """Text of the last assistant message, perhaps incomplete; empty when there is none."""
    usage: Usage
    """Tokens of all requests of the turn, with retries and compaction, and how many requests and calls there were."""
    error: AgentError | None = None
    """Why the turn failed or was cancelled, or that its end is not stored. None when all went well."""
    tool_results: tuple[ToolResult, ...] = attrs.field(default=(), converter=_results)
    """The results of all announced calls, in the model's order."""
    skipped: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Ids of calls that never started, in the model's order."""
    interrupted: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Ids of calls that were cut while they ran: their effect is unknown."""
    undelivered: tuple[UserInput, ...] = attrs.field(default=(), converter=_inputs)
    """Inputs that reached no request, in order of arrival; send them again if they still matter."""
    stop_reason: StopReason | None = None
    """Why the model stopped at last: it tells a cut answer from a whole one. None if no response came to its end."""
    output: OutputT | None = None
    """The answer as an instance of what was asked for: ``output`` of `Session.send_message` or `Agent.new_session`. For
    a JSON schema it is JSON data, read-only. None where nothing was asked for, or the turn did not complete.
    """

    def __repr__(self) -> str:
        # For people: the whole of it, with every result of a tool, would fill a screen, and the fields can be asked.
        usage = self.usage
        used = [shown.count(usage.requests, "request"), shown.count(usage.tool_calls, "call")]
        used += [shown.count(usage.retries, "repeat")] if usage.retries else []
        used.append(f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens")
        return f"<TurnResult {self.status} {_end(self.text, self.error)}, {', '.join(used)}>"

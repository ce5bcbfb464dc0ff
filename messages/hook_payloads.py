"""What a plugin sees and answers (semantics 6.4).

async def shorten(event: BeforeToolUse) -> HookResult:
    return ContinueWith(attrs.evolve(event, arguments={**event.arguments, "limit": 10}))

ctx.tap(BeforeToolUse, shorten)
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

import attrs

from .content import UserInput, texts
from .events import ToolOutput, TurnStatus
from .jsonvalue import JsonObject, freeze, json_object


def utc_now() -> datetime:
    """Now, aware."""
    return datetime.now(UTC)


@attrs.frozen(kw_only=True)
class _Payload:
    session_id: str = ""
    """The session that the hook runs for."""
    plugin_config: Any = attrs.field(default=None, converter=freeze)
    """What the host registered the plugin with, read-only; every handler sees that of its own plugin. None: nothing."""
    timestamp: datetime = attrs.field(factory=utc_now)
    """When the hook was called; timezone-aware, UTC."""


@attrs.frozen(kw_only=True)
class _TurnPayload(_Payload):
    turn_id: str = ""
    """The turn that the hook runs in."""


@attrs.frozen
class SessionStart(_Payload):
    """A new session opens (not a resumed one). Abort refuses it."""


@attrs.frozen
class SessionEnd(_Payload):
    """A session closed gracefully."""

    message_count: int = attrs.field()
    """Messages in the session's history."""


@attrs.frozen
class TurnStart(_TurnPayload):
    """A turn begins. ``dynamic_sections`` may be changed and goes into the system prompt; Abort fails the turn."""

    user_input: UserInput = attrs.field()
    """The input as the host sent it."""
    dynamic_sections: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Texts for the dynamic part of the system prompt of this turn. A handler may change them; empty at first."""


@attrs.frozen
class TurnEnd(_TurnPayload):
    """A turn is about to end with this text and status."""

    assistant_output: str = attrs.field()
    """Text of the last assistant message; empty when there is none."""
    status: TurnStatus = attrs.field()
    """The outcome: ``COMPLETED``, ``FAILED`` or ``CANCELLED``."""


@attrs.frozen
class BeforeToolUse(_TurnPayload):
    """A tool is about to run. ``arguments`` may be changed; Abort answers the call with an error instead."""

    call_id: str = attrs.field()
    """The call."""
    tool_name: str = attrs.field()
    """The tool as the model named it."""
    arguments: JsonObject = attrs.field(converter=json_object)
    """The arguments, read-only. A handler may answer with others; they are checked against the schema afterwards."""


@attrs.frozen
class AfterToolUse(_TurnPayload):
    """A tool ran. (A call that was refused is not followed by this hook.)"""

    call_id: str = attrs.field()
    """The call."""
    tool_name: str = attrs.field()
    """The tool as the model named it."""
    output: ToolOutput = attrs.field()
    """What the tool returned, after truncation."""
    duration_ms: int = attrs.field()
    """Milliseconds from the start of the tool to its end."""
    success: bool = attrs.field()
    """True when the tool did not report an error."""


@attrs.frozen
class BeforeCompact(_Payload):
    """Old history is about to be replaced. Abort prevents it."""

    message_count: int = attrs.field()
    """Messages in the history before it is compacted."""
    estimated_tokens: int = attrs.field()
    """Estimated size of the next request, in tokens."""
    # Not in a base class: a compaction may come to be outside a turn, and a field with a default cannot precede those
    # of this class.
    turn_id: str = attrs.field(default="", kw_only=True)
    """The turn that triggers the compaction."""


HookEvent: TypeAlias = SessionStart | SessionEnd | TurnStart | TurnEnd | BeforeToolUse | AfterToolUse | BeforeCompact


# Classes and not flags or exceptions: a checker then says which answer lacks what, and a handler that raises is told
# from one that refuses.
@attrs.frozen
class Continue:
    """Go on, nothing changed. Returning None means the same."""


@attrs.frozen
class ContinueWith:
    """Go on with this event: later handlers and the runtime see its changed field."""

    event: HookEvent
    """The hook's own event with changes; only the field of the table of semantics 6.4 may differ."""


@attrs.frozen
class Abort:
    """Do not do it. What that means is in the table of semantics 6.4."""

    reason: str
    """Why, in words for the model and the host; it is in the error or the call's result."""


HookResult: TypeAlias = Continue | ContinueWith | Abort | None
"""What a handler of a hook may return; None means `Continue`."""

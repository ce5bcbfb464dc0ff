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
    plugin_config: Any = attrs.field(default=None, converter=freeze)
    timestamp: datetime = attrs.field(factory=utc_now)


@attrs.frozen(kw_only=True)
class _TurnPayload(_Payload):
    turn_id: str = ""


@attrs.frozen
class SessionStart(_Payload):
    """A new session opens (not a resumed one). Abort refuses it."""


@attrs.frozen
class SessionEnd(_Payload):
    """A session closed in the orderly way."""

    message_count: int = attrs.field()


@attrs.frozen
class TurnStart(_TurnPayload):
    """A turn begins. ``dynamic_sections`` may be changed and goes into the system prompt; Abort fails the turn."""

    user_input: UserInput = attrs.field()
    dynamic_sections: tuple[str, ...] = attrs.field(default=(), converter=texts)


@attrs.frozen
class TurnEnd(_TurnPayload):
    """A turn is about to end with this text and status."""

    assistant_output: str = attrs.field()
    status: TurnStatus = attrs.field()


@attrs.frozen
class BeforeToolUse(_TurnPayload):
    """A tool is about to run. ``arguments`` may be changed; Abort answers the call with an error instead."""

    call_id: str = attrs.field()
    tool_name: str = attrs.field()
    arguments: JsonObject = attrs.field(converter=json_object)


@attrs.frozen
class AfterToolUse(_TurnPayload):
    """A tool ran. (A call that was refused is not followed by this hook.)"""

    call_id: str = attrs.field()
    tool_name: str = attrs.field()
    output: ToolOutput = attrs.field()
    duration_ms: int = attrs.field()
    success: bool = attrs.field()


@attrs.frozen
class BeforeCompact(_Payload):
    """Old history is about to be replaced. Abort prevents it."""

    message_count: int = attrs.field()
    estimated_tokens: int = attrs.field()
    turn_id: str = attrs.field(default="", kw_only=True)


HookEvent: TypeAlias = SessionStart | SessionEnd | TurnStart | TurnEnd | BeforeToolUse | AfterToolUse | BeforeCompact


@attrs.frozen
class Continue:
    """Go on, nothing changed. Returning None means the same."""


@attrs.frozen
class ContinueWith:
    """Go on with this event: later handlers and the runtime see its changed field."""

    event: HookEvent


@attrs.frozen
class Abort:
    """Do not do it. What that means is in the table of semantics 6.4."""

    reason: str


HookResult: TypeAlias = Continue | ContinueWith | Abort

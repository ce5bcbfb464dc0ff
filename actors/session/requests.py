"""The messages between actors, besides the jobs of the tool pool and the posts of the recorder.

Each mailbox takes one closed union. A question carries its ``reply``; what carries none expects no answer.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import TypeAlias

import attrs
import trio

from ...core.config import SessionConfig
from ...core.structured_output import OutputFormat
from ...messages.content import UserInput
from ...messages.errors import AgentError
from ..memory.extractor import Extracted
from ..shared.mailbox import Reply
from ..turn.accepted_turn import AcceptedTurn
from ..turn.session_state import SessionState
from ..turn.turn_actor import Turn


@attrs.frozen(eq=False)
class OpenedSession:
    """What a handle gets of a session: where to ask its actor, and what the actor lets it read."""

    state: SessionState
    mailbox: trio.MemorySendChannel[SessionCommand]
    ended: trio.Event
    """Set when the slot is free."""
    idle: Callable[[], trio.Event]
    """An event that is set while no turn runs or is queued; each turn that starts then brings a new one."""
    running: Callable[[], AcceptedTurn | None]
    """The turn that runs now."""


@attrs.frozen(eq=False)
class OpenSession:
    """To the guard: a new session, or (with ``session_id``) a stored one, if need be from an owner that lives."""

    config: SessionConfig
    session_id: str | None
    steal: bool
    model_id: str | None
    output: OutputFormat | None
    context: contextvars.Context
    reply: Reply[OpenedSession | AgentError]


@attrs.frozen(eq=False)
class GaveUp:
    """To the guard: the task that asked for this session was cancelled."""

    question: OpenSession


@attrs.frozen(eq=False)
class SessionEnded:
    """To the guard: the slot is free again."""

    question: OpenSession


@attrs.frozen(eq=False)
class Shutdown:
    """To the guard: end the session and admit no other. Sent again when the grace gets shorter."""


GuardCommand: TypeAlias = OpenSession | GaveUp | SessionEnded | Shutdown


@attrs.frozen(eq=False)
class StartTurn:
    """To the session: a message of the user's. ``unfinished``: go on with the pipeline that was interrupted."""

    user_input: UserInput | None
    queue: bool
    output: OutputFormat | None
    context: contextvars.Context
    reply: Reply[AcceptedTurn | AgentError]


@attrs.frozen(eq=False)
class TurnEnded:
    """To the session: this turn's last task is about to end."""

    turn: Turn


@attrs.frozen(eq=False)
class SetTitle:
    """To the session: its name."""

    title: str
    reply: Reply[int]


@attrs.frozen(eq=False)
class CloseSession:
    """To the session: end. ``graceful``: with the SessionEnd hook and memory extraction."""

    graceful: bool
    reason: str
    grace: float | None
    reply: Reply[AgentError | None] | None


@attrs.frozen(eq=False)
class Finished:
    """To the session, from its own closing task."""

    error: AgentError | None


SessionCommand: TypeAlias = StartTurn | TurnEnded | SetTitle | CloseSession | Extracted | Finished

"""What storages keep and answer (semantics 7, 12)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeAlias

import attrs

from .content import texts
from .history import Message
from .hook_payloads import utc_now
from .jsonvalue import freeze


@attrs.frozen
class Metadata:
    """A fact about a session that is not a message: its configuration, title, the start and end of a turn, ..."""

    key: str
    """The kind of fact, for example "session_config", "title", "turn_started". A reader ignores keys that it does not
    know.
    """
    value: Any = attrs.field(converter=freeze)
    """JSON data, read-only; its shape depends on the key."""


SessionEventPayload: TypeAlias = Message | Metadata


@attrs.frozen
class SessionEvent:
    """One stored record. ``seq`` counts from 1 within its session; a store ignores one that it has."""

    seq: int
    """Number within the session, counted from 1 without gaps."""
    timestamp: datetime
    """When the session recorded it; timezone-aware, UTC."""
    payload: SessionEventPayload
    """A message of the history, or a fact about the session."""


@attrs.frozen
class SessionSummary:
    """A line of a session list."""

    session_id: str
    """The id to pass to ``resume_session``."""
    title: str
    """The title that was set, else the beginning of the first message; empty when there is neither."""
    created_at: datetime
    """Time of the first record; timezone-aware, UTC."""
    updated_at: datetime
    """Time of the newest record; timezone-aware, UTC."""
    message_count: int
    """Messages that are stored; facts (`Metadata`) do not count."""


# Not plain tuple: mypy cannot see through a generic converter.
# A storage hands over whatever collection it has.
def _summaries(values: Iterable[SessionSummary]) -> tuple[SessionSummary, ...]:
    return tuple(values)


@attrs.frozen
class SessionPage:
    """Part of a session list. ``next_cursor`` is None on the last page."""

    sessions: tuple[SessionSummary, ...] = attrs.field(converter=_summaries)
    """Sessions of this page, the most recently changed first."""
    next_cursor: str | None = None
    """Pass it to ``list_sessions`` to get the next page. None: this is the last one."""


@attrs.frozen
class Memory:
    """Something to remember across sessions, known by ``(namespace, id)``."""

    id: str
    """Unique within its namespace. Saving one with an id that exists replaces that memory."""
    namespace: str
    """Keeps the memories of different agents or users apart (``AgentConfig.memory_namespace``)."""
    content: str
    """What to remember, as text."""
    source: str = ""
    """Where it is from, for example the id of the session that it was extracted from. May be empty."""
    tags: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Words to find it by; may be empty."""
    created_at: datetime = attrs.field(factory=utc_now)
    """When the memory was first made; timezone-aware, UTC. Default: now."""
    updated_at: datetime = attrs.field(factory=utc_now)
    """When its content last changed; timezone-aware, UTC. Default: now."""

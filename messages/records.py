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
    """A fact about a session that is no message: its configuration, title, the start and end of a turn, ..."""

    key: str
    value: Any = attrs.field(converter=freeze)


SessionEventPayload: TypeAlias = Message | Metadata


@attrs.frozen
class SessionEvent:
    """One stored record. ``seq`` counts from 1 within its session; a store ignores one that it has."""

    seq: int
    timestamp: datetime
    payload: SessionEventPayload


@attrs.frozen
class SessionSummary:
    """A line of a session list."""

    session_id: str
    title: str
    created_at: datetime
    updated_at: datetime
    message_count: int


# Not plain tuple: mypy cannot see through a generic converter.
def _summaries(values: Iterable[SessionSummary]) -> tuple[SessionSummary, ...]:
    return tuple(values)


@attrs.frozen
class SessionPage:
    """Part of a session list. ``next_cursor`` is None on the last page."""

    sessions: tuple[SessionSummary, ...] = attrs.field(converter=_summaries)
    next_cursor: str | None = None


@attrs.frozen
class Memory:
    """Something to remember across sessions, known by ``(namespace, id)``."""

    id: str
    namespace: str
    content: str
    source: str = ""
    tags: tuple[str, ...] = attrs.field(default=(), converter=texts)
    created_at: datetime = attrs.field(factory=utc_now)
    updated_at: datetime = attrs.field(factory=utc_now)

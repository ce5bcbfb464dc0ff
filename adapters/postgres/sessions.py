"""Sessions and their events as rows: what is read and written (semantics 7). Each call is one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import cattrs
import msgspec

from ...core.memory.search_terms import fold
from ...messages.codec import from_json, to_json
from ...messages.errors import ErrorSource, SessionNotFound, SessionTaken, StorageError
from ...messages.history import Message
from ...messages.records import Metadata, SessionEvent, SessionPage, SessionSummary
from .connection import Database, Rows
from .errors import GAP, NOT_STORED, TAKEN

_COLUMNS = "session_id, title, created_at, updated_at, message_count"
_MOST = 1 << 31


async def save(database: Database, session_id: str, events: Sequence[SessionEvent], epoch: int | None) -> None:
    """Append what is new of ``events`` if they continue what is stored and the claim of ``epoch`` still counts.

    Raises:
        SessionTaken: another event has one of the numbers, or another owner has claimed the session.
        SessionNotFound: the session is not stored, and they do not begin it.
    """
    titles = [e.payload.value for e in events if isinstance(e.payload, Metadata) and e.payload.key == "title"]
    title = str(titles[-1]) if titles else None
    values = (
        session_id,
        epoch,
        [event.seq for event in events],
        [to_json(event) for event in events],
        [isinstance(event.payload, Message) for event in events],
        [event.timestamp for event in events],
        None if title is None else msgspec.json.encode(title).decode(),
        None if title is None else _foldable(title),
    )
    arrays = "%s::bigint[], %s::text[], %s::boolean[], %s::timestamptz[]"
    try:
        await database.run(f"SELECT {{s}}.append(%s, %s::bigint, {arrays}, %s::text, %s::text)", values)
    except StorageError as error:
        _raise_refusal(session_id, error)
        raise


def _raise_refusal(session_id: str, error: StorageError) -> None:
    cause: Any = error.__cause__
    state = getattr(cause, "sqlstate", None)
    detail = str(cause.diag.message_detail) if state in (TAKEN, GAP) else ""
    if state == TAKEN and detail == "0":
        raise SessionTaken(
            f"session {session_id!r} was claimed by another owner; resume it to go on with what is stored"
        ) from error
    if state == TAKEN:
        raise SessionTaken.written(session_id, int(detail)) from error
    if state == NOT_STORED:
        raise SessionNotFound(
            f"session {session_id!r} is not stored any more: somebody deleted it; open a new one",
            source=ErrorSource.STORAGE,
        ) from error
    if state == GAP:
        seq, newest = detail.split()
        raise StorageError(f"event {seq} of session {session_id!r} cannot follow event {newest}") from error


def _foldable(text: str) -> str:
    # PostgreSQL's text holds everything but the character zero.
    return fold(text).replace("\0", "\ufffd")


async def load(database: Database, session_id: str) -> tuple[SessionEvent, ...] | None:
    """All events in order. The count is read with them, in one state of the database."""
    rows = await database.run(
        "SELECT s.event_count, e.seq, e.body FROM {s}.sessions AS s LEFT JOIN {s}.events AS e USING (session_id) "
        "WHERE s.session_id = %s ORDER BY e.seq",
        (session_id,),
    )
    if not rows:
        return None
    if [seq for _, seq, _ in rows] != [*range(1, rows[0][0] + 1)]:
        raise StorageError(
            f"session {session_id!r} should have {rows[0][0]} events and has {len(rows)}, or others; the tables were "
            "changed from outside: restore them from a backup"
        )
    return tuple(_event(session_id, seq, body) for _, seq, body in rows)


def _event(session_id: str, seq: int, body: str) -> SessionEvent:
    try:
        return from_json(SessionEvent, body)
    except (cattrs.BaseValidationError, msgspec.DecodeError, ValueError, TypeError, KeyError) as error:
        raise StorageError(
            f"event {seq} of session {session_id!r} is of a kind unknown to this version; update youyou"
        ) from error


async def page(database: Database, cursor: str | None, limit: int) -> SessionPage:
    """Summaries after ``cursor``, the newest first."""
    wanted = min(max(1, limit), _MOST)
    clause, values = "", []
    if cursor is not None:
        clause, values = "WHERE (updated_at, session_id) < (%s::timestamptz, %s)", [*_parse(cursor)]
    order = "ORDER BY updated_at DESC, session_id DESC LIMIT %s"
    rows = await database.run(f"SELECT {_COLUMNS} FROM {{s}}.sessions {clause} {order}", (*values, wanted + 1))
    found = _summaries(rows)
    last = found[wanted - 1] if len(found) > wanted else None
    return SessionPage(found[:wanted], None if last is None else f"{last.updated_at.isoformat()} {last.session_id}")


def _parse(cursor: str) -> tuple[datetime, str]:
    moment, _, session_id = cursor.partition(" ")
    try:
        return datetime.fromisoformat(moment), session_id
    except ValueError:
        raise StorageError(f"{cursor!r} is not a cursor; pass the next_cursor of a page, or None to begin") from None


def _summaries(rows: Rows) -> list[SessionSummary]:
    return [
        SessionSummary(id, msgspec.json.decode(title), created.astimezone(UTC), updated.astimezone(UTC), count)
        for id, title, created, updated, count in rows
    ]


async def find(database: Database, query: str) -> tuple[SessionSummary, ...]:
    """Summaries whose id begins with ``query`` or whose title holds it, the newest first."""
    rows = await database.run(
        f"SELECT {_COLUMNS} FROM {{s}}.sessions WHERE session_id LIKE %s OR folded_title LIKE %s "
        "ORDER BY updated_at DESC, session_id DESC",
        (f"{literal(query)}%", f"%{literal(_foldable(query))}%"),
    )
    return tuple(_summaries(rows))


def literal(text: str) -> str:
    """``text`` as a pattern of LIKE that matches it alone."""
    for sign in "\\%_":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\0", "\ufffd")


async def delete(database: Database, session_id: str) -> None:
    """Remove the session, its events, its claim and its commands."""
    await database.run(
        "WITH a AS (DELETE FROM {s}.sessions WHERE session_id = %s), "
        "b AS (DELETE FROM {s}.events WHERE session_id = %s), c AS (DELETE FROM {s}.claims WHERE session_id = %s) "
        "DELETE FROM {s}.commands WHERE session_id = %s",
        (session_id,) * 4,
    )

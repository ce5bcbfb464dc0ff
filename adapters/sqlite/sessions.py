"""Sessions and their events as rows: what is read and written, and how damage is noticed (semantics 7).

Functions of a connection, run in its thread. Every event carries a checksum over its session, its number and its
text; every session row one over itself, and the sum of its events' checksums. An event that was changed, lost, added
or moved by anything but these functions is an error, never a history.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs
import cattrs
import msgspec

from ...core.memory.search_terms import fold
from ...messages.codec import from_json, to_json
from ...messages.errors import ErrorSource, SessionNotFound, SessionTaken
from ...messages.history import Message
from ...messages.records import Metadata, SessionEvent, SessionPage, SessionSummary
from .checks import checksum, from_micros, to_micros, wrap
from .errors import Refused
from .transaction import transaction

if TYPE_CHECKING:
    import apsw


@attrs.frozen
class _Row:
    """A session's line in the table. ``events_sum`` is the sum of its events' checksums."""

    session_id: str
    title: str = ""
    created_at: int = (1 << 63) - 1
    updated_at: int = -(1 << 63)
    message_count: int = 0
    event_count: int = 0
    events_sum: int = 0

    def adding(self, event: SessionEvent, check: int) -> _Row:
        """The line with ``event`` counted in."""
        moment = to_micros(event.timestamp)
        row = attrs.evolve(
            self,
            created_at=min(self.created_at, moment),
            updated_at=max(self.updated_at, moment),
            message_count=self.message_count + isinstance(event.payload, Message),
            event_count=self.event_count + 1,
            events_sum=wrap(self.events_sum + check),
        )
        match event.payload:
            case Metadata(key="title", value=title):
                return attrs.evolve(row, title=str(title))
        return row

    def summary(self) -> SessionSummary:
        """What the host gets to see."""
        moments = from_micros(self.created_at), from_micros(self.updated_at)
        return SessionSummary(self.session_id, self.title, *moments, self.message_count)


_MOST = 1 << 32
"""Rows of one page at most, whatever is asked for: beyond 63 bits SQLite takes no number."""
_MOMENT = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_COLUMNS = ", ".join(field.name for field in attrs.fields(_Row))
_SLOTS = ", ".join("?" for _ in attrs.fields(_Row))


def _rows(db: apsw.Connection, clause: str, values: Sequence[object]) -> Iterator[tuple[int, _Row]]:
    for key, check, *fields in db.execute(f"SELECT key, checksum, {_COLUMNS} FROM sessions {clause}", tuple(values)):
        if checksum(*fields) != check:
            raise Refused(f"the entry of session {fields[0]!r} is damaged; restore the file from a backup")
        yield key, _Row(*fields)


def _row(db: apsw.Connection, session_id: str) -> tuple[int, _Row] | None:
    for found in [*_rows(db, "WHERE session_id = ?", (session_id,))]:
        return found
    _check_that_none_are_lost(db)
    return None


def _check_that_none_are_lost(db: apsw.Connection) -> None:
    # Before "there is no such session" is said: the table and its indexes must name the same ones.
    found = db.execute("PRAGMA integrity_check('sessions')").get
    if found != "ok":
        raise Refused("its list of sessions is damaged; restore the file from a backup")


@attrs.frozen(eq=False)
class Batch:
    """Events to append to a session."""

    session_id: str
    events: Sequence[SessionEvent]


def save_all(db: apsw.Connection, batches: Sequence[Batch]) -> list[Exception | None]:
    """Append each batch as `save` does, in one transaction. What was wrong with each; None: it is stored."""
    if len(batches) > 1:
        try:
            return _save_together(db, batches)
        except Exception:  # whichever it is: each batch alone finds out whether it is meant
            pass
    return [_problem(partial(save, db, batch.session_id, batch.events)) for batch in batches]


def _save_together(db: apsw.Connection, batches: Sequence[Batch]) -> list[Exception | None]:
    texts = [[to_json(event) for event in batch.events] for batch in batches]
    problems = []
    with transaction(db, "IMMEDIATE"):
        for batch, bodies in zip(batches, texts, strict=True):
            db.execute("SAVEPOINT batch")
            problem = _problem(partial(_append, db, batch.session_id, batch.events, bodies))
            # Some errors end the whole transaction: then this raises, and with it all that was done.
            db.execute("RELEASE batch" if problem is None else "ROLLBACK TO batch; RELEASE batch")
            problems.append(problem)
    return problems


def _problem(work: Callable[[], None]) -> Exception | None:
    try:
        work()
    except Exception as error:
        return error
    return None


def save(db: apsw.Connection, session_id: str, events: Sequence[SessionEvent]) -> None:
    """Append what is new of ``events``, in one transaction, if they continue what is stored.

    Raises:
        SessionTaken: another event has one of the numbers.
        SessionNotFound: the session is not stored, and they do not begin it.
    """
    bodies = [to_json(event) for event in events]
    with transaction(db, "IMMEDIATE"):
        _append(db, session_id, events, bodies)


def _append(db: apsw.Connection, session_id: str, events: Sequence[SessionEvent], bodies: Sequence[str]) -> None:
    found = _row(db, session_id)
    if found is None and events[0].seq > 1:
        raise SessionNotFound(
            f"session {session_id!r} is not stored any more: somebody deleted it; open a new one",
            source=ErrorSource.STORAGE,
        )
    key, row = found or (_new_key(db), _Row(session_id))
    newest = db.execute("SELECT ifnull(max(seq), 0) FROM events WHERE session = ?", (key,)).get
    for event, body in zip(events, bodies, strict=True):
        if event.seq <= newest:
            _compare(db, key, row, event.seq, body)
            continue
        if event.seq != newest + 1:
            raise Refused(f"event {event.seq} of session {session_id!r} cannot follow event {newest}")
        newest = event.seq
        check = checksum(session_id, event.seq, body)
        db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (key, event.seq, check, body))
        row = row.adding(event, check)
    fields_of_row = attrs.astuple(row)
    db.execute(
        f"REPLACE INTO sessions (key, checksum, {_COLUMNS}) VALUES (?, ?, {_SLOTS})",
        (key, checksum(*fields_of_row), *fields_of_row),
    )


def _compare(db: apsw.Connection, key: int, row: _Row, seq: int, body: str) -> None:
    """Let a retry pass: the same event under its number."""
    if db.execute("SELECT body FROM events WHERE session = ? AND seq = ?", (key, seq)).get != body:
        raise SessionTaken.written(row.session_id, seq)


def _new_key(db: apsw.Connection) -> int:
    return int(db.execute("SELECT ifnull(max(key), 0) + 1 FROM sessions").get)


def load(db: apsw.Connection, session_id: str) -> tuple[SessionEvent, ...] | None:
    """All events, each checked."""
    with transaction(db, "DEFERRED"):
        found = _row(db, session_id)
        if found is None:
            return None
        key, row = found
        stored = db.execute("SELECT seq, checksum, body FROM events WHERE session = ? ORDER BY seq", (key,))
        return tuple(_checked(row, stored))


def _checked(row: _Row, stored: Iterator[tuple[int, int, str]]) -> Iterator[SessionEvent]:
    count = total = 0
    for seq, check, body in stored:
        if checksum(row.session_id, seq, body) != check:
            raise Refused(f"event {seq} of session {row.session_id!r} is damaged; restore the file from a backup")
        count, total = count + 1, total + check
        yield _event(row.session_id, seq, body)
    if (count, wrap(total)) != (row.event_count, row.events_sum):
        raise Refused(
            f"session {row.session_id!r} should have {row.event_count} events and has {count}, or others; "
            "the file is damaged: restore it from a backup"
        )


def _event(session_id: str, seq: int, body: str) -> SessionEvent:
    try:
        return from_json(SessionEvent, body)
    except (cattrs.BaseValidationError, msgspec.DecodeError, ValueError, TypeError, KeyError) as error:
        raise Refused(
            f"event {seq} of session {session_id!r} is of a kind unknown to this version; update youyou"
        ) from error


def page(db: apsw.Connection, cursor: str | None, limit: int) -> SessionPage:
    """Summaries after ``cursor``, the newest first."""
    wanted = min(max(1, limit), _MOST)
    _check_that_none_are_lost(db)
    after = (math.inf, "") if cursor is None else _parse(cursor)
    clause = "WHERE (updated_at, session_id) < (?, ?) ORDER BY updated_at DESC, session_id DESC LIMIT ?"
    rows = [row for _, row in _rows(db, clause, (*after, wanted + 1))]
    last = rows[wanted - 1] if len(rows) > wanted else None
    return SessionPage(
        [row.summary() for row in rows[:wanted]], f"{last.updated_at} {last.session_id}" if last is not None else None
    )


def _parse(cursor: str) -> tuple[int, str]:
    moment, _, session_id = cursor.partition(" ")
    if not _MOMENT.fullmatch(moment):
        raise Refused(f"{cursor[:80]!r} is not a cursor; pass the next_cursor of a page, or None to begin")
    return int(moment), session_id


def find(db: apsw.Connection, query: str) -> tuple[SessionSummary, ...]:
    """Summaries whose id begins with ``query`` or whose title holds it, the newest first."""
    wanted = fold(query)
    _check_that_none_are_lost(db)
    rows = [row for _, row in _rows(db, "ORDER BY updated_at DESC, session_id DESC", ())]
    return tuple(row.summary() for row in rows if row.session_id.startswith(query) or wanted in fold(row.title))


def delete(db: apsw.Connection, session_id: str) -> None:
    """Remove the session and its events."""
    with transaction(db, "IMMEDIATE"):
        for (key,) in [*db.execute("DELETE FROM sessions WHERE session_id = ? RETURNING key", (session_id,))]:
            db.execute("DELETE FROM events WHERE session = ?", (key,))
        db.execute("DELETE FROM claims WHERE session_id = ?", (session_id,))

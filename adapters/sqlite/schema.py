"""The tables of a youyou database file: how it is recognised, created and brought up to date.

A file is ours if its ``application_id`` says so; ``user_version`` counts the migrations that it has had. A file that is
not ours, or newer than this version, is never written to. Everything here runs in the connection's own thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import Refused
from .transaction import transaction

if TYPE_CHECKING:
    import apsw

APPLICATION_ID = 0x59596F75
"""Stands in the file's header ("YYou"), where the ``file`` command and every SQLite tool can see it."""

# Rows of sessions and events carry checksums, because SQLite checks the structure of a page and not what is in it.
_FIRST = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, message_count INTEGER NOT NULL, event_count INTEGER NOT NULL,
    events_sum INTEGER NOT NULL, checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_time ON sessions (updated_at, session_id);
CREATE TABLE events (
    session INTEGER NOT NULL, seq INTEGER NOT NULL, checksum INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_seq ON events (session, seq);
CREATE TABLE memories (
    key INTEGER PRIMARY KEY, namespace TEXT NOT NULL, id TEXT NOT NULL, content TEXT NOT NULL, source TEXT NOT NULL,
    tags TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, checksum INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX memories_by_id ON memories (namespace, id);
CREATE INDEX memories_by_time ON memories (namespace, updated_at, id);
CREATE VIRTUAL TABLE memory_terms USING fts5 (
    terms, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);
"""

_CLAIMS = """
CREATE TABLE claims (
    session_id TEXT NOT NULL PRIMARY KEY, owner TEXT NOT NULL, address TEXT NOT NULL, epoch INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_owner ON claims (owner);
"""

MIGRATIONS: tuple[str, ...] = (_FIRST, _CLAIMS)
"""What each version adds. A file of version n has had the first n; each is applied whole or not at all."""


def prepare(db: apsw.Connection, synchronous: str) -> None:
    """Check that the file is ours or empty, bring it up to date and set how it is written.

    Raises:
        Refused: it is somebody else's, newer, read-only or cannot have a write-ahead log.
    """
    # Before anything else: a file that is not ours must not even have its journal mode changed.
    with transaction(db, "DEFERRED"):
        version = _version(db)
    _refuse_read_only(db)
    if version < len(MIGRATIONS):
        _migrate(db)
    mode = db.execute("PRAGMA journal_mode = WAL").get
    if mode not in ("wal", "memory"):
        raise Refused("its file system cannot hold a write-ahead log; put the file on a local disk")
    db.execute(f"PRAGMA synchronous = {synchronous}").get  # noqa: B018 - get reads the answer
    db.execute("PRAGMA journal_size_limit = 16777216").get  # noqa: B018 - as above


def _version(db: apsw.Connection) -> int:
    """How many migrations the file has had. To be called in a transaction: another process may be creating it."""
    found, version, tables = (
        db.execute(query).get
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_schema")
    )
    if (found, version, tables) != (0, 0, 0) and found != APPLICATION_ID:
        raise Refused("it is a database of another program; give youyou a file of its own")
    if version > len(MIGRATIONS):
        raise Refused(
            f"it was written by a newer youyou (schema {version}, this one knows {len(MIGRATIONS)}); update youyou"
        )
    return int(version)


def _refuse_read_only(db: apsw.Connection) -> None:
    if db.readonly("main"):
        raise Refused("it is read-only; make the file and its directory writable")


def _migrate(db: apsw.Connection) -> None:
    with transaction(db, "IMMEDIATE"):
        # Once more under the lock: another process may have been faster.
        for step in MIGRATIONS[_version(db) :]:
            db.execute(step)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {len(MIGRATIONS)}")

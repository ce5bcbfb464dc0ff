"""The right to open a session, as rows (semantics 7, "Claims").

Functions of a connection, run in its thread. A row stays when its claim is released, so that the epoch only grows; it
goes with its session. Times are those of the machine's clock: they decide how long others wait, never who may write.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core.ports.protocols import SessionClaim
from ...messages.errors import SessionTaken
from .owners import OwnerLocks
from .transaction import transaction

if TYPE_CHECKING:
    import apsw


def claim(
    db: apsw.Connection, locks: OwnerLocks, session_id: str, owner: str, address: str, ttl_ms: int, steal: bool
) -> SessionClaim:
    """Give the session to ``owner``.

    Raises:
        SessionTaken: another owner has it, and lives.
    """
    locks.hold(owner)
    with transaction(db, "IMMEDIATE"):
        now = _now_ms()
        select = "SELECT owner, address, epoch, expires_at FROM claims WHERE session_id = ?"
        holder, where, epoch, expires = next(iter([*db.execute(select, (session_id,))]), ("", "", 0, 0))
        if holder != owner and expires > now and not steal and not locks.is_dead(holder):
            raise SessionTaken.held(session_id, holder, where, expires - now)
        fields = session_id, owner, address, epoch + 1, now + ttl_ms
        db.execute("REPLACE INTO claims (session_id, owner, address, epoch, expires_at) VALUES (?, ?, ?, ?, ?)", fields)
    return SessionClaim(epoch + 1, datetime.fromtimestamp((now + ttl_ms) / 1000, UTC))


def renew(db: apsw.Connection, owner: str, epochs: Mapping[str, int], ttl_ms: int) -> tuple[str, ...]:
    """Prolong the claims of ``owner``; the ids of those that it no longer has."""
    update = "UPDATE claims SET expires_at = ? WHERE session_id = ? AND owner = ? AND epoch = ? RETURNING epoch"
    with transaction(db, "IMMEDIATE"):
        expires = _now_ms() + ttl_ms
        return tuple(
            session_id
            for session_id, epoch in epochs.items()
            if not [*db.execute(update, (expires, session_id, owner, epoch))]
        )


def release(db: apsw.Connection, locks: OwnerLocks, session_id: str, owner: str, epoch: int | None) -> None:
    """End a claim. The last one of an owner gives up its lock, too."""
    with transaction(db, "IMMEDIATE"):
        ended = "UPDATE claims SET expires_at = 0 WHERE session_id = ? AND owner = ? AND epoch = ifnull(?, epoch)"
        db.execute(ended, (session_id, owner, epoch))

        others = db.execute("SELECT count(*) FROM claims WHERE owner = ? AND expires_at > 0", (owner,)).get
    if not others:
        locks.release(owner)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

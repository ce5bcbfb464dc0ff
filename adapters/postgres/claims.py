"""The right to open a session, as rows (semantics 7, "Claims").

Times are those of the server's clock alone: no process compares its own with another's. Epochs come from one sequence,
so that they grow also where a session was deleted in between.
"""

from __future__ import annotations

from datetime import UTC
from math import ceil

from ...core.ports.protocols import SessionClaim
from ...messages.errors import SessionTaken
from .connection import Database

_TTL = "%s * interval '1 millisecond'"


async def claim(
    database: Database, session_id: str, owner: str, address: str, ttl_ms: int, steal: bool
) -> SessionClaim:
    """Give the session to ``owner``.

    Raises:
        SessionTaken: another owner has it, and its claim has not run out.
    """
    while True:
        granted = await database.run(
            "INSERT INTO {s}.claims AS c (session_id, owner, address, epoch, expires_at) "
            f"VALUES (%s, %s, %s, nextval('{{s}}.epochs'), clock_timestamp() + {_TTL}) "
            "ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, address = excluded.address, "
            "epoch = excluded.epoch, expires_at = excluded.expires_at "
            "WHERE c.expires_at <= clock_timestamp() OR c.owner = excluded.owner OR %s RETURNING epoch, expires_at",
            (session_id, owner, address, ttl_ms, steal),
        )
        if granted:
            ((epoch, expires_at),) = granted
            return SessionClaim(epoch, expires_at.astimezone(UTC))
        held = await database.run(
            "SELECT owner, address, extract(epoch FROM expires_at - clock_timestamp()) * 1000 FROM {s}.claims "
            "WHERE session_id = %s AND expires_at > clock_timestamp()",
            (session_id,),
        )
        for holder, where, left in held:
            raise SessionTaken.held(session_id, holder, where, ceil(left))
        # Between the two statements it was released, or ran out.


async def release(database: Database, session_id: str, owner: str, epoch: int | None) -> None:
    """End a claim. None: whatever claim ``owner`` has of the session."""
    await database.run(
        "DELETE FROM {s}.claims WHERE session_id = %s AND owner = %s AND epoch = coalesce(%s::bigint, epoch)",
        (session_id, owner, epoch),
    )

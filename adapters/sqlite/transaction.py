"""A block of statements that happen together. Runs in the connection's thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw


@contextmanager
def transaction(db: apsw.Connection, mode: str) -> Iterator[None]:
    """Everything in the block or nothing. ``mode``: DEFERRED to read one state of the file, IMMEDIATE to write."""
    db.execute(f"BEGIN {mode}")
    try:
        yield
        db.execute("COMMIT")
    finally:
        # A failed or interrupted statement has at times rolled back by itself.
        if db.in_transaction:
            db.execute("ROLLBACK")

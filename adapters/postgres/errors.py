"""The one boundary at which PostgreSQL's errors become errors of youyou (semantics 3).

with errors_of(StorageError, "sessions in postgres"):
    ...                                 # whatever psycopg raises leaves as a StorageError that says what to do
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from ...messages.errors import AgentError
from ..extras import import_extra

TAKEN, NOT_STORED, GAP = "YY001", "YY002", "YY003"
"""What the function ``append`` of the schema raises: another writer; no such session; a gap in the numbers."""

_ADVICE = {
    "53100": "the server's disk is full; free some space - nothing of this call was stored",
    "53300": "the server has no connection left; raise max_connections or lower connections=",
    "57014": "the server cancelled the statement; raise its statement_timeout",
    "42501": "the role may not do this; grant it CREATE on the database, or USAGE and all privileges on the schema",
    "28P01": "the password is wrong; correct it in the dsn",
    "3D000": "the database does not exist; create it first",
    "25006": "the server takes no writes (a replica?); point the dsn at the primary",
}
_AGAIN = ("08", "53", "57", "40")
"""Classes of errors that may be gone at the next try: connection, resources, operator, serialization."""


class Refused(Exception):
    """Inside the adapter: why the database or what is in it cannot be used, and what to do instead."""


def require_psycopg() -> ModuleType:
    """The psycopg module, imported on first use.

    Raises:
        InvalidConfig: it is not installed, or cannot be loaded.
    """
    return import_extra("psycopg", "postgres")


@contextmanager
def errors_of(kind: type[AgentError], where: str) -> Iterator[None]:
    """Turn what the server, the connection or the content is to blame for into ``kind``. Other exceptions pass."""
    psycopg = require_psycopg()
    try:
        yield
    except Refused as refusal:
        raise kind(f"{where}: {refusal}") from refusal.__cause__
    except psycopg.Error as error:
        state = error.sqlstate or ""
        said = " ".join(str(error).split())
        again = isinstance(error, psycopg.OperationalError) or state.startswith(_AGAIN)
        raise kind(f"{where}: {_ADVICE.get(state, f'PostgreSQL says: {said}')}", retryable=again) from error
    except UnicodeEncodeError as error:
        raise kind(f"{where}: text with half a surrogate pair cannot be stored; replace it first") from error

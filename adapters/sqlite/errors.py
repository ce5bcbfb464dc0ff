"""The one boundary at which SQLite's errors become errors of youyou (semantics 3).

with errors_of(StorageError, path):
    ...                                 # whatever apsw raises leaves as a StorageError that says what to do
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from ...messages.errors import AgentError, InvalidConfig
from ..extras import import_extra


class Refused(Exception):
    """Inside the adapter: why a file or what is in it cannot be used, and what to do instead."""


def require_apsw() -> ModuleType:
    """The apsw module, imported on first use.

    Raises:
        ModuleNotFoundError: the extra is not installed.
        InvalidConfig: it is installed and cannot be loaded.
    """
    try:
        apsw = import_extra("apsw", "sqlite")
        import_extra("apsw.aio", "sqlite")
    except InvalidConfig as error:
        if not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        raise ModuleNotFoundError(error.message, name="apsw") from error
    return apsw


_ADVICE = {
    "NotADBError": "it is not a SQLite database; give youyou a file of its own",
    "CorruptError": "it is damaged; restore it from a backup or move it away",
    "ReadOnlyError": "it is read-only; make the file and its directory writable",
    "FullError": "the disk is full; free some space - nothing of this call was stored",
    "BusyError": "another program holds its lock; end that program or try again",
    "CantOpenError": "it cannot be opened; check that it is a file that you may read and write",
    "IOError": "reading or writing it failed; check the disk, or restore the file from a backup",
    "TooBigError": "a value in it exceeds SQLite's limit of a billion bytes",
}
_WORTH_A_RETRY = frozenset({"FullError", "BusyError", "IOError", "NoMemError"})


def _explain(error: Exception, path: str) -> str:
    directory = os.path.dirname(os.path.abspath(path))
    if type(error).__name__ == "CantOpenError" and not os.path.isdir(directory):
        return f"the directory {directory!r} does not exist; create it first"
    return _ADVICE.get(type(error).__name__, f"SQLite says: {error}")


@contextmanager
def errors_of(kind: type[AgentError], path: str) -> Iterator[None]:
    """Turn what SQLite, the file or its content is to blame for into ``kind``. Other exceptions pass."""
    apsw = require_apsw()
    try:
        yield
    except Refused as refusal:
        raise kind(f"{path}: {refusal}") from refusal.__cause__
    except apsw.Error as error:
        again = type(error).__name__ in _WORTH_A_RETRY
        raise kind(f"{path}: {_explain(error, path)}", retryable=again) from error
    except OverflowError as error:
        raise kind(f"{path}: a number is beyond the 63 bits that SQLite takes; pass a smaller one") from error
    except UnicodeDecodeError as error:
        raise kind(f"{path}: {_ADVICE['CorruptError']}") from error
    except UnicodeEncodeError as error:
        raise kind(f"{path}: text with half a surrogate pair cannot be stored; replace it first") from error

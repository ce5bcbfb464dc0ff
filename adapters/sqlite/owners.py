"""Whether the owner of a session is alive, told by a lock of the operating system on a file (semantics 7).

An owner holds the lock of a file of its own, beside the database, as long as it has a claim. The system lets go of the
lock when the process ends, however it ends; a process id would tell less, since ids come again. Nothing is decided
by it but whether a claim still counts.

    locks = OwnerLocks("chat.db")
    locks.hold("owner-1")               # a file "chat.db-owner-owner-1" that nobody else can lock
    locks.is_dead("owner-2")            # no such file, or nobody holds it
"""

from __future__ import annotations

import os
from contextlib import suppress

import attrs

try:
    import fcntl
except ImportError:  # Windows: the lease alone tells
    fcntl = None  # type: ignore[assignment]  # looked at before each use


@attrs.define(eq=False)
class OwnerLocks:
    """The lock files beside one database. Used in its connection's thread."""

    path: str
    _held: dict[str, int] = attrs.field(factory=dict, init=False)

    @property
    def works(self) -> bool:
        """Whether there are such locks here; else an owner is thought alive until its claim runs out."""
        return fcntl is not None and os.path.isabs(self.path)

    def hold(self, owner: str) -> None:
        """Lock the file of ``owner``, which is ours. Again is fine."""
        if not self.works or owner in self._held:
            return
        with suppress(OSError):  # a file system without locks: the lease alone tells
            self._held[owner] = _locked(self._file_of(owner), os.O_CREAT)

    def is_dead(self, owner: str) -> bool:
        """Whether nobody holds the lock of ``owner``. False where it cannot be told."""
        if not self.works or owner in self._held:
            return False
        path = self._file_of(owner)
        try:
            lock = _locked(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        _remove(path, lock)
        return True

    def release(self, owner: str) -> None:
        """Let go of the lock of ``owner``. One that is not held is not an error."""
        if (lock := self._held.pop(owner, None)) is not None:
            _remove(self._file_of(owner), lock)

    def release_all(self) -> None:
        """Let go of every lock that is held here."""
        for owner in tuple(self._held):
            self.release(owner)

    def __del__(self) -> None:
        self.release_all()

    def _file_of(self, owner: str) -> str:
        return f"{self.path}-owner-{''.join(c if c.isalnum() else '_' for c in owner)[:80]}"


def _locked(path: str, flags: int = 0) -> int:
    """The file at ``path``, open and locked. Raises OSError where somebody else holds the lock."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    try:
        # Of the open file, not of the process: two agents of one process stand in each other's way, as they must.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _remove(path: str, lock: int) -> None:
    # Removed before it is let go of: afterwards it might be locked by somebody who looks.
    with suppress(OSError):
        os.unlink(path)
    os.close(lock)

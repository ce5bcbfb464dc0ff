"""A folder of a simulated program: real files, a journal of what was done to them, and what a crash leaves.

    async def scenario(sim):
        disk = sim.disk()
        path = disk.path / "settings.json"
        await trio.Path(path).write_text("{}")          # lost in a crash: nobody synced it

    async def recover(sim):
        disk = sim.disk()                               # as one of the crashes left it

    sweep(scenario, cancel=None, crash=recover)

`open`, `os.open`, `os.replace`, `os.fsync` and their like are watched for paths below ``disk.path``
by whatever way; code in C that writes files by itself, such as SQLite, is not seen.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

import attrs

from .journal import Journal, Op, Tree


@attrs.define(eq=False)
class Disk:
    """One simulated folder. Made by `Simulation.disk`."""

    _call: Callable[[str], None]
    path: Path = attrs.field(init=False)
    """Where the files are: a folder that exists for the length of this run."""
    capacity: int | None = None
    """Bytes that fit; a write beyond them is an ``ENOSPC``, as on a full disk. None: any number."""
    journal: Journal = attrs.field(factory=Journal)
    _written: int = 0
    _cleanup: weakref.finalize[..., Disk] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="youyou-disk-")).resolve()
        self._cleanup = weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)

    def fill(self, tree: Tree) -> None:
        """Put ``tree`` there as what is safe. Sync."""
        for path, data in sorted(tree.items()):
            place = self.path / path
            if data is None:
                place.mkdir(parents=True, exist_ok=True)
                self.journal.names[path] = None
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
                inode = place.stat().st_ino
                self.journal.names[path], self.journal.contents[inode] = inode, data

    def crash_states(self) -> list[Tree]:
        """What a crash now may leave (see the module `journal`)."""
        return self.journal.crash_states()

    def close(self) -> None:
        """Remove the folder. Sync, idempotent."""
        self._cleanup()

    def inside(self, path: str) -> str | None:
        """``path`` relative to the folder, with slashes; None if it lies elsewhere."""
        folder = str(self.path)
        if path == folder:
            return ""
        return path[len(folder) + 1 :].replace(os.sep, "/") if path.startswith(folder + os.sep) else None

    def call(self, method: str) -> None:
        """One file operation is about to be made: the plan of faults may break it.

        Raises:
            OSError: ``EIO``, where it is broken.
        """
        self._call(method)

    def room_for(self, size: int) -> int:
        """How many of ``size`` bytes fit.

        Raises:
            OSError: ``ENOSPC``, if not a single one does.
        """
        if self.capacity is None:
            return size
        room = min(size, self.capacity - self._written)
        if room <= 0 < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return room

    def note(self, op: Op) -> None:
        """An operation was done."""
        if op.kind == "write":
            self._written += len(op.data)
        self.journal.note(op)

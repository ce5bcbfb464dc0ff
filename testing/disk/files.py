"""Watches the file functions of Python for the folders of simulated disks, and leaves every other path alone.

Replaced while a simulation runs, in the modules where everybody looks them up; a path elsewhere goes straight to the
real function. Dispatch is by path and not by thread, because Trio's files work in threads.
"""

from __future__ import annotations

import builtins
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .disk import Disk
from .journal import Op

_lock = threading.Lock()
_watchers = 0
_disks: list[Disk] = []
_open_files: dict[int, tuple[Disk, int, str]] = {}
"""Disk, inode and path of each file descriptor that was opened below a disk; a directory has inode 0."""
_real_open = io.open
_real: dict[str, Any] = {}


@contextmanager
def watching() -> Iterator[None]:
    """Watch Python's file functions in here, for disks that are added meanwhile.

    Around a whole run and not from the first disk on: in ``open(sim.disk().path)`` the function is looked up before its
    argument makes the disk.
    """
    global _watchers
    with _lock:
        _watchers += 1
        if _watchers == 1:
            _replace()
    try:
        yield
    finally:
        with _lock:
            _watchers -= 1
            if not _watchers:
                _restore()


def add(disk: Disk) -> None:
    """Note from now on what happens below ``disk.path``. Sync."""
    _disks.append(disk)


def remove(disk: Disk) -> None:
    """Note no more of it. Sync."""
    _disks.remove(disk)
    for fd in [fd for fd, (owner, _, _) in _open_files.items() if owner is disk]:
        del _open_files[fd]


def _replace() -> None:
    builtins.open = io.open = _open
    for name, function in _FUNCTIONS.items():
        _real[name] = getattr(os, name)
        setattr(os, name, function)


def _restore() -> None:
    builtins.open = io.open = _real_open
    for name in _FUNCTIONS:
        setattr(os, name, _real[name])


def _find(path: Any) -> tuple[Disk, str] | None:
    """The disk and the place on it, if ``path`` lies on one."""
    if not _disks or isinstance(path, int):
        return None
    try:
        text = os.path.abspath(os.fsdecode(os.fspath(path)))
    except TypeError:
        return None
    for disk in _disks:
        place = disk.inside(text)
        if place is not None:
            return disk, place
    return None


def _open(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """As `open`; a file on a disk is written through `WatchedFile`."""
    found = _find(file)
    if found is None and not (isinstance(file, int) and file in _open_files):
        return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    writes = any(letter in mode for letter in "wax+")
    if not writes:
        return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    binary = "b" in mode
    if binary and encoding is not None:
        raise ValueError("binary mode doesn't take an encoding argument")
    if not binary and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    raw = WatchedFile(file, "".join(letter for letter in mode if letter in "rwax+"), closefd, opener)
    if binary and buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    buffered: Any = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
    if binary:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
    text.mode = mode  # type: ignore[misc]  # as io.open does
    return text


class WatchedFile(io.FileIO):
    """A file on a disk: each write that reaches the operating system is noted."""

    def __init__(self, file: Any, mode: str, closefd: bool, opener: Any) -> None:
        found = _find(file)
        if found is None:
            super().__init__(file, mode, closefd, opener)
            self._disk, self._inode, self._place = _open_files[file]
            return
        disk, place = found
        disk.call("open")
        is_new = opener is None and not os.path.lexists(file)
        super().__init__(file, mode, closefd, opener)
        inode = os.fstat(self.fileno()).st_ino
        self._disk, self._inode, self._place = disk, inode, place
        _open_files[self.fileno()] = (disk, inode, place)
        if is_new:
            disk.note(Op("create", inode, place))
        elif "w" in mode:
            disk.note(Op("truncate", inode))

    def write(self, data: Any, /) -> int:
        view = bytes(data)
        self._disk.call("write")
        view = view[: self._disk.room_for(len(view))]
        at_end = "a" in self.mode
        offset = os.fstat(self.fileno()).st_size if at_end else self.tell()
        written = super().write(view)
        self._disk.note(Op("write", self._inode, offset=offset, data=view[:written]))
        return written

    def truncate(self, size: int | None = None, /) -> int:
        self._disk.call("truncate")
        length = super().truncate(size)
        self._disk.note(Op("truncate", self._inode, offset=length))
        return length

    def close(self) -> None:
        if not self.closed and self.closefd:
            _open_files.pop(self.fileno(), None)
        super().close()


# Functions of `os`.


def _os_open(path: Any, flags: int, mode: int = 0o777, **kwargs: Any) -> int:
    found = _find(path)
    if found is None:
        return int(_real["open"](path, flags, mode, **kwargs))
    disk, place = found
    disk.call("open")
    is_new = not os.path.lexists(path)
    fd = int(_real["open"](path, flags, mode, **kwargs))
    is_folder = os.path.isdir(path)
    inode = 0 if is_folder else os.fstat(fd).st_ino
    _open_files[fd] = (disk, inode, place)
    if is_new:
        disk.note(Op("create", inode, place))
    elif flags & os.O_TRUNC and not is_folder:
        disk.note(Op("truncate", inode))
    return fd


def _os_write(fd: int, data: Any) -> int:
    if fd not in _open_files:
        return int(_real["write"](fd, data))
    disk, inode, _ = _open_files[fd]
    disk.call("write")
    view = bytes(data)
    view = view[: disk.room_for(len(view))]
    offset = os.lseek(fd, 0, os.SEEK_CUR)
    written = int(_real["write"](fd, view))
    disk.note(Op("write", inode, offset=offset, data=view[:written]))
    return written


def _os_ftruncate(fd: int, length: int) -> None:
    _real["ftruncate"](fd, length)
    if fd in _open_files:
        disk, inode, _ = _open_files[fd]
        disk.note(Op("truncate", inode, offset=length))


def _os_close(fd: int) -> None:
    _open_files.pop(fd, None)
    _real["close"](fd)


def _syncing(name: str) -> Callable[[Any], None]:
    def sync(fd: Any) -> None:
        number = fd if isinstance(fd, int) else fd.fileno()
        if number not in _open_files:
            _real[name](fd)
            return
        # Not the real one: what is safe is decided by the journal, and the real disk need not turn for it.
        disk, inode, place = _open_files[number]
        disk.call("fsync")
        disk.note(Op("sync", inode) if inode else Op("sync_folder", path=place))

    return sync


def _renaming(name: str) -> Callable[..., None]:
    def rename(src: Any, dst: Any, **kwargs: Any) -> None:
        source, target = _find(src), _find(dst)
        if source is None and target is None:
            _real[name](src, dst, **kwargs)
            return
        if source is None or target is None or source[0] is not target[0]:
            raise OSError(18, "a simulated disk is a file system of its own: copy the file instead", src)
        disk = source[0]
        disk.call("rename")
        inode = 0 if os.path.isdir(src) else os.stat(src).st_ino
        _real[name](src, dst, **kwargs)
        disk.note(Op("rename", inode, source[1], target[1]))

    return rename


def _removing(name: str) -> Callable[..., None]:
    def remove(path: Any, **kwargs: Any) -> None:
        found = _find(path)
        if found is None:
            _real[name](path, **kwargs)
            return
        found[0].call("remove")
        _real[name](path, **kwargs)
        found[0].note(Op("remove", path=found[1]))

    return remove


def _os_mkdir(path: Any, mode: int = 0o777, **kwargs: Any) -> None:
    found = _find(path)
    if found is not None:
        found[0].call("mkdir")
    _real["mkdir"](path, mode, **kwargs)
    if found is not None:
        found[0].note(Op("mkdir", path=found[1]))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "open": _os_open,
    "write": _os_write,
    "ftruncate": _os_ftruncate,
    "close": _os_close,
    "fsync": _syncing("fsync"),
    "fdatasync": _syncing("fdatasync"),
    "rename": _renaming("rename"),
    "replace": _renaming("replace"),
    "remove": _removing("remove"),
    "unlink": _removing("unlink"),
    "rmdir": _removing("rmdir"),
    "mkdir": _os_mkdir,
}

"""One connection to one file, in a thread of its own, opened when it is first needed.

Work is a plain function of the connection and runs whole in that thread: a transaction never spans an await. When
the caller is cancelled the function is interrupted at SQLite's next check and what it wrote is rolled back. Knows
nothing of sessions or memories.

    file = DatabaseFile("chat.db", "NORMAL", StorageError)
    await file.run(lambda db: db.execute("SELECT 1").get)
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import trio

from ...messages.errors import AgentError, InvalidConfig
from .errors import Refused, errors_of, require_apsw
from .owners import OwnerLocks
from .schema import prepare

if TYPE_CHECKING:
    import apsw

T = TypeVar("T")

BUSY_SECONDS = 10.0
"""How long a call waits for the lock of another process."""
CLOSE_SECONDS = 5.0
"""How long closing waits for work under way, and for a disk that does not answer."""
_STEPS_BETWEEN_CHECKS = 2_000
_SYNCHRONOUS = ("NORMAL", "FULL")


def _identity_of(path: str) -> tuple[int, int] | None:
    """What tells the file at ``path`` from another one there. None: there is none, or it is not a file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def _absolute(path: str | os.PathLike[str]) -> str:
    # When it is given: a program that changes its directory later means the same file.
    given = os.fspath(path)
    return given if given in (":memory:", "") else os.path.abspath(given)


@attrs.define(eq=False)
class _Call:
    """One piece of work on its way through the thread."""

    work: Callable[[apsw.Connection], Any]
    abandoned: bool = False


def _controller() -> type[Any]:
    from apsw.aio import Trio

    class DaemonController(Trio):
        """Apsw's Trio mode, in a thread that does not outlive the process or mourn the Trio run."""

        def worker_thread_run(self) -> None:
            # Apsw's own thread keeps a process alive whose storage nobody closed.
            threading.Thread(target=self._serve, name="youyou sqlite", daemon=True).start()

        def _serve(self) -> None:
            with suppress(trio.RunFinishedError):
                super().worker_thread_run()  # type: ignore[no-untyped-call]  # apsw leaves it without annotations

    return DaemonController


@attrs.define(eq=False)
class DatabaseFile:
    """The file at ``path``; its errors are raised as ``error``.

    May be entered several times, also at once; it is closed when the last one leaves and opened again by later use.

    Args:
        path: the file. It is created if it is not there; its directory is not.
        synchronous: "NORMAL" or "FULL".
        error: `StorageError` or `MemoryStorageError`.

    Raises:
        InvalidConfig: ``synchronous`` is something else.
        ModuleNotFoundError: apsw is not installed.
    """

    path: str = attrs.field(converter=_absolute)
    synchronous: str
    error: type[AgentError]
    _db: Any = attrs.field(default=None, init=False)
    _run_token: object = attrs.field(default=None, init=False)
    _opening: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _users: int = attrs.field(default=0, init=False)
    _running: _Call | None = attrs.field(default=None, init=False)
    _identity: tuple[int, int] | None = attrs.field(default=None, init=False)
    locks: OwnerLocks = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        require_apsw()
        self.locks = OwnerLocks(self.path)
        if self.synchronous not in _SYNCHRONOUS:
            raise InvalidConfig(f"synchronous is {self.synchronous!r}; pass one of {', '.join(_SYNCHRONOUS)}")

    async def enter(self) -> None:
        """Open now, so that a file that cannot be used is reported now."""
        await self._open_once()
        self._users += 1

    async def leave(self) -> None:
        """Close if this was the last user."""
        self._users -= 1
        if self._users == 0:
            await self.close()
        else:
            await trio.lowlevel.checkpoint()

    async def close(self) -> None:
        """Wait for the work under way and let go of the file. Later use opens it again."""
        db, is_usable, self._db = self._db, self._is_open(), None
        self.locks.release_all()
        if is_usable:
            with errors_of(self.error, self.path):
                await db.aclose()
        else:
            await trio.lowlevel.checkpoint()

    async def run(self, work: Callable[[apsw.Connection], T]) -> T:
        """Have ``work`` done in the connection's thread, after all earlier work.

        Cancellation: a checkpoint. If `trio.Cancelled` comes out, ``work`` was not begun, or is being interrupted and
        its open transaction rolled back, or it was just finished; later calls see which.
        """
        from apsw import aio

        with errors_of(self.error, self.path):
            db = self._db if self._is_open() else await self._open_once()
            call = _Call(work)
            try:
                # Trio's cancellation is enough: apsw would time calls by its own clock, and raise something else.
                with _setting(aio.deadline, math.inf):
                    return await db.async_run(self._perform, db, call)  # type: ignore[no-any-return]  # apsw says Any
            except BaseException:
                call.abandoned = True
                raise

    def _perform(self, db: apsw.Connection, call: _Call) -> Any:
        self._running = call
        try:
            self._check_identity()
            return call.work(db)
        finally:
            self._running = None

    def _is_open(self) -> bool:
        # A connection belongs to the Trio run in which it was opened.
        return self._db is not None and self._run_token is trio.lowlevel.current_trio_token()

    async def _open_once(self) -> Any:
        async with self._opening:
            if not self._is_open():
                self._db = await self._open()
                self._run_token = trio.lowlevel.current_trio_token()
        return self._db

    async def _open(self) -> Any:
        apsw = require_apsw()
        with (
            errors_of(self.error, self.path),
            _setting(apsw.async_controller, _controller()),
            _setting(apsw.aio.check_progress_steps, _STEPS_BETWEEN_CHECKS),
            _setting(apsw.aio.deadline, math.inf),
        ):
            db = await apsw.Connection.as_async(self.path)
            opened = False
            try:
                await db.async_run(self._set_up, db)
                opened = True
            finally:
                if not opened:
                    with trio.move_on_after(CLOSE_SECONDS, shield=True):
                        await db.aclose()
        return db

    def _check_identity(self) -> None:
        # An open file that was removed or replaced takes writes that nobody will ever find.
        if self._identity is not None and self._identity != _identity_of(self.path):
            raise Refused(
                "the file was removed or replaced while it was open, so nothing can be stored; put the file back, or "
                "close the storage and open it again"
            )

    def _set_up(self, db: apsw.Connection) -> None:
        db.set_busy_handler(self._wait_for_lock)
        db.execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON")
        self._patiently(lambda: prepare(db, self.synchronous))
        self._identity = _identity_of(self.path)

    def _wait_for_lock(self, attempts: int) -> bool:
        # About a fifth of a millisecond at first, then 10 at most.
        pause = min(0.01, 0.0002 * 2 ** min(attempts, 10))
        if attempts * 0.01 > BUSY_SECONDS or (self._running is not None and self._running.abandoned):
            return False
        time.sleep(pause)
        return True

    def _patiently(self, action: Callable[[], None]) -> None:
        # SQLite does not ask the busy handler where two processes would wait for each other: step back and retry.
        busy = require_apsw().BusyError
        end = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return action()
            except busy:
                if time.monotonic() > end:
                    raise
                time.sleep(0.005)

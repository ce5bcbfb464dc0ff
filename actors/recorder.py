"""The only writer of session storage (semantics 7).

Posting is sync and cannot fail, so that a ``finally`` can post; waiting for the acknowledgement is separate, and is the
back-pressure. Events that arrive during a write go into the next batch. A failed batch stays in place, in order, and is
tried again with the next write.

    mark = recorder.post(session_id, events)
    await recorder.flush(mark)
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ..core.ports import SessionStorage
from ..messages.errors import AgentError, StorageError
from ..messages.records import SessionEvent
from .lifetime import Lifetime
from .mailbox import Reply
from .user_code import UserCodeError, call_user

logger: logging.Logger = logging.getLogger("youyou")

ENDED = "the recorder has ended: the agent is closing"


@attrs.frozen(eq=False)
class _Load:
    session_id: str
    reply: Reply[Sequence[SessionEvent] | AgentError | None]


@attrs.define(eq=False)
class Recorder:
    """Writes, in order, what the others post. Without a storage everything is acknowledged at once."""

    lifetime: Lifetime
    storage: SessionStorage | None
    timeout: float
    unsaved: deque[tuple[str, SessionEvent]] = attrs.Factory(deque)
    posted: int = 0
    saved: int = 0
    peak: int = 0
    _loads: deque[_Load] = attrs.Factory(deque)
    _wanted: bool = False
    failures: int = 0
    failure: AgentError | None = None
    _ending: bool = False
    _ended: bool = False
    _news: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    _acks: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)

    def post(self, session_id: str, events: Sequence[SessionEvent]) -> int:
        """Queue events. Sync, never fails. The mark to wait for."""
        self.posted += len(events)
        if self.storage is None:
            self.saved = self.posted
        else:
            self.unsaved.extend((session_id, event) for event in events)
            self.peak = max(self.peak, len(self.unsaved))
            self._want()
        return self.posted

    async def flush(self, mark: int | None = None) -> None:
        """Wait until everything up to ``mark`` (default: all) is stored.

        Cancellation: a checkpoint. If `trio.Cancelled` comes out, the events are still queued.

        Raises:
            AgentError: an attempt to store them failed; they are tried again with the next write.
        """
        mark = self.posted if mark is None else mark
        await trio.lowlevel.checkpoint()
        failures = self.failures
        self._want()
        while self.saved < mark:
            if self.failures > failures and self.failure is not None:
                raise self.failure
            if self._ended:
                raise StorageError(ENDED)
            await self._acks.park()

    async def load(self, session_id: str) -> Sequence[SessionEvent] | None:
        """Read a session, after everything that was posted before. A checkpoint.

        Raises:
            AgentError: the storage failed.
        """
        if self._ended:
            raise StorageError(ENDED)
        answering, waiting = trio.open_memory_channel[Sequence[SessionEvent] | None | AgentError](1)
        with waiting:
            self._loads.append(_Load(session_id, Reply(answering)))
            self._want()
            try:
                answer = await waiting.receive()
            except trio.EndOfChannel:
                answer = StorageError(ENDED)
        if isinstance(answer, AgentError):
            raise answer
        return answer

    def close(self) -> None:
        """No more posts will come. Sync."""
        self._ending = True
        self._want()

    def _want(self) -> None:
        self._wanted = True
        self._news.unpark_all()

    @enable_ki_protection
    async def run(self) -> None:
        """The actor."""
        try:
            while True:
                while not self._wanted:
                    await self._news.park()
                self._wanted = False
                if self.unsaved:
                    await self._write()
                while self._loads:
                    await self._read(self._loads.popleft())
                if self._ending and not self._wanted:
                    return
        finally:
            self._ended = True
            while self._loads:
                self._loads.popleft().reply.close()
            if self.unsaved:
                self._fail(StorageError(f"{len(self.unsaved)} events were not stored before the agent ended"))

    async def _write(self) -> None:
        """One attempt at the longest run of events of one session."""
        session_id = self.unsaved[0][0]
        batch = []
        for owner, event in self.unsaved:
            if owner != session_id:
                self._wanted = True
                break
            batch.append(event)
        if await self._save(session_id, tuple(batch)):
            for _ in batch:
                self.unsaved.popleft()
            self.saved += len(batch)
            self._acks.unpark_all()

    async def _save(self, session_id: str, batch: tuple[SessionEvent, ...]) -> bool:
        assert self.storage is not None
        with self.lifetime.records(), trio.move_on_after(self.timeout):
            try:
                await call_user(self.lifetime, self.storage.save_events, session_id, batch)
            except UserCodeError as error:
                self._fail(_storage_error("saving", error))
                return False
            return True
        self._fail(StorageError(f"saving took longer than {self.timeout:g} s; it is tried again with the next write"))
        return False

    def _fail(self, error: AgentError) -> None:
        # All who wait learn of it: order is kept, so nothing behind the failed batch can be stored before it.
        self.failure = error
        self.failures += 1
        logger.warning("%s", error)
        self._acks.unpark_all()

    async def _read(self, load: _Load) -> None:
        with load.reply as reply:
            if self.storage is None:
                reply.answer(None)
                return
            with trio.move_on_after(self.timeout), self.lifetime.work():
                try:
                    reply.answer(await call_user(self.lifetime, self.storage.load_session, load.session_id))
                except UserCodeError as error:
                    reply.answer(_storage_error("loading", error))
                return
            reply.answer(StorageError(f"loading took longer than {self.timeout:g} s"))


def _storage_error(doing: str, error: UserCodeError) -> AgentError:
    if isinstance(error.cause, AgentError):
        return error.cause
    failure = StorageError(f"{doing} failed: {error}; see what the storage says")
    failure.__cause__ = error.cause
    return failure

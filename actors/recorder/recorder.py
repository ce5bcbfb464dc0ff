"""The only writer of session storage (semantics 7).

Posting is sync and cannot fail, so that a ``finally`` can post; waiting for the acknowledgement is separate, and is the
back-pressure. Events that arrive during a write go into the next batch. A failed batch stays in place, in order, and is
tried again with the next write; one session that cannot be stored does not hold up another. A log that another owner
has written into, or that is gone, is lost: nothing of it is tried again.

    log = recorder.log_of(session_id)
    mark = recorder.post(log, events)
    await recorder.flush(log, mark)
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.ports.answer_checks import events_of
from ...core.ports.protocols import SessionStorage
from ...messages.errors import AgentError, ErrorCode, ErrorSource, StorageError
from ...messages.records import SessionEvent
from ..shared.lifetime import Lifetime
from ..shared.mailbox import Reply
from ..shared.user_code import UserCodeError, call_sync, call_user
from .session_log import SessionLog

logger: logging.Logger = logging.getLogger("youyou.storage")

ENDED = "the recorder has ended: the agent is closing"
FINAL = frozenset({ErrorCode.SESSION_TAKEN, ErrorCode.SESSION_NOT_FOUND})
"""What a storage says of a log that cannot go on."""


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
    peak: int = 0
    failures: int = 0
    _pending: dict[str, SessionLog] = attrs.Factory(dict)  # those with unsaved events, the longest waiting first
    _loads: deque[_Load] = attrs.Factory(deque)
    _dirty: bool = False
    _ending: bool = False
    _ended: bool = False
    _wake: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)

    @property
    def unsaved(self) -> int:
        """How many events wait to be stored."""
        return sum(len(log.unsaved) for log in self._pending.values())

    def log_of(self, session_id: str) -> SessionLog:
        """Where to post a session's events. One that was closed before all was stored goes on with the rest. Sync."""
        return self._pending.get(session_id) or SessionLog(session_id)

    def post(self, log: SessionLog, events: Sequence[SessionEvent]) -> int:
        """Queue events. Sync, never fails. The mark to wait for."""
        log.posted += len(events)
        if self.storage is not None and events and log.lost is None:
            # The one queue without a bound, on purpose: a `finally` posts, so posting must be sync and cannot fail.
            # A caller that must not run ahead waits for the acknowledgement.
            log.unsaved.extend(events)
            self._pending[log.session_id] = log
            self.peak = max(self.peak, self.unsaved)
            self._request_write(log)
        return log.posted

    async def flush(self, log: SessionLog, mark: int | None = None) -> None:
        """Wait until everything up to ``mark`` (default: all) is stored.

        Cancellation: a checkpoint. If `trio.Cancelled` comes out, the events are still queued.

        Raises:
            AgentError: an attempt to store them failed; they are tried again with the next write.
        """
        # As of now: what is posted while we wait is another caller's business, or a busy session would never be
        # acknowledged.
        mark = log.posted if mark is None else mark
        failures = log.failures
        await trio.lowlevel.checkpoint()
        # Nothing is left to write without a storage, or when a write took it along: then nobody is woken for nothing.
        if log.saved < mark and not log.writing:
            self._request_write(log)
        while log.saved < mark or log.lost is not None:
            if log.lost is not None:
                raise log.lost
            if self._ended:
                raise StorageError(ENDED)
            if log.failures == failures:
                await log.acks.park()
            # Also where another attempt has succeeded since: whether it did by now is a matter of scheduling.
            if log.failures > failures and log.failure is not None:
                raise log.failure

    async def flush_all(self) -> None:
        """Flush every session. Each is tried, whatever the outcome of the others.

        Raises:
            AgentError: the first failure.
        """
        await trio.lowlevel.checkpoint()
        errors: list[AgentError] = []
        for log in tuple(self._pending.values()):
            try:
                await self.flush(log)
            except AgentError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def load(self, session_id: str) -> Sequence[SessionEvent] | None:
        """Read a session, after everything that was posted before. A checkpoint.

        Raises:
            AgentError: the storage failed.
        """
        if self._ended:
            raise StorageError(ENDED)
        if self.storage is None:
            await trio.lowlevel.checkpoint()
            return None
        answering, waiting = trio.open_memory_channel[Sequence[SessionEvent] | None | AgentError](1)
        with waiting:
            self._loads.append(_Load(session_id, Reply(answering)))
            self._request_write(self._pending.get(session_id))
            try:
                answer = await waiting.receive()
            except trio.EndOfChannel:
                answer = StorageError(ENDED)
        if isinstance(answer, AgentError):
            raise answer
        return answer

    def lose(self, log: SessionLog, error: AgentError) -> None:
        """Give up what is not stored of ``log``, for good. Sync, idempotent."""
        if log.lost is None:
            self.failures += 1
            logger.error("session %s is lost to this agent: %s", log.session_id, error)
            self._pending.pop(log.session_id, None)
            log.lose(error)

    def retract(self, log: SessionLog, mark: int) -> None:
        """Take back what was posted after ``mark``, as far as it is not being written. Sync."""
        log.retract(mark)
        if not log.unsaved:
            self._pending.pop(log.session_id, None)

    def close(self) -> None:
        """No more posts will come. Sync."""
        self._ending = True
        self._request_write()

    def _request_write(self, log: SessionLog | None = None) -> None:
        if log is not None:
            log.request_write()
        self._dirty = True
        self._wake.unpark_all()

    @enable_ki_protection
    async def run(self) -> None:
        """Run the actor until it is closed."""
        try:
            while True:
                while not self._dirty:
                    await self._wake.park()
                self._dirty = False
                # Sessions before loads: a load must see all that was posted before it was asked for.
                for log in [log for log in self._pending.values() if log.dirty]:
                    await self._write(log)
                while self._loads:
                    await self._read(self._loads.popleft())
                if self._ending and not self._dirty:
                    return
        finally:
            self._ended = True
            while self._loads:
                self._loads.popleft().reply.close()
            for log in self._pending.values():
                # Nobody will try again: a task that still waits learns it now instead of hanging.
                self._fail(log, StorageError(f"{len(log.unsaved)} events were not stored before the agent ended"))

    async def _write(self, log: SessionLog) -> None:
        """One attempt at all that waits of one session."""
        log.dirty, log.writing = False, True
        batch = tuple(log.unsaved)
        try:
            stored = await self._save(log, batch)
        finally:
            log.writing = False
        if not stored:
            if not log.unsaved:  # lost, or retracted
                self._pending.pop(log.session_id, None)
            return
        if log.lost is None:  # else a claim ran out during the write
            log.stored(len(batch))
        if not log.unsaved:
            self._pending.pop(log.session_id, None)
        for other in self._pending.values():
            # The storage works again, or this session's batch was at fault and not the storage: the others are worth
            # one more try. One, since a storage may refuse a single session for good.
            other.request_retry()
            self._dirty |= other.dirty

    async def _save(self, log: SessionLog, batch: tuple[SessionEvent, ...]) -> bool:
        assert self.storage is not None
        # The shield may end before the storage's time-out does: both bound the write.
        with self.lifetime.flushing(), trio.move_on_after(self.timeout) as limit:
            try:
                await call_user(self.lifetime, self.storage.save_events, log.session_id, batch)
            except UserCodeError as error:
                failure = storage_error("saving", error)
                if failure.code in FINAL:
                    self.lose(log, failure)
                elif log.replace_unencodable():
                    self._request_write(log)
                else:
                    self._fail(log, failure)
                return False
            return True
        late = f"saving took longer than {self.timeout:g} s; it is tried again with the next write"
        cut = "saving was cut: the time to close the agent is over"
        self._fail(log, StorageError(late if limit.cancelled_caught else cut))
        return False

    def _fail(self, log: SessionLog, error: AgentError) -> None:
        if log.lost is None:
            self.failures += 1
            # Once for as long as it is the same: each attempt is news for those who wait, not for who reads the log.
            logger.log(logging.DEBUG if error == log.told else logging.WARNING, "%s", error)
            log.told = error
            log.fail(error)

    async def _read(self, load: _Load) -> None:
        assert self.storage is not None
        with load.reply as reply:
            with trio.move_on_after(self.timeout), self.lifetime.user_code():
                try:
                    stored = await call_user(self.lifetime, self.storage.load_session, load.session_id)
                    if stored is not None:
                        stored = call_sync(self.lifetime, events_of, stored)
                    reply.send(self.log_of(load.session_id).joined(stored))
                except UserCodeError as error:
                    reply.send(storage_error("loading", error))
                return
            reply.send(StorageError(f"loading took longer than {self.timeout:g} s"))


def storage_error(doing: str, error: UserCodeError) -> AgentError:
    """The error that the host sees of a session storage that raised."""
    if isinstance(error.cause, AgentError):
        return error.cause.reported_by(ErrorSource.STORAGE)
    failure = StorageError(f"{doing} failed: {error}; see what the storage says")
    failure.__cause__ = error.cause
    return failure

"""One session's events on their way to its storage (semantics 7). Counts; knows no storage and no task."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from math import inf

import attrs
import trio

from ...messages.codec import to_json
from ...messages.errors import AgentError
from ...messages.records import Metadata, SessionEvent
from ...messages.text import safe_str

logger: logging.Logger = logging.getLogger("youyou.storage")


@attrs.define(eq=False)
class SessionLog:
    """What is posted and not yet stored, in order. A mark is a number of events ``posted``.

    ``dirty``: a write is asked for. ``writing``: one is under way. ``tried_again``: one failed, and then once more
    while the storage worked for others. ``told``: the failure that was logged last, until a write succeeds.
    ``lost``: why nothing will ever be stored again; ``on_lost`` is told, once.
    """

    session_id: str
    unsaved: deque[SessionEvent] = attrs.Factory(deque)
    posted: int = 0
    dirty: bool = False
    writing: bool = False
    tried_again: bool = False
    failures: int = 0
    failure: AgentError | None = None
    told: AgentError | None = None
    lost: AgentError | None = None
    on_lost: Callable[[AgentError], None] = lambda _: None
    acks: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    _kept: float = inf

    @property
    def saved(self) -> int:
        """The mark up to which everything is stored."""
        return self.posted - len(self.unsaved)

    def request_write(self) -> None:
        """Ask for a write."""
        self.dirty, self.tried_again = True, False

    def request_retry(self) -> None:
        """The storage has worked for another session: worth one more try, if anything failed."""
        if self.failures and not self.tried_again:
            self.dirty = self.tried_again = True

    def stored(self, count: int) -> None:
        """The first ``count`` unsaved events are stored."""
        self.told = None
        for _ in range(count):
            self.unsaved.popleft()
        # All of them: each compares with a mark of its own.
        self.acks.unpark_all()

    def fail(self, error: AgentError) -> None:
        """A write failed: all who wait learn of it, since nothing behind the failed batch can be stored before it."""
        self.failure = error
        self.failures += 1
        self._trim()
        self.acks.unpark_all()

    def replace_unencodable(self) -> bool:
        """Put a note in place of each event that no storage could ever encode. Whether there was one. Sync.

        None comes through the gate for values (semantics 1). Should one be here all the same, it must not hold up the
        whole log forever.
        """
        notes = {index: note for index, event in enumerate(self.unsaved) if (note := _note_instead_of(event))}
        for index, note in notes.items():
            self.unsaved[index] = note
        return bool(notes)

    def lose(self, error: AgentError) -> None:
        """The log belongs to another writer, or is gone: what is not stored never will be. Sync, idempotent."""
        if self.lost is None:
            self.lost = error
            self.unsaved.clear()
            self.fail(error)
            self.on_lost(error)

    def retract(self, mark: int) -> None:
        """Take back what was posted after ``mark`` and is not being written. Sync; nobody may post any more."""
        self._kept = mark
        if not self.writing:
            self._trim()

    def _trim(self) -> None:
        while self.unsaved and self.posted > self._kept:
            self.unsaved.pop()
            self.posted -= 1

    def joined(self, stored: Sequence[SessionEvent] | None) -> Sequence[SessionEvent] | None:
        """The session as it is: what the storage holds, and what it does not hold yet."""
        if not self.unsaved:
            return stored
        events = {event.seq: event for event in (*self.unsaved, *(stored or ()))}
        return tuple(events[seq] for seq in sorted(events))


def _note_instead_of(event: SessionEvent) -> SessionEvent | None:
    try:
        to_json(event)
    except Exception as error:
        kind = type(event.payload).__name__
        logger.error("event %d (%s) cannot be encoded, so a note is stored instead: %s", event.seq, kind, error)
        return attrs.evolve(event, payload=Metadata("unencodable", {"kind": kind, "problem": safe_str(error)}))
    return None

"""The rule of an append: by comparison, all or nothing (semantics 7). Pure.

log.extend(new_events("s", log, batch))         # a retry adds nothing; another writer's batch raises SessionTaken
"""

from __future__ import annotations

from collections.abc import Sequence

from ...messages.errors import ErrorSource, SessionNotFound, SessionTaken, StorageError
from ...messages.records import SessionEvent


def new_events(session_id: str, log: Sequence[SessionEvent], batch: Sequence[SessionEvent]) -> tuple[SessionEvent, ...]:
    """What of ``batch`` is to be added behind ``log``, which is all that is stored of the session, in order.

    Synopsis::

        log = kept.setdefault(session_id, [])
        log.extend(youyou.new_events(session_id, log, batch))

    Raises:
        SessionTaken: a number of ``batch`` is stored with other content.
        SessionNotFound: the session is not stored, and ``batch`` does not begin with number 1.
        StorageError: the numbers of ``batch`` leave a gap.
    """
    if not log and batch and batch[0].seq > 1:
        raise SessionNotFound(
            f"session {session_id!r} is not stored any more: somebody deleted it; open a new one",
            source=ErrorSource.STORAGE,
        )
    new: list[SessionEvent] = []
    for event in batch:
        newest = len(log) + len(new)
        if event.seq == newest + 1:
            new.append(event)
        elif not 1 <= event.seq <= len(log):
            raise StorageError(f"event {event.seq} of session {session_id!r} cannot follow event {newest}")
        elif log[event.seq - 1] != event:
            raise SessionTaken.written(session_id, event.seq)
    return tuple(new)

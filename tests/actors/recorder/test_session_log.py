"""One session's events on their way to its storage, without a storage (semantics 7)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from youyou import Metadata, SessionEvent, UserMessage
from youyou.actors.recorder.session_log import SessionLog
from youyou.messages.errors import StorageError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BROKEN = StorageError("broken")


@pytest.fixture
def log():
    """Three events that are posted and not stored."""
    log = SessionLog("s")
    for seq in (1, 2, 3):
        log.unsaved.append(SessionEvent(seq, NOW, UserMessage(str(seq))))
        log.posted += 1
    return log


def numbers(log):
    """What is not stored yet."""
    return [event.seq for event in log.unsaved]


def test_what_is_stored_is_counted_from_the_front(log):
    """The mark is the number of events up to which everything is stored."""
    log.stored(2)
    assert (2, [3]) == (log.saved, numbers(log))


def test_a_log_that_failed_is_tried_once_more_when_the_storage_works_for_another(log):
    """Once, not after every success of another; asking for a write makes it worth another try."""
    log.request_retry()
    assert not log.dirty
    log.fail(BROKEN)
    asked = []
    for _ in range(3):
        log.dirty = False
        log.request_retry()
        asked.append(log.dirty)
    log.request_write()
    log.dirty = False
    log.request_retry()
    assert ([True, False, False], True) == (asked, log.dirty)


def test_a_failure_is_kept_and_counted(log):
    """Nothing is lost by it."""
    log.fail(BROKEN)
    log.fail(BROKEN)
    assert (BROKEN, 2, [1, 2, 3]) == (log.failure, log.failures, numbers(log))


def test_what_is_taken_back_is_not_stored_later(log):
    """What was posted after the mark goes."""
    log.retract(1)
    assert ([1], 1, 0) == (numbers(log), log.posted, log.saved)


@pytest.mark.parametrize(("ends", "left"), [("stored", []), ("fails", [1])])
def test_what_is_being_written_is_not_taken_back(ends, left, log):
    """The batch under way may be in the storage already; if it failed, what was retracted goes then."""
    log.writing = True
    log.retract(1)
    assert [1, 2, 3] == numbers(log)
    log.writing = False
    if ends == "stored":
        log.stored(3)
    else:
        log.fail(BROKEN)
    assert left == numbers(log)


def test_a_lost_log_is_lost_once(log):
    """Its follower is told the first reason, and nothing is kept for a storage that belongs to another."""
    told = []
    log.on_lost = told.append
    log.lose(BROKEN)
    log.lose(StorageError("again"))
    assert ([BROKEN], [], BROKEN) == (told, numbers(log), log.lost)


@pytest.mark.parametrize(
    ("stored", "joined"), [(None, [1, 2, 3]), ((), [1, 2, 3]), ((1, 2), [1, 2, 3]), ((1,), [1, 2, 3])]
)
def test_the_session_as_it_is_has_each_event_once(stored, joined, log):
    """What the storage holds and what it does not hold yet overlap where an answer of it was lost."""
    events = None if stored is None else [SessionEvent(seq, NOW, UserMessage(str(seq))) for seq in stored]
    assert joined == [event.seq for event in log.joined(events)]


def test_a_session_that_is_stored_is_what_the_storage_says(log):
    """Nothing is added."""
    log.stored(3)
    assert None is log.joined(None)


def test_a_note_takes_the_place_of_what_no_storage_could_encode(log):
    """It keeps its number, and the others are left as they are."""
    log.unsaved[1] = SessionEvent(2, NOW, Metadata("odd", object()))
    assert (True, False) == (log.replace_unencodable(), log.replace_unencodable())
    first, note, last = log.unsaved
    assert (UserMessage("1"), "unencodable", "Metadata", UserMessage("3")) == (
        first.payload, note.payload.key, note.payload.value["kind"], last.payload
    )  # fmt: skip

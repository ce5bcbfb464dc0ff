"""What of a batch a storage has to add, as a table: each event once, in order, by one writer (semantics 7)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from youyou import ErrorSource, SessionEvent, SessionNotFound, SessionTaken, StorageError, UserMessage, new_events

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def events(*numbers: int, text: str = "") -> tuple[SessionEvent, ...]:
    """Events with these numbers; ``text`` makes them those of another writer."""
    return tuple(SessionEvent(number, NOW, UserMessage(f"{number}{text}")) for number in numbers)


@pytest.mark.parametrize(
    ("stored", "batch", "new"),
    [
        ((), (), ()),
        ((), (1, 2), (1, 2)),
        ((1, 2), (), ()),
        ((1, 2), (3,), (3,)),
        ((1, 2), (2, 3), (3,)),
        ((1, 2), (1, 2), ()),
        ((1, 2), (1,), ()),
        ((), (1, 2, 3), (1, 2, 3)),
    ],
)
def test_what_is_stored_already_is_not_added_again(stored, batch, new):
    """The answer of a write may be lost, so a batch may begin with what is there."""
    assert events(*new) == new_events("s", events(*stored), events(*batch))


@pytest.mark.parametrize(
    ("stored", "batch", "error"),
    [
        ((), (2,), SessionNotFound),
        ((), (3, 4), SessionNotFound),
        ((1,), (3,), StorageError),
        ((1,), (2, 4), StorageError),
        ((1,), (0,), StorageError),
        ((), (0,), StorageError),
        ((1, 2), (-1,), StorageError),
    ],
)
def test_a_gap_is_refused(stored, batch, error):
    """Nothing of the batch is added; that a session is gone is told apart."""
    with pytest.raises(error) as raised:
        new_events("s", events(*stored), events(*batch))
    assert type(raised.value) is error


@pytest.mark.parametrize("number", [1, 2])
def test_a_number_with_other_content_belongs_to_another_writer(number):
    """The first number that differs is named."""
    with pytest.raises(SessionTaken, match=rf"\b{number}\b"):
        new_events("s", events(1, 2), events(number, text=" of another"))


def test_a_session_that_is_gone_is_the_storages_error():
    """Not the host's."""
    with pytest.raises(SessionNotFound) as raised:
        new_events("s", (), events(2))
    assert ErrorSource.STORAGE is raised.value.source

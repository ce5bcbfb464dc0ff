"""What a crash may leave, operation by operation."""

from __future__ import annotations

import pytest
from youyou.testing.disk.journal import MOST_STATES, Journal, Op

NEW = Op("create", 7, "a")
WRITE = Op("write", 7, data=b"xy")
MORE = Op("write", 7, offset=2, data=b"z")
SYNC = Op("sync", 7)
MOVE = Op("rename", 7, "a", "b")
FOLDER = Op("sync_folder", path="")

CASES = {
    "nothing was done": ([], [{}]),
    "a new file is there or not": ([NEW], [{}, {"a": b""}]),
    "a write is lost, torn or whole": ([NEW, WRITE], [{}, {"a": b""}, {"a": b"x"}, {"a": b"xy"}]),
    "writes are reordered": (
        [NEW, SYNC, WRITE, MORE],
        [{"a": b""}, {"a": b"x\0z"}, {"a": b"x"}, {"a": b"\0\0z"}, {"a": b"xy"}, {"a": b"xyz"}],
    ),
    "what is synced is there": ([NEW, WRITE, SYNC], [{"a": b"xy"}]),
    "a name without its data": (
        [NEW, WRITE, MOVE, FOLDER],
        [{"b": b""}, {"b": b"x"}, {"b": b"xy"}],
    ),
    "a rename of synced data is lost or there": (
        [NEW, WRITE, SYNC, MOVE],
        [{"a": b"xy"}, {"b": b"xy"}],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_crash_leaves_one_of(case):
    """One of these trees, and nothing else."""
    ops, expected = CASES[case]
    journal = Journal()
    for op in ops:
        journal.note(op)
    assert sorted(expected, key=repr) == sorted(journal.crash_states(), key=repr)


def test_what_is_safe_is_forgotten_by_the_journal():
    """It is in every state, and costs nothing any more."""
    journal = Journal()
    for op in (NEW, WRITE, SYNC):
        journal.note(op)
    journal.note(Op("write", 7, offset=2, data=b"z"))
    assert [{"a": b"xy"}, {"a": b"xyz"}] == sorted(journal.crash_states(), key=repr)
    assert [Op("write", 7, offset=2, data=b"z")] == journal.ops


def test_many_states_are_thinned_out():
    """All written and all lost are kept."""
    journal = Journal()
    journal.note(NEW)
    for number in range(100):
        journal.note(Op("write", 7, offset=number, data=b"%d" % (number % 10)))
    states = journal.crash_states()
    assert MOST_STATES >= len(states)
    assert 100 == len(states[0]["a"] or b"")
    assert {} in states

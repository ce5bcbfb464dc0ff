"""The events of one turn on their way to a reader, without an agent (semantics 6, "Delivery")."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from youyou.actors.shared.event_stream import EventStream, Numbering
from youyou.messages.chat import TextDelta
from youyou.messages.events import ToolProgress


@pytest.fixture
def stream():
    return EventStream("s", "t", Numbering(), 2)


def taken(stream):
    """What is there to read."""
    events = []
    while (event := stream.take()) is not None:
        events.append((event.sequence, event.payload))
    return events


def test_events_are_numbered_in_the_order_in_which_they_are_put(stream):
    """From the session's running number."""
    stream.numbering.last = 7
    assert [stream.offer(TextDelta(text)) for text in "ab"] == [True, True]
    assert taken(stream) == [(8, TextDelta("a")), (9, TextDelta("b"))]


def test_a_full_buffer_takes_no_more(stream):
    """Until one was read."""
    assert [stream.offer(TextDelta(text)) for text in "abc"] == [True, True, False]
    stream.take()
    assert stream.offer(TextDelta("c"))


def test_the_terminal_event_has_room_of_its_own_and_is_the_last(stream):
    """Behind it nothing is put."""
    for text in "ab":
        stream.put(TextDelta(text))
    stream.terminal(TextDelta("end"))
    stream.put(TextDelta("late"))
    assert [payload for _, payload in taken(stream)] == [TextDelta("a"), TextDelta("b"), TextDelta("end")]


async def test_a_task_that_waits_for_room_goes_on_when_the_turn_ends(stream):
    """The terminal event opens the gate."""
    for text in "ab":
        stream.put(TextDelta(text))
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.emit, TextDelta("late"))
            await trio.testing.wait_all_tasks_blocked()
            stream.terminal(TextDelta("end"))


def test_the_newest_progress_replaces_an_unread_one_in_its_place(stream):
    """One that was read is not replaced."""
    stream.progress("c", 1)
    stream.put(TextDelta("a"))
    stream.progress("c", 2)
    assert [payload for _, payload in taken(stream)] == [ToolProgress("c", 2), TextDelta("a")]
    stream.progress("c", 3)
    assert [payload for _, payload in taken(stream)] == [ToolProgress("c", 3)]


def test_without_a_reader_events_are_counted_and_numbered(stream):
    """What is unread is dropped."""
    stream.put(TextDelta("a"))
    stream.reader_gone()
    stream.put(TextDelta("b"))
    assert ([], 2, 2) == (taken(stream), stream.dropped, stream.numbering.last)


async def test_what_is_emitted_into_a_full_buffer_waits_for_room(stream, autojump_clock):
    """It is numbered when it is put, not when it began to wait."""
    for text in "ab":
        stream.put(TextDelta(text))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.emit, TextDelta("c"))
        await trio.testing.wait_all_tasks_blocked()
        assert (2, 2) == (len(stream), stream.numbering.last)
        stream.take()
        await trio.testing.wait_all_tasks_blocked()
    assert [(2, TextDelta("b")), (3, TextDelta("c"))] == taken(stream)


async def test_what_is_emitted_and_cancelled_was_not_emitted(stream, autojump_clock):
    """It has no number either."""
    for text in "ab":
        stream.put(TextDelta(text))
    with trio.move_on_after(1):
        await stream.emit(TextDelta("c"))
    assert ([(1, TextDelta("a")), (2, TextDelta("b"))], 2) == (taken(stream), stream.numbering.last)


async def test_emitting_lets_others_run_also_where_there_is_room(stream, autojump_clock):
    """At least one checkpoint per event that is emitted and not offered."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await stream.emit(TextDelta("a"))
    assert (True, 0) == (scope.cancelled_caught, len(stream))


async def test_a_reader_that_waits_is_woken_by_an_event_and_by_the_end(stream, nursery, autojump_clock):
    """Whether there will be anything again is the answer."""
    said = []

    async def waits():
        said.append(await stream.wait_readable())

    nursery.start_soon(waits)
    await trio.testing.wait_all_tasks_blocked()
    stream.put(TextDelta("a"))
    await trio.testing.wait_all_tasks_blocked()
    stream.take()
    for _ in range(2):
        nursery.start_soon(waits)
    await trio.testing.wait_all_tasks_blocked()
    assert [True] == said
    stream.reader_gone()
    await trio.testing.wait_all_tasks_blocked()
    assert [True, False, False] == said


@pytest.mark.parametrize("ends", ["open_gate", "reader_gone"])
async def test_everybody_who_waits_for_room_is_let_go_by_a_stop(stream, ends, nursery, autojump_clock):
    """And by a reader that leaves: nothing blocks from then on."""
    for text in "ab":
        stream.put(TextDelta(text))
    for text in "cd":
        nursery.start_soon(stream.emit, TextDelta(text))
    await trio.testing.wait_all_tasks_blocked()
    getattr(stream, ends)()
    await trio.testing.wait_all_tasks_blocked()
    assert (True, 5) == (stream.offer(TextDelta("e")), stream.numbering.last)


def test_the_terminal_event_is_said_once(stream):
    """A second one does nothing."""
    stream.terminal(TextDelta("end"))
    stream.terminal(TextDelta("another"))
    assert [(1, TextDelta("end"))] == taken(stream)


def test_the_peak_is_the_most_that_was_ever_unread(stream):
    """Also beyond the bound."""
    for text in "abc":
        stream.put(TextDelta(text))
    stream.take()
    stream.put(TextDelta("d"))
    assert 3 == stream.peak

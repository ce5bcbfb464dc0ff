"""A turn's events, kept for a reader that asks by number. Needs no Ray."""

from __future__ import annotations

import pytest
import trio
import youyou
from trio.testing import wait_all_tasks_blocked
from youyou.adapters.ray.turn_events import KEPT, TurnEvents

from . import app


@pytest.fixture
async def session():
    """An open one."""
    async with app.make_builder().build() as agent, await agent.new_session() as opened:
        yield opened


async def begin(session, nursery, text, seconds=60.0):
    """A turn that is read on behalf of somebody."""
    kept = TurnEvents(await session.send_message(text), seconds)
    nursery.start_soon(kept.read)
    return kept


async def everything(kept, after=0):
    """All events after a number, asked for until they are the last."""
    events, over = [], False
    while not over:
        batch, over = await kept.after(after, 1.0)
        events += batch
        after = batch[-1].sequence if batch else after
    return events


async def test_a_question_that_is_asked_again_has_the_same_answer(session, nursery):
    """Until a later one is asked, which lets go of what was had."""
    kept = await begin(session, nursery, "say 5")
    await wait_all_tasks_blocked()
    first, over = await kept.after(0, 0)
    again, _ = await kept.after(0, 0)
    rest, _ = await kept.after(first[2].sequence, 0)
    with pytest.raises(youyou.InvalidInput, match="were let go when a reader asked"):
        await kept.after(first[1].sequence, 0)
    assert (first, first[3:], True) == (again, rest, over)


async def test_a_question_waits_for_an_event_and_no_longer_than_it_may(session, nursery, autojump_clock):
    """Nothing there after so many seconds is an empty answer."""
    kept = await begin(session, nursery, "slow 2")
    empty = await kept.after(0, 0.01)
    asked = trio.current_time()
    events, over = await kept.after(0, 5)
    assert (([], False), 1, False) == (empty, len(events), over)
    assert 0.01 == pytest.approx(trio.current_time() - asked)


async def test_a_slow_reader_holds_the_turn_up_and_loses_nothing(session, nursery):
    """No more than a stated number of events is kept."""
    kept = await begin(session, nursery, f"say {3 * KEPT}")
    await wait_all_tasks_blocked()
    held = len(kept._events)
    events = await everything(kept)
    sequence = [event.sequence for event in events]
    assert (KEPT, [*range(sequence[0], sequence[0] + 3 * KEPT + 1)]) == (held, sequence)


async def test_a_turn_whose_reader_stays_away_goes_on_unread(session, nursery, autojump_clock):
    """Once the time is over it is detached; a reader that comes then is told from where on nothing was kept."""
    kept = await begin(session, nursery, f"say {3 * KEPT}", seconds=30)
    status = await kept.turn.wait_status()
    with pytest.raises(youyou.InvalidInput, match="nobody asked for 30 seconds"):
        await everything(kept)
    assert "completed" == status


async def test_events_are_forgotten_when_the_reader_has_the_last(session, nursery, autojump_clock):
    """Or when it has not asked for them for so long."""
    had = await begin(session, nursery, "say 1")
    await had.turn.wait_status()
    events, _ = await had.after(0, 0)
    seen = [had.forgotten]
    await had.after(events[-1].sequence, 0)
    seen.append(had.forgotten)
    left = await begin(session, nursery, "say 1", seconds=30)
    await left.turn.wait_status()
    seen.append(left.forgotten)
    await trio.sleep(31)
    seen.append(left.forgotten)
    assert [False, True, False, True] == seen

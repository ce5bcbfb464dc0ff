"""The one shield of an agent and its three points, without an agent (semantics 6.2)."""

from __future__ import annotations

import math

import pytest
import trio
from youyou.actors.shared.lifetime import Deadline, Lifetime

NEVER = math.inf


@pytest.fixture
async def lifetime():
    """Five seconds of grace, four of closing."""
    return Lifetime(5.0, 4.0)


@pytest.mark.parametrize(
    ("scope", "patience", "tightened", "deadline", "given_up"),
    [
        (NEVER, 0, [], NEVER, NEVER),
        (10, 2, [], 10, 12),
        (10, 2, [(7, None)], 7, 9),
        (10, 2, [(12, None)], 10, 12),
        (10, 2, [(12, 0)], 10, 10),
        (10, 2, [(7, 3)], 7, 9),
        (10, 2, [(7, 1), (8, 0)], 7, 7),
    ],
)
def test_a_deadline_only_moves_closer(scope, patience, tightened, deadline, given_up):
    """So does the patience after it."""
    box = Deadline(trio.CancelScope(deadline=scope), patience)
    for at, patient in tightened:
        box.tighten(at, patient)
    assert (deadline, given_up) == (box.scope.deadline, box.given_up_at)


def test_whoever_waits_for_a_tool_learns_when_it_is_given_up():
    """Each time, also when only the patience has changed."""
    told = []
    box = Deadline(trio.CancelScope(deadline=10), 2, told.append)
    box.tighten(9)
    box.tighten(12, 0)
    assert [11, 9] == told


async def test_a_forced_shutdown_fixes_three_points(lifetime, autojump_clock):
    """Until the first user code may run, until the second history is flushed, the shield ends at the third."""
    await trio.sleep(100)
    lifetime.force_shutdown("host_cancelled")
    points = (lifetime.user_code_deadline, lifetime.flush_deadline, lifetime.shield.deadline)
    start = trio.current_time()
    assert (start + 5, start + 7, start + 9) == points
    assert ("host_cancelled", True) == (lifetime.forced, lifetime.shutting_down.is_set())


async def test_the_first_forced_shutdown_decides(lifetime, autojump_clock):
    """A second one moves no point and changes no reason."""
    lifetime.force_shutdown("first")
    points = (lifetime.user_code_deadline, lifetime.flush_deadline, lifetime.shield.deadline)
    await trio.sleep(1)
    lifetime.force_shutdown("second")
    assert (points, "first") == (
        (lifetime.user_code_deadline, lifetime.flush_deadline, lifetime.shield.deadline),
        lifetime.forced,
    )


async def test_a_shield_that_ends_earlier_stays_so(lifetime, autojump_clock):
    """Graces do not add up."""
    lifetime.shield.deadline = at = trio.current_time() + 1
    lifetime.force_shutdown("host_cancelled")
    assert at == lifetime.shield.deadline


@pytest.mark.parametrize("forced", ["before", "during"])
async def test_user_code_is_cut_at_the_first_point(forced, lifetime, autojump_clock):
    """Whether the shutdown was forced before it began or while it runs."""
    start = trio.current_time()
    if forced == "before":
        lifetime.force_shutdown("host_cancelled")
    with lifetime.user_code() as scope:
        if forced == "during":
            lifetime.force_shutdown("host_cancelled")
        await trio.sleep_forever()
    assert (True, start + 5) == (scope.cancelled_caught, trio.current_time())


async def test_user_code_keeps_an_earlier_deadline(lifetime, autojump_clock):
    """Its own."""
    start = trio.current_time()
    with lifetime.user_code(start + 2):
        lifetime.force_shutdown("host_cancelled")
        await trio.sleep_forever()
    assert start + 2 == trio.current_time()


async def test_what_is_over_is_not_cut_later(lifetime, autojump_clock):
    """Leaving the block takes the scope out of the list."""
    with lifetime.user_code() as scope:
        await trio.lowlevel.checkpoint()
    with lifetime.flushing() as flush:
        await trio.lowlevel.checkpoint()
    lifetime.force_shutdown("host_cancelled")
    assert (NEVER, NEVER) == (scope.deadline, flush.deadline)


@pytest.mark.parametrize("forced", ["before", "during"])
async def test_what_closes_history_is_cut_at_the_second_point(forced, lifetime, autojump_clock):
    """Half of the closing time is left for plugins."""
    start = trio.current_time()
    if forced == "before":
        lifetime.force_shutdown("host_cancelled")
    with lifetime.flushing() as scope:
        if forced == "during":
            lifetime.force_shutdown("host_cancelled")
        await trio.sleep_forever()
    assert (True, start + 7) == (scope.cancelled_caught, trio.current_time())


async def test_a_forced_shutdown_leaves_a_tool_no_patience(lifetime, autojump_clock):
    """It is given up at the first point."""
    box = Deadline(patience=60.0)
    lifetime.follow(box)
    lifetime.force_shutdown("host_cancelled")
    assert trio.current_time() + 5 == box.given_up_at
    lifetime.unfollow(box)


@pytest.mark.parametrize(
    ("graces", "grace"), [([None], None), ([3.0], 3.0), ([3.0, None], 3.0), ([3.0, 1.0], 1.0), ([1.0, 3.0], 1.0)]
)
async def test_the_shortest_grace_of_a_graceful_shutdown_counts(graces, grace, lifetime, autojump_clock):
    """It fixes no point by itself."""
    for each in graces:
        lifetime.shut_down(each)
    assert (grace, True, None) == (lifetime.shutdown_grace, lifetime.shutting_down.is_set(), lifetime.forced)
    assert NEVER == lifetime.user_code_deadline == lifetime.shield.deadline


async def test_callbacks_learn_of_either_shutdown(lifetime, autojump_clock):
    """A forced one is a shutdown, too."""
    told = []
    lifetime.on_shutdown.append(lambda: told.append("shutdown"))
    lifetime.on_forced.append(lambda: told.append("forced"))
    lifetime.shut_down()
    lifetime.force_shutdown("host_cancelled")
    lifetime.force_shutdown("again")
    assert ["shutdown", "forced", "shutdown"] == told


async def test_the_first_interrupt_is_kept_for_the_host(lifetime, autojump_clock):
    """And forces the shutdown."""
    first = KeyboardInterrupt("first")
    lifetime.interrupted(first)
    lifetime.interrupted(SystemExit("second"))
    assert (True, "host_cancelled") == (lifetime.interrupt is first, lifetime.forced)


async def test_closing_steps_share_what_is_left(lifetime, autojump_clock):
    """Each an equal part of the rest; without a forced shutdown there is no bound to share."""
    assert NEVER == lifetime.share(3)
    lifetime.force_shutdown("host_cancelled")
    assert trio.current_time() + 3 == lifetime.share(3)
    await trio.sleep(3)
    assert trio.current_time() + 3 == lifetime.share(2)

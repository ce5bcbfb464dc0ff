"""How a turn may end and what a stop bounds, without an agent (semantics 6.1). The table of states: tests/core."""

from __future__ import annotations

import math

import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from youyou.actors.shared.lifetime import Deadline
from youyou.actors.shared.outcome import StopClock, TurnControl
from youyou.messages.content import UserInput
from youyou.messages.errors import ProviderError
from youyou.messages.events import TurnStatus

NEVER = math.inf
ERROR = ProviderError("broken")


@pytest.fixture
def gate():
    """What the gate of the event stream was told."""
    return []


@pytest.fixture
async def control(gate):
    """The control of a turn that runs; its hooks have five seconds."""
    control = TurnControl(StopClock(5.0), lambda: gate.append("open"))
    control.start()
    return control


DECIDES = {
    "commit": lambda control: control.commit(),
    "fail": lambda control: control.fail(ERROR),
    "cancel": lambda control: control.cancel("enough"),
}


@pytest.mark.parametrize("first", DECIDES)
@pytest.mark.parametrize("second", DECIDES)
async def test_each_says_whether_it_is_the_outcome(first, second, control, autojump_clock):
    """The first decides; a second of the same kind may say that it is so."""
    assert DECIDES[first](control)
    assert (first == second) is DECIDES[second](control)


async def test_an_error_is_kept_only_if_it_decides(control, autojump_clock):
    """A turn that was cancelled has no error, whatever breaks later."""
    control.cancel("enough")
    control.fail(ERROR)
    assert (None, "enough") == (control.error, control.reason)


async def test_the_reason_of_the_first_cancel_counts(control, autojump_clock):
    """A second one only bounds what runs."""
    control.cancel("first")
    control.cancel("second", grace=1.0)
    assert ("first", trio.current_time() + 1) == (control.reason, control.clock.stop.cut_at)


async def test_a_turn_is_not_completed_while_a_message_waits_to_be_delivered(control, autojump_clock):
    """It was promised; only where no further request can be made does the turn end despite it."""
    assert control.steer(UserInput("and this"))
    assert (False, TurnStatus.RUNNING) == (control.commit(), control.status)
    assert control.commit(despite_steering=True)
    assert not control.steer(UserInput("too late"))
    assert (UserInput("and this"),) == control.take_steering()
    assert () == control.take_steering()


@pytest.mark.parametrize("opened", ["before", "after"])
async def test_a_cancel_ends_what_is_interruptible_at_once(opened, control, autojump_clock):
    """Also what is opened after it."""
    if opened == "after":
        control.cancel("enough")
    with control.interruptible() as scope:
        if opened == "before":
            control.cancel("enough")
        await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught


async def test_a_turn_that_has_failed_goes_on_with_what_is_interruptible(control, autojump_clock):
    """Closing a stream is not cut by the failure that it reports."""
    control.fail(ERROR)
    with control.interruptible() as scope:
        await trio.lowlevel.checkpoint()
    assert not scope.cancelled_caught


async def test_what_was_interruptible_and_is_over_is_let_go(control, autojump_clock):
    """A later cancel does not touch it."""
    with control.interruptible() as scope:
        pass
    control.cancel("enough")
    assert not scope.cancel_called


async def test_a_cancel_after_the_batch_lets_the_batch_go_on(control, autojump_clock):
    """Its calls may all start; a stream would be cut; a second cancel stops the batch, too."""
    with control.interruptible(of_batch=True) as batch, control.interruptible() as stream:
        control.cancel("enough", after_batch=True)
        assert (False, True) == (batch.cancel_called, stream.cancel_called)
        assert (True, False) == (control.stopping, control.batch_stopped)
        control.cancel("now", after_batch=True)
        assert not control.batch_stopped
        control.cancel("now")
        assert (True, True) == (batch.cancel_called, control.batch_stopped)


async def test_a_grace_ends_a_batch_that_goes_on(control, autojump_clock):
    """From the cut on no call starts."""
    control.cancel("enough", grace=2.0, after_batch=True)
    assert not control.batch_stopped
    await trio.sleep(2)
    assert control.batch_stopped


@pytest.mark.parametrize(("default", "given", "cut"), [(None, None, NEVER), (3.0, None, 3), (3.0, 1.0, 1)])
async def test_a_cancel_without_a_grace_has_the_configured_one(default, given, cut, control, autojump_clock):
    """None there cuts nothing."""
    control.default_grace = default
    control.cancel("enough", given)
    assert trio.current_time() + cut == control.clock.stop.cut_at


@pytest.mark.parametrize("decides", DECIDES.values(), ids=DECIDES)
async def test_a_lost_log_outranks_what_was_decided(decides, control, gate, autojump_clock):
    """The turn has failed, everything is cut, and nothing waits for a reader."""
    decides(control)
    lost = ProviderError("another owner")
    with control.interruptible(of_batch=True) as scope:
        control.lose(lost)
        assert scope.cancel_called
    assert (TurnStatus.FAILED, lost, trio.current_time()) == (
        control.outcome, control.error, control.clock.stop.cut_at
    )  # fmt: skip
    assert "open" == gate[-1]
    control.finish()
    control.lose(ProviderError("later still"))
    assert (TurnStatus.FAILED, lost) == (control.status, control.error)


async def test_a_cancel_opens_the_gate_before_anybody_can_wait(control, gate, autojump_clock):
    """The reader may be the very task that cancels."""
    control.cancel("enough")
    assert ["open"] == gate


# hooks, tools and flushes of a stop


async def test_a_hook_is_not_bounded_until_a_stop(control, autojump_clock):
    """It may wait for a person."""
    with control.clock.hook() as scope:
        await trio.sleep(1_000)
        assert NEVER == scope.deadline
        control.cancel("enough")
        assert trio.current_time() + 5 == scope.deadline


async def test_a_hook_that_begins_after_the_stop_has_its_time_from_its_own_start(control, autojump_clock):
    """One by one, as they are due."""
    control.cancel("enough")
    await trio.sleep(4)
    with control.clock.hook() as scope:
        assert trio.current_time() + 5 == scope.deadline


async def test_a_grace_cuts_hooks_and_tools_alike(control, autojump_clock):
    """Those that run, and those that begin later."""
    tool = Deadline()
    control.clock.follow_tool(tool)
    with control.clock.hook() as hook, control.clock.cut() as extraction:
        control.cancel("enough", grace=2.0)
        at = trio.current_time() + 2
        assert [at] * 3 == [each.deadline for each in (hook, extraction, tool.scope)]
    control.clock.unfollow_tool(tool)
    with control.clock.hook() as hook, control.clock.cut() as extraction:
        assert [at] * 2 == [hook.deadline, extraction.deadline]


async def test_a_stop_without_a_grace_cuts_no_tool(control, autojump_clock):
    """A tool has a bound of its own."""
    tool = Deadline()
    control.clock.follow_tool(tool)
    control.cancel("enough")
    assert (True, NEVER) == (control.clock.stopping, tool.scope.deadline)


@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_wait_for_storage_is_given_up_some_time_after_the_grace(when, control, autojump_clock):
    """So that a lock does not hold up a stop."""
    at = trio.current_time()
    if when == "before":
        control.cancel("enough", grace=2.0)
    with control.clock.flush(3.0) as scope:
        if when == "during":
            control.cancel("enough", grace=2.0)
        await trio.sleep_forever()
    assert (True, at + 5) == (scope.cancelled_caught, trio.current_time())


async def test_what_is_over_is_not_tightened_later(control, autojump_clock):
    """Hooks, tools and flushes leave the clock with their block."""
    with control.clock.hook() as hook, control.clock.cut() as cut, control.clock.flush(3.0) as flush:
        pass
    control.cancel("enough", grace=0.0)
    assert [NEVER] * 3 == [each.deadline for each in (hook, cut, flush)]


# waiting for a status


async def test_a_status_can_be_awaited(control, nursery, autojump_clock):
    """The first that is wanted; statuses in between wake nobody."""
    seen = []

    async def waits(*wanted):
        seen.append(await control.wait_status(set(wanted).__contains__))

    nursery.start_soon(waits, TurnStatus.COMPLETED, TurnStatus.CANCELLED)
    nursery.start_soon(waits, TurnStatus.CANCELLING)
    await wait_all_tasks_blocked()
    assert [] == seen
    control.cancel("enough")
    await wait_all_tasks_blocked()
    assert [TurnStatus.CANCELLING] == seen
    control.finish()
    await wait_all_tasks_blocked()
    assert [TurnStatus.CANCELLING, TurnStatus.CANCELLED] == seen


async def test_a_status_that_is_there_is_not_waited_for(control, autojump_clock):
    """It is answered at the next checkpoint."""
    control.commit()
    control.finish()
    assert TurnStatus.COMPLETED is await control.wait_status({TurnStatus.COMPLETED}.__contains__)

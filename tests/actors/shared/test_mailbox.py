"""One question, one answer, never a hang: without an agent (semantics 3)."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked
from youyou.actors.shared.mailbox import Reply, ask, close_all, post, post_and_wait
from youyou.messages.errors import AgentClosed


@attrs.frozen(eq=False)
class Question:
    """What is asked in these tests."""

    reply: Reply[str]


@pytest.fixture
def mailbox():
    """Both ends of an actor's mailbox."""
    return trio.open_memory_channel(100)


async def asks(mailbox, said, asking=ask):
    """One question; its answer, or "closed", goes into ``said``."""
    try:
        said.append(await asking(mailbox, Question))
    except AgentClosed:
        said.append("closed")


@pytest.mark.parametrize("asking", [ask, post_and_wait])
async def test_an_answer_reaches_the_one_who_asked(asking, mailbox, nursery, autojump_clock):
    """And sending it says so."""
    send, receive = mailbox
    said = []
    nursery.start_soon(asks, send, said, asking)
    await wait_all_tasks_blocked()
    with receive.receive_nowait().reply as reply:
        assert reply.send("yes")
    await wait_all_tasks_blocked()
    assert ["yes"] == said


@pytest.mark.parametrize(("asking", "comes"), [(ask, "closed"), (post_and_wait, None)])
async def test_a_reply_that_is_left_without_an_answer_ends_the_question(
    asking, comes, mailbox, nursery, autojump_clock
):
    """Leaving its block is enough, whatever the actor did inside."""
    send, receive = mailbox
    said = []
    nursery.start_soon(asks, send, said, asking)
    await wait_all_tasks_blocked()
    with receive.receive_nowait().reply:
        pass
    await wait_all_tasks_blocked()
    assert [comes] == said


async def test_an_answer_for_an_asker_who_gave_up_is_not_given(mailbox, nursery, autojump_clock):
    """The actor is told, and undoes what it did."""
    send, receive = mailbox
    with trio.CancelScope() as scope:
        nursery.start_soon(_cancel_soon, scope)
        await ask(send, Question)
    assert not receive.receive_nowait().reply.send("too late")


async def _cancel_soon(scope):
    await wait_all_tasks_blocked()
    scope.cancel()


async def test_a_question_is_not_put_by_a_task_that_is_cancelled_already(mailbox, autojump_clock):
    """A `Cancelled` out of ``ask`` before its first wait means that nothing was asked."""
    send, receive = mailbox
    with trio.CancelScope() as scope:
        scope.cancel()
        await ask(send, Question)
    with pytest.raises(trio.WouldBlock):
        receive.receive_nowait()


async def test_what_must_be_posted_is_posted_by_a_cancelled_task_too(mailbox, autojump_clock):
    """``post_and_wait`` puts its question first, and is cancelled while it waits."""
    send, receive = mailbox
    with trio.CancelScope() as scope:
        scope.cancel()
        await post_and_wait(send, Question)
    assert scope.cancelled_caught
    # Nobody waits any more, but there was room for one answer: the actor is not held up by it.
    assert not receive.receive_nowait().reply.send("done")


async def test_only_the_first_answer_counts(mailbox, nursery, autojump_clock):
    """The asker has gone on with it."""
    send, receive = mailbox
    said = []
    nursery.start_soon(asks, send, said)
    await wait_all_tasks_blocked()
    reply = receive.receive_nowait().reply
    assert (True, False) == (reply.send("one"), reply.send("two"))
    await wait_all_tasks_blocked()
    assert ["one"] == said


@pytest.mark.parametrize(("asking", "comes"), [(ask, "closed"), (post_and_wait, None)])
async def test_questions_in_the_mailbox_of_an_actor_that_dies_end_too(asking, comes, mailbox, nursery, autojump_clock):
    """What waits in the queue, and what comes later; messages that expect no answer are let go."""
    send, receive = mailbox
    said = []
    post(send, "a message without a reply")
    for _ in range(2):
        nursery.start_soon(asks, send, said, asking)
    await wait_all_tasks_blocked()
    close_all(receive)
    await asks(send, said, asking)
    await wait_all_tasks_blocked()
    assert [comes] * 3 == said
    assert not post(send, "late")


def test_a_message_is_left_without_a_wait(mailbox):
    """Whether it arrives is told at once."""
    send, receive = mailbox
    assert post(send, "hello")
    assert "hello" == receive.receive_nowait()
    send.close()
    assert not post(send, "from a closed end")

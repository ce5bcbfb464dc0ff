"""One question, one answer, never a hang.

The asker keeps the waiting half. The answering half travels inside the message and belongs to the task that takes
the message out of the mailbox. Knows nothing of agents.

    session = await ask(guard, lambda reply: OpenSession(config, reply))                # the asker
    with command.reply as reply:                                                        # the actor
        reply.send(session)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...messages.errors import AgentClosed

T = TypeVar("T")
M = TypeVar("M")


@attrs.frozen(eq=False)
class Reply(Generic[T]):
    """The answering half. Leaving its block without an answer tells the asker that none will come."""

    _channel: trio.MemorySendChannel[T]

    def send(self, value: T) -> bool:
        """Answer once. Not a checkpoint. False: the asker gave up, and the caller undoes what it did for it."""
        try:
            self._channel.send_nowait(value)
        except (trio.BrokenResourceError, trio.WouldBlock):
            return False
        return True

    def close(self) -> None:
        """No answer will come. Sync, idempotent."""
        self._channel.close()

    def __enter__(self) -> Reply[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()


@enable_ki_protection
async def ask(mailbox: trio.MemorySendChannel[M], question: Callable[[Reply[T]], M]) -> T:
    """Put a question into an unbounded ``mailbox`` and wait for the answer.

    Cancellation: a checkpoint. If `trio.Cancelled` comes out, there was no answer: an answer is given only to somebody
    who waits, and the actor learns from ``send()`` whether it was. What it does for the asker, it does after that.

    Raises:
        AgentClosed: the actor ended first, before or after it took the question.
    """
    await trio.lowlevel.checkpoint_if_cancelled()
    # A channel per question, not one for all answers: with a shared one, an asker that is slow or gone would block the
    # others. Without a buffer: an answer that lies there while its asker is cancelled would belong to nobody.
    answering, waiting = trio.open_memory_channel[T](0)
    with waiting:
        # Not `send`: it yields after it has sent, and the actor would answer somebody who does not wait yet.
        if not post(mailbox, question(Reply(answering))):
            answering.close()
        try:
            return await waiting.receive()
        except trio.EndOfChannel:
            raise AgentClosed("the agent has ended: build and enter a new one") from None


@enable_ki_protection
async def post_and_wait(mailbox: trio.MemorySendChannel[M], question: Callable[[Reply[T]], M]) -> T | None:
    """Put a question into an unbounded ``mailbox``, whatever happens, and wait for the answer.

    Cancellation: a checkpoint. If `trio.Cancelled` comes out, the question was put all the same.

    Returns:
        The answer. None: the actor had ended, or ended without one.
    """
    answering, waiting = trio.open_memory_channel[T](1)
    with waiting:
        # Sync and before any checkpoint, hence "at least posted": a cancelled `send` delivers nothing, and this message
        # must arrive.
        if not post(mailbox, question(Reply(answering))):
            answering.close()
        try:
            return await waiting.receive()
        except trio.EndOfChannel:
            return None  # noqa: ASYNC910  receive() has been a checkpoint


def close_all(mailbox: trio.MemoryReceiveChannel[Any]) -> None:
    """Close ``mailbox`` and every question still in it. Sync, so that a dying actor can call it in ``finally``."""
    # Channels are not closed by garbage collection: a question that stayed queued in a dead actor's mailbox would hang
    # its asker.
    with mailbox, suppress(trio.WouldBlock, trio.EndOfChannel):
        while True:
            reply = getattr(mailbox.receive_nowait(), "reply", None)
            if reply is not None:
                reply.close()


def post(mailbox: trio.MemorySendChannel[M], message: M) -> bool:
    """Leave a message that expects no answer. Sync, never blocks. False: the actor has ended."""
    try:
        mailbox.send_nowait(message)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return False
    return True

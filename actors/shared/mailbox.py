"""One question, one answer, never a hang.

The asker keeps the waiting half. The answering half travels inside the message and belongs to the task that takes
the message out of the mailbox. Knows nothing of agents.

    session = await ask(guard, lambda reply: OpenSession(config, reply), on_abandoned=drop)   # the asker
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


def ignore(_: object) -> None:
    """Let an unwanted answer go."""


@attrs.frozen(eq=False)
class Reply(Generic[T]):
    """The answering half. Leaving its block without an answer tells the asker that none will come."""

    _channel: trio.MemorySendChannel[T]

    def send(self, value: T) -> bool:
        """Answer once. Not a checkpoint. False: the asker gave up, and the caller undoes what it did for it."""
        try:
            self._channel.send_nowait(value)
        except trio.BrokenResourceError:
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
async def ask(
    mailbox: trio.MemorySendChannel[M], question: Callable[[Reply[T]], M], on_abandoned: Callable[[T], None] = ignore
) -> T:
    """Put a question into ``mailbox`` and wait for the answer.

    Cancellation: a checkpoint. If `trio.Cancelled` comes out, nobody owns the answer: ``on_abandoned`` gets one
    that had already arrived, and the actor learns from ``send()`` that a later one is unwanted.

    Raises:
        AgentClosed: the actor ended first, before or after it took the question.
    """
    # A channel per question, not one for all answers: with a shared one, an asker that is slow or gone would block the
    # others.
    answering, waiting = trio.open_memory_channel[T](1)
    with waiting:
        try:
            await mailbox.send(question(Reply(answering)))
            return await waiting.receive()
        # Broken: the actor closed its mailbox before it took the question. EndOfChannel: it closed the reply without an
        # answer. To the asker both are one thing.
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.EndOfChannel):
            raise AgentClosed("the agent has ended: build and enter a new one") from None
        except BaseException:
            with suppress(trio.WouldBlock, trio.EndOfChannel):
                on_abandoned(waiting.receive_nowait())
            raise


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

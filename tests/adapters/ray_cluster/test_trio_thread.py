"""A Trio run in a thread, called from asyncio. Needs no Ray."""

from __future__ import annotations

import asyncio
import threading

import pytest
import trio
from youyou.adapters.ray.trio_thread import TrioThread


class Loop:
    """A run that ends when it is told to."""

    def __init__(self):
        self.thread = TrioThread(self.main)

    async def main(self, task_status):
        """Until told."""
        self.leave = trio.Event()
        task_status.started()
        await self.leave.wait()

    async def end(self):
        """Tell it."""
        self.leave.set()


@pytest.fixture
def loop():
    """One, ended with the test."""
    made = Loop()
    yield made
    if not made.thread.ended.is_set():
        asyncio.run(made.thread.run(made.end))
    assert made.thread.ended.wait(10)


def test_a_call_runs_on_trio_and_its_value_comes_back(loop):
    """In the thread of the run."""

    async def where(word):
        await trio.lowlevel.checkpoint()
        return word, threading.current_thread().name

    assert ("here", "trio") == asyncio.run(loop.thread.run(where, "here"))


def test_an_error_comes_back_and_ends_nothing(loop):
    """The next call works."""

    async def fail():
        raise LookupError("gone")

    async def answer():
        return 1

    with pytest.raises(LookupError, match="gone"):
        asyncio.run(loop.thread.run(fail))
    assert 1 == asyncio.run(loop.thread.run(answer))


def test_a_call_whose_caller_is_cancelled_is_cancelled(loop):
    """On Trio it ends with `Cancelled`."""
    begun, ended = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async def both():
        call = asyncio.ensure_future(loop.thread.run(wait))
        await asyncio.to_thread(begun.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await asyncio.to_thread(ended.wait, 10)

    assert asyncio.run(both())


def test_a_call_after_the_end_is_refused(loop):
    """It does not hang."""
    asyncio.run(loop.thread.run(loop.end))
    assert loop.thread.ended.wait(10)
    with pytest.raises(RuntimeError, match="has ended"):
        asyncio.run(loop.thread.run(loop.end))


def test_a_run_that_cannot_start_says_why():
    """From the constructor."""

    async def main(task_status):
        await trio.lowlevel.checkpoint()
        raise LookupError("no file")

    with pytest.raises(BaseExceptionGroup) as failure:
        TrioThread(main)
    assert failure.group_contains(LookupError, match="no file")

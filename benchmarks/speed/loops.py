"""The little that a driver needs of an event loop, of Trio and of asyncio alike."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

Work = Callable[[], Coroutine[Any, Any, Any]]


class Loop(Protocol):
    """What differs between the two."""

    def run(self, work: Work) -> Any:
        """A loop of its own, to the end of ``work``."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def gather(self, work: list[Work]) -> None:
        """All at once."""

    async def beside(self, work: Work, then: Work, limit: float) -> bool:
        """``work`` in a task, ``then`` beside it; whether the task ended within ``limit`` seconds of ``then``'s end."""


class Asyncio:
    """asyncio's."""

    def run(self, work: Work) -> Any:
        import asyncio

        return asyncio.run(work())

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    async def gather(self, work: list[Work]) -> None:
        import asyncio

        await asyncio.gather(*(one() for one in work))

    async def beside(self, work: Work, then: Work, limit: float) -> bool:
        import asyncio

        task = asyncio.create_task(work())
        self.task = task
        await then()
        done, _ = await asyncio.wait([task], timeout=limit)
        if not done:
            task.cancel()
            await asyncio.wait([task], timeout=1)
        elif not task.cancelled():
            task.exception()
        return bool(done)


class Trio:
    """Trio's."""

    def run(self, work: Work) -> Any:
        import trio

        return trio.run(work)

    async def sleep(self, seconds: float) -> None:
        import trio

        await trio.sleep(seconds)

    async def gather(self, work: list[Work]) -> None:
        import trio

        async with trio.open_nursery() as nursery:
            for one in work:
                nursery.start_soon(one)

    async def beside(self, work: Work, then: Work, limit: float) -> bool:
        import trio

        ended = trio.Event()
        self.scope = trio.CancelScope()

        async def task() -> None:
            with self.scope:
                await work()
            ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            await then()
            with trio.move_on_after(limit) as waiting:
                await ended.wait()
            nursery.cancel_scope.cancel()
        return not waiting.cancelled_caught

"""What the conformance suites of storages share: a fresh storage for each check, and failures of one sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import trio

S = TypeVar("S")


@asynccontextmanager
async def fresh(factory: Callable[[], S | AbstractAsyncContextManager[S]]) -> AsyncIterator[S]:
    """What ``factory`` makes, entered and left if it can be."""
    made = factory()
    if isinstance(made, AbstractAsyncContextManager):
        async with made as storage:
            yield storage
    else:
        yield made


def expect(expected: object, actual: object, rule: str) -> None:
    """Fail with ``rule`` and both values, shortened, unless they are equal."""
    if expected != actual:
        raise AssertionError(f"{rule} - expected {_short(expected)}, got {_short(actual)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:200]}... ({len(text)} characters) ...{text[-60:]}"


def moment(second: int) -> datetime:
    """A fixed point in time, ``second`` seconds after another."""
    return datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(seconds=second, microseconds=second % 7)


async def cut(call: Callable[[], Awaitable[object]], checkpoints: int) -> bool:
    """Cancel ``call`` after so many checkpoints of another task. Returns whether it had finished."""
    finished = False

    async def run() -> None:
        nonlocal finished
        await call()
        finished = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        for _ in range(checkpoints):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel(reason="the suite cuts this call")
    return finished


CUTS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)
"""After how many checkpoints calls are cut."""

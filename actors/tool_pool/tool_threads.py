"""Sync tools in worker threads, each with its declared way to stop (semantics 8).

A thread cannot be cut short. "cooperative" asks whether it should stop; "abandon" is abandoned; "wait" is waited for,
and abandoned only at the runtime's final deadline. A thread that is abandoned keeps its limiter token, so another
one is lent until it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.ports.protocols import ToolInput
from ...core.tools.declaration import ThreadFunction
from ...core.tools.output_checks import checked_progress
from ...messages.events import ToolOutput
from ...messages.plain import NotPlain
from ..shared.deadlock import owned_by_in_thread
from ..shared.lifetime import Lifetime

logger: logging.Logger = logging.getLogger("youyou.tools")


@attrs.define(eq=False)
class _Thread:
    """One call in a thread, and the limiter that it asks for a token: so it is known whether it ever began.

    Its fields change only in the Trio thread.
    """

    limiter: trio.CapacityLimiter
    began: bool = False
    ended: bool = False
    abandoned: bool = False

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        await self.limiter.acquire_on_behalf_of(borrower)
        self.began = True

    def release_on_behalf_of(self, borrower: object) -> None:
        self.limiter.release_on_behalf_of(borrower)


@attrs.define(eq=False)
class ToolThreads:
    """The worker threads of one agent, under a limiter of its own."""

    lifetime: Lifetime
    limit: int
    lent: int = 0
    _limiter: trio.CapacityLimiter = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # Not Trio's default limiter: the host's own threads, waiting in it for a tool, would deadlock with the tools.
        self._limiter = trio.CapacityLimiter(self.limit)

    async def run(self, function: ThreadFunction, given: ToolInput) -> ToolOutput:
        """Call ``function`` in a thread. What it raises comes out as it is.

        Cancellation: by the tool's declaration: asks the thread and waits, waits, or abandons it.
        """
        match function.thread:
            case "cooperative":
                return await trio.to_thread.run_sync(function.call, given, limiter=self._limiter)
            case "abandon":
                return await self._run_abandonable(function, given)
            case _:
                with self.lifetime.flushing() as scope:
                    # "wait" means that a cancellation of the call does not end the wait; the flush's deadline does,
                    # since nothing may outlast the agent's shield.
                    scope.shield = True
                    return await self._run_abandonable(function, given)
                await trio.lowlevel.checkpoint()
                raise trio.TooSlowError("the runtime's final deadline passed")

    async def _run_abandonable(self, function: ThreadFunction, given: ToolInput) -> ToolOutput:
        thread = _Thread(self._limiter)
        token = trio.lowlevel.current_trio_token()

        def call() -> ToolOutput:
            owned_by_in_thread(self.lifetime)
            try:
                return function.call(given)
            finally:
                # The thread may outlive the run.
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(self._ended, thread)

        try:
            # Trio takes anything with these two methods for a limiter.
            limiter = cast(trio.CapacityLimiter, thread)
            return await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
        except trio.Cancelled:
            if thread.began and not thread.ended:
                thread.abandoned = True
                self.lend(1)
            raise

    def _ended(self, thread: _Thread) -> None:
        thread.ended = True
        if thread.abandoned:
            self.lend(-1)

    def lend(self, tokens: int) -> None:
        """More (or fewer) threads may run, because so many do not count any more. Sync."""
        self.lent += tokens
        # A thread that was abandoned keeps its token until it ends, and Trio has no way to take it back: so the limiter
        # grows by one for as long.
        self._limiter.total_tokens = self.limit + self.lent


def reporter(report: Callable[[Any], None]) -> Callable[[Any], None]:
    """``report`` made callable from the tool's thread too."""
    token = trio.lowlevel.current_trio_token()

    @enable_ki_protection
    def from_anywhere(progress: Any) -> None:
        try:
            frozen = checked_progress(progress)
        except NotPlain as problem:
            logger.warning("a report of progress was dropped: it %s", problem)
            return
        if trio.lowlevel.in_trio_run() and trio.lowlevel.current_trio_token() is token:
            report(frozen)
            return
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(report, frozen)

    return from_anywhere

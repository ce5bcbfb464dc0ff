"""A Trio run in a thread of its own, for a process whose main thread is not ours: Ray's actors run asyncio or threads.

loop = TrioThread(main)                 # main(task_status) runs until it returns
value = await loop.run(function, *args)             # from asyncio
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import trio

Main = Callable[..., Awaitable[None]]


class TrioThread:
    """Starts the run, and carries calls into it.

    Raises:
        Exception: from the constructor, what ``main`` raised before it had started.
    """

    def __init__(self, main: Main) -> None:
        self._main = main
        self._started: threading.Event = threading.Event()
        self._failure: BaseException | None = None
        self.ended: threading.Event = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trio", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # for the one who constructs it
            self._failure = error
            if self._started.is_set():
                raise
        finally:
            self._started.set()
            self.ended.set()

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as self._calls:
            await self._calls.start(self._main)
            self._started.set()

    async def run(self, function: Callable[..., Awaitable[Any]], *args: object) -> Any:
        """Call an async function on Trio, from asyncio. Cancelled, the call is cancelled, and its outcome let go.

        Raises:
            Exception: what the function raised.
            RuntimeError: the run has ended.
        """
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        scope = trio.CancelScope()

        async def call() -> None:
            with scope:
                try:
                    answer = await function(*args)
                except Exception as error:
                    with suppress(concurrent.futures.InvalidStateError):
                        future.set_exception(error)
                else:
                    with suppress(concurrent.futures.InvalidStateError):
                        future.set_result(answer)
            # Cut, by the caller or by the end of the run.
            future.cancel()

        def begin() -> None:
            try:
                self._calls.start_soon(call)
            except RuntimeError:
                # The nursery is closed: the run is ending.
                future.cancel()

        try:
            self._token.run_sync_soon(begin)
        except trio.RunFinishedError:
            raise RuntimeError("the Trio run of this process has ended") from None
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(scope.cancel)
            raise

"""Stops a runtime on asyncio after each handle that its loop runs. A virtual clock makes waits free.

The loop's `Handle._run` is wrapped, so that whatever the loop runs is a step. When nothing is ready and no thread
works, the clock jumps to the next timer.
"""

from __future__ import annotations

import asyncio
import threading
import time
from asyncio import events
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import kill
from .judge import judge
from .world import World

LIMIT = 300.0
"""Seconds in which a stop has to return; a runtime that documents a bound is held to that."""
GAP = 1.0
"""Seconds from the stop's return to the third message."""
current: World | None = None
pool = ThreadPoolExecutor(8)
plain_run = events.Handle._run


def counted_run(handle: events.Handle) -> None:
    """A step."""
    plain_run(handle)
    if current is not None:
        current.step()


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps."""

    def __init__(self) -> None:
        self.virtual, self.threads, self.lock = 1_000.0, 0, threading.Lock()
        self.patience = 0.0
        """Seconds of the real clock to wait for a thread that is perhaps about to begin."""
        super().__init__()
        real = self._selector.select  # type: ignore[attr-defined]

        def select(timeout: float | None) -> Any:
            ready = real(0)
            if ready or timeout == 0:
                return ready
            if ready := real(self.patience):
                return ready
            while self.threads or (current is not None and current.blocking):
                if ready := real(0.005):
                    return ready
            if ready := real(0):
                return ready
            if timeout is None:
                raise RuntimeError("nothing will ever happen")
            self.virtual += timeout
            return ready

        self._selector.select = select  # type: ignore[attr-defined]

    def time(self) -> float:
        """The virtual clock."""
        return self.virtual

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        """In a pool of ours, counted, so that the clock stands still while a thread works."""
        with self.lock:
            self.threads += 1

        def over(_: object) -> None:
            with self.lock:
                self.threads -= 1

        job = (executor or pool).submit(func, *args)
        future = asyncio.wrap_future(job, loop=self)
        job.add_done_callback(over)  # after wrap_future's own, so that the result is queued when the count falls
        return future


async def one(runtime: Any, scenario: str, way: str, at: int, window: float) -> dict[str, Any]:
    """One run, stopped after step ``at``, or after the reader's event ``-at``; 0: to count what there is."""
    global current
    loop = asyncio.get_running_loop()
    world = World(scenario, asyncio.sleep, loop.time)
    out: dict[str, Any] = {"at": at}
    own, _, more = way.partition(", ")
    world.at, world.again_at = at, at + 4 if more == "twice" and at else 0
    session = runtime.Session(world, own)
    await session.turn("first", lambda _: None)
    await asyncio.sleep(0.1)
    before = asyncio.all_tasks()
    world.message = "second"
    task = asyncio.create_task(session.turn("second", world.saw))
    stopped = loop.create_future()

    def stop() -> bool:
        if task.done():
            out["natural"] = True
        elif not (task.cancel() if own == "task" else session.stop()):
            return False
        if not stopped.done():
            stopped.set_result(None)
        return True

    world.stop, world.counting, world.steps = stop, True, -1  # the driver's own step, now running, is not the task's
    current = world
    await asyncio.wait({task, stopped}, timeout=window, return_when=asyncio.FIRST_COMPLETED)
    if not at:
        world.counting = False
        task.cancel()
        await asyncio.wait({task}, timeout=3)
        return {"steps": world.steps, "events": world.events}
    if not stopped.done():
        out["natural"] = True
    await asyncio.wait({task}, timeout=LIMIT)
    world.counting = False
    since = loop.time() if world.stopped_at is None else world.stopped_at
    out["late"], out["slow"] = not task.done(), loop.time() - since > 3
    if task.done():
        out["ms"] = (loop.time() - since) * 1e3
        out["cpu_ms"] = (time.perf_counter() - world.cpu) * 1e3 if world.cpu else 0.0
    else:
        task.cancel()
        await asyncio.wait({task}, timeout=3)
    out["ran_then"] = len(world.ran)
    out["end"] = ending(task, out["late"])
    await asyncio.sleep(GAP)
    me = asyncio.current_task()
    left = {
        getattr(one.get_coro(), "__qualname__", "?") for one in asyncio.all_tasks() - before if one not in (me, task)
    }
    out["left"], out["left_tasks"] = bool(left) or world.unfinished() > 0, sorted(left)
    world.message = "third"
    try:
        await asyncio.wait_for(session.turn("third", lambda _: None), 20)
    except BaseException as error:
        out["next"] = f"{type(error).__name__}: {str(error)[:150]}"
    out["request"] = world.requests["third"][0] if world.requests["third"] else None
    return judge(world, out)


def ending(task: asyncio.Task[Any], late: bool) -> str:
    """How the reading loop ended."""
    if late:
        return "did not end"
    if task.cancelled():
        return "CancelledError"
    return type(task.exception()).__name__ if task.exception() else str(task.result())


def killed(runtime: Any, scenario: str, at: int) -> dict[str, Any]:
    """One run that is killed, and resumed by another process. On asyncio's own loop and clock."""
    events.Handle._run = counted_run  # type: ignore[method-assign]

    async def begin(world: World, folder: Path) -> None:
        global current
        session = runtime.Session(world, "", folder)
        await session.turn("first", lambda _: None)
        world.message, world.counting, current = "second", True, world
        with suppress(TimeoutError):
            await asyncio.wait_for(session.turn("second", world.saw), kill.WINDOW if scenario == "hang" else 30)

    async def resume(world: World, folder: Path) -> None:
        session = runtime.Session(world, "", folder)
        await asyncio.wait_for(session.turn("third", lambda _: None), 20)

    return kill.killed(
        lambda world, folder: asyncio.run(begin(world, folder)),
        lambda world, folder: asyncio.run(resume(world, folder)),
        scenario,
        at,
        lambda name: World(name, asyncio.sleep, time.monotonic),
    )


def run(runtime: Any, scenario: str, way: str, at: int, window: float) -> dict[str, Any]:
    """The same in a loop of its own."""
    global current
    events.Handle._run = counted_run  # type: ignore[method-assign]
    loop = Loop()
    loop.patience = 0.003 if scenario == "threads" else 0.0
    loop.set_exception_handler(lambda *_: None)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(one(runtime, scenario, way, at, window))
    finally:
        current = None
        for task in asyncio.all_tasks(loop):
            task.cancel()
        with suppress(BaseException):
            loop.run_until_complete(asyncio.wait_for(asyncio.sleep(0.01), 1))
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

"""Real threads, one at a time: the one that holds the baton runs, and the loop waits meanwhile.

A thread of `trio.to_thread` starts at once and keeps the baton until it ends or waits: for Trio (`trio.from_thread`),
for an event, a condition, a queue or a future of the standard library, or for time to pass. Then the loop goes on, and
the thread is resumed when what it waits for has happened. So runs repeat, and a thread never woken is a deadlock.
"""

from __future__ import annotations

import _thread
import queue
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import outcome
import trio

from . import trio_internals
from .trio_internals import Scheduler, current, current_check, trio_threads

PATIENCE = 10.0
"""Seconds of real time that a thread may run without waiting for anything that is known here."""


class ThreadKilled(BaseException):
    """Raised in a thread that still waits when its run is over."""


class _Mine(threading.local):
    worker: Worker | None = None


_mine = _Mine()


@attrs.define(eq=False, slots=False)
class Worker:
    """One thread of a simulated program."""

    baton: Baton
    name: str
    done: bool = False
    killed: bool = False
    ident: int = 0

    def __attrs_post_init__(self) -> None:
        self.turn: _thread.LockType = _thread.allocate_lock()
        self.turn.acquire()

    def wait(self) -> None:
        """Give the baton back, until this thread is resumed."""
        self.baton.back.release()
        self.turn.acquire()
        if self.killed:
            raise ThreadKilled("the run is over, and this thread still waited")

    # What the thread's clocks and dice ask (`trio_internals.Scheduler`).

    def order(self, batch: list[Any]) -> None:
        """Another Trio run, in this thread: as it comes."""

    def time(self) -> float:
        """Virtual seconds since the beginning of the run."""
        return self.baton.scheduler.time()

    def sleep(self, seconds: float) -> None:
        """Until so much virtual time has passed; tasks run meanwhile."""
        lock = WaitLock(self)
        lock.acquire()
        lock.acquire(True, seconds)

    def start_thread(
        self, work: Callable[[], Any], deliver: Callable[[outcome.Outcome[Any]], object], name: str
    ) -> None:
        """Of another Trio run, in this thread: a real one."""
        trio.lowlevel.start_thread_soon(work, deliver, name)

    def sends_itself_a_signal(self) -> None:
        """As a task would."""
        self.baton.scheduler.sends_itself_a_signal()

    def deadly_signal(self, name: str) -> None:
        """As in a task."""
        self.baton.scheduler.deadly_signal(name)


@attrs.define(eq=False, slots=False)
class Baton:
    """The threads of one run."""

    scheduler: Scheduler
    lost: Callable[[str], None]
    """Told when a thread does not come back, with its stack."""
    workers: list[Worker] = attrs.field(factory=list)
    ready: deque[Worker] = attrs.field(factory=deque)
    timers: list[tuple[float, WaitLock]] = attrs.field(factory=list)
    """Time-outs that no task waits for yet."""
    resumed: int = 0
    """How often a thread was given the baton."""
    entering: list[Callable[[bool], None]] = attrs.field(factory=list)
    """Called in each new thread with True at its beginning, with False at its end."""

    def __attrs_post_init__(self) -> None:
        self.back: _thread.LockType = _thread.allocate_lock()
        self.back.acquire()
        self._before = set(threading.enumerate())

    def start(self, work: Callable[[], Any], deliver: Callable[[outcome.Outcome[Any]], object], name: str) -> None:
        """Run ``work`` in a thread until it ends or waits; called by the loop."""
        worker = Worker(self, name)
        self.workers.append(worker)

        def run() -> None:
            worker.turn.acquire()
            worker.ident = threading.get_ident()
            _mine.worker, current.scheduler = worker, worker
            # What is refused to tasks is refused here.
            current_check.is_simulated = _no_task_of_ours
            for enter in self.entering:
                enter(True)
            try:
                deliver(outcome.capture(work))
            finally:
                _mine.worker, current.scheduler, current_check.is_simulated = None, None, None
                for enter in self.entering:
                    enter(False)
                worker.done = True
                self.back.release()

        trio.lowlevel.start_thread_soon(run, lambda _: None, name)
        self._resume(worker)

    def run_ready(self, loop: Any) -> None:
        """Resume every thread whose wait is over; called by the loop, between two steps."""
        while self.ready:
            self._resume(self.ready.popleft())
        for when, lock in self.timers:
            trio_internals.spawn_outside(loop, _expire, when, lock, name=TIMER)
        self.timers.clear()

    def waiting(self) -> list[str]:
        """The threads that wait, each with the place."""
        return [f"thread {w.name} waits at {_place(w.ident)}" for w in self.workers if not w.done]

    def strangers(self) -> list[threading.Thread]:
        """Threads that the program has started by itself, and that run: nothing here knows what they wait for."""
        ours = {worker.ident for worker in self.workers}
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._before and thread.ident not in ours and not thread.name.startswith("Trio thread")
        ]

    def kill(self) -> None:
        """End every thread that still waits."""
        for worker in self.workers:
            if not worker.done:
                worker.killed = True
                if worker not in self.ready:
                    self.ready.append(worker)

    def finish(self) -> None:
        """The run is over."""
        self.kill()
        while self.ready:
            self._resume(self.ready.popleft())

    def _resume(self, worker: Worker) -> None:
        if worker.done:
            return
        self.resumed += 1
        worker.turn.release()
        if not self.back.acquire(True, PATIENCE):
            worker.done = True
            self.lost(f"thread {worker.name} has not come back for {PATIENCE:g} s of real time: {_stack(worker.ident)}")
            # What it gives back later is for nobody.
            self.back = _thread.allocate_lock()
            self.back.acquire()


def _no_task_of_ours(_: object) -> bool:
    return False


TIMER = "youyou.testing: a thread's time-out"
"""Name of the task that waits for it."""


async def _expire(when: float, lock: WaitLock) -> None:
    await trio.sleep_until(when)
    lock.expire()


class WaitLock:
    """What a condition makes for each waiter, in a simulated thread: waiting on it gives the baton back."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self._locked, self._waits, self._expired = worker, False, False, False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As a lock."""
        if self._locked and (not blocking or timeout == 0):
            return False
        if self._locked:
            baton = self._worker.baton
            if timeout > 0:
                baton.timers.append((baton.scheduler.time() + timeout, self))
            self._waits = True
            self._worker.wait()
        taken, self._locked = not self._locked, True
        return taken

    def release(self) -> None:
        """The thread that waits goes on soon."""
        self._locked = False
        self._wake()

    def expire(self) -> None:
        """The thread that still waits goes on without it."""
        self._wake()

    def locked(self) -> bool:
        """As a lock."""
        return self._locked

    def _wake(self) -> None:
        if self._waits:
            self._waits = False
            self._worker.baton.ready.append(self._worker)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class AnswerQueue:
    """Where a thread waits for the answer of a task."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._answers: deque[Any] = deque()

    def put_nowait(self, answer: Any) -> None:
        """Called by the loop."""
        self._answers.append(answer)
        self._worker.baton.ready.append(self._worker)

    def get(self) -> Any:
        """Called by the thread."""
        while not self._answers:
            self._worker.wait()
        return self._answers.popleft()


def install() -> None:
    """Put the dispatchers in place, once per process."""
    if getattr(threading, "_allocate_lock", None) is not _allocate_lock:
        _real.append(getattr(threading, "_allocate_lock"))  # noqa: B009  # private: the type checker does not know it
        setattr(threading, "_allocate_lock", _allocate_lock)  # noqa: B010  # same
        _real_send.append(trio_threads._send_message_to_trio)
        trio_threads._send_message_to_trio = _send_message_to_trio


_real: list[Callable[[], Any]] = []
_real_send: list[Callable[[Any, Any], Any]] = []


def _allocate_lock() -> Any:
    """Conditions make a lock for each waiter; events, queues and futures are made of conditions."""
    return _real[0]() if _mine.worker is None else WaitLock(_mine.worker)


def _send_message_to_trio(token: Any, message: Any) -> Any:
    if _mine.worker is not None and isinstance(message.queue, queue.SimpleQueue):
        # A frozen class, of which the thread that made it is the only owner yet.
        object.__setattr__(message, "queue", AnswerQueue(_mine.worker))
    return _real_send[0](token, message)


def _place(ident: int) -> str:
    frame = sys._current_frames().get(ident)
    found = [] if frame is None else [f for f in traceback.extract_stack(frame) if f.filename != __file__]
    return "?" if not found else f"{found[-1].filename.rpartition('/')[2]}:{found[-1].lineno} in {found[-1].name}"


def _stack(ident: int) -> str:
    frame = sys._current_frames().get(ident)
    return "it is gone" if frame is None else "".join(traceback.format_stack(frame)[-6:])

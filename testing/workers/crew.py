"""Other processes at work: a list of tasks in, their results out in the same order, however many do them.

    with Crew(4) as crew:                       # a pool of processes; or any Executor
        for result in crew.results(work, tasks): ...

A process that dies takes its tasks with it: they are done again by others. Knows nothing of what the tasks are.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from typing import Any, TypeVar

import attrs

T = TypeVar("T")
R = TypeVar("R")
_AHEAD = 3
"""Tasks for each process that are handed out before their turn: none is idle while results are read."""
_TRIES = 3


class WorkersLost(RuntimeError):
    """A task has ended every process that tried it."""


@attrs.define(eq=False)
class Crew:
    """Processes of our own (a number; 0: this process does everything), or those behind an executor."""

    workers: int | Executor
    _pool: Executor | None = None
    _foreign: bool = False

    def __attrs_post_init__(self) -> None:
        if isinstance(self.workers, Executor):
            self._pool, self._foreign = self.workers, True
        elif isinstance(self.workers, bool) or not isinstance(self.workers, int) or self.workers < 0:
            raise ValueError(
                f"workers={self.workers!r}; write how many processes, or give a concurrent.futures.Executor"
            )

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def size(self) -> int:
        """How many tasks are worth being under way at once."""
        if isinstance(self.workers, int):
            return self.workers
        return int(getattr(self.workers, "_max_workers", 0) or os.cpu_count() or 1)

    def results(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """``work`` of each task, in the order of the tasks. What has not begun when it is closed never does.

        ``work`` must not raise: what comes out of a process is taken for the loss of it.

        Raises:
            WorkersLost: a task was lost three times.
        """
        if self.workers == 0:
            yield from map(work, tasks)
            return
        futures: dict[int, Future[R]] = {}
        try:
            for number in range(len(tasks)):
                yield self._result(work, tasks, number, futures)
        finally:
            for future in futures.values():
                future.cancel()

    def _result(self, work: Callable[[T], R], tasks: Sequence[T], number: int, futures: dict[int, Future[R]]) -> R:
        """The result of one task, those behind it being under way."""
        for tried in range(1, _TRIES + 1):
            # By itself the second time: it need not have been this one that ended the process.
            ahead = self.size * _AHEAD if tried == 1 else 1
            for wanted in range(number, min(number + ahead, len(tasks))):
                if wanted not in futures and (future := self._submit(work, tasks[wanted])) is not None:
                    futures[wanted] = future
            if number not in futures:
                # The executor takes nothing any more, and is not ours to make anew.
                return work(tasks[number])
            try:
                return futures.pop(number).result()
            except (Exception, CancelledError) as error:  # noqa: ASYNC103  that of concurrent.futures
                if tried == _TRIES:
                    raise WorkersLost(_LOST.format(tries=_TRIES, error=error)) from error  # noqa: ASYNC104
                self._end()
                for lost in [n for n, future in futures.items() if not _is_done(future)]:
                    del futures[lost]
        raise AssertionError("the last try returns or raises")

    def _submit(self, work: Callable[[T], R], task: T) -> Future[R] | None:
        """None: the executor of somebody else is broken, or shut down."""
        for _ in range(2):
            try:
                return self._executor().submit(work, task)
            except BrokenExecutor:
                if self._foreign:
                    return None
                self._end()
            except RuntimeError:
                if self._foreign:
                    return None
                raise
        return None

    def _executor(self) -> Executor:
        if self._pool is None:
            assert isinstance(self.workers, int)
            self._pool = process_pool(self.workers)
        return self._pool

    def _end(self) -> None:
        if self._pool is not None and not self._foreign:
            processes = list((getattr(self._pool, "_processes", None) or {}).values())
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.terminate()
            for process in processes:
                process.join()
            self._pool = None


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Processes that find what this one finds, and end with it."""
    # Never by fork: the pytest around us has threads, and a simulation has changed the interpreter.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, _begin, (list(sys.path), os.getcwd()))


_LOST = (
    "{tries} times a process ended in the middle of the same task ({error}); if a script calls this, its call stands "
    "under 'if __name__ == \"__main__\":', and what it runs does not end the process"
)


def _is_done(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _begin(path: list[str], folder: str) -> None:
    """In a new process: find what its parent finds, leave Ctrl-C to it, and end with it."""
    sys.path[:] = [*path, *(p for p in sys.path if p not in path)]
    with contextlib.suppress(OSError):
        os.chdir(folder)
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), name="youyou.testing: parent", daemon=True).start()


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)

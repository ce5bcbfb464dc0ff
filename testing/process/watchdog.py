"""Notice a step that does not come back: an endless loop in a task, a lock that nobody opens, in the loop's own thread.

    with Watchdog() as dog:                     # around many runs
        dog.watch(progress, lost)               # around one: `progress` changes with every step
        ...
        dog.rest()

Nothing in the thread itself could notice. What runs Python is thrown out of its step with `StepKilled`; what waits in C
cannot be, so that the words go to stderr at once.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import traceback
from collections.abc import Callable

PATIENCE = 20.0
"""Seconds of real time that one step may take."""
_LOOKS = 8
_DEBUGGERS = ("pdb.py", "bdb.py", "pydevd.py", "debugpy")


class StepKilled(BaseException):
    """Thrown into a step that does not come back."""


class Watchdog:
    """Looks after the runs of one campaign, from a thread of its own."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="youyou.testing: watchdog", daemon=True)
        self._watched: tuple[int, Callable[[], object], Callable[[str], None]] | None = None

    def __enter__(self) -> Watchdog:
        current.append(self)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        current.remove(self)
        self._over.set()
        self._thread.join()

    def watch(self, progress: Callable[[], object], lost: Callable[[str], None]) -> None:
        """Begin with a run in this thread. ``lost`` is told where it is, in another thread."""
        self._watched = (threading.get_ident(), progress, lost)

    def rest(self) -> None:
        """The run is over."""
        self._watched = None

    def _look(self) -> None:
        seen: object = None
        looks = 0
        while not self._over.wait(PATIENCE / _LOOKS):
            watched = self._watched
            now = None if watched is None else (watched, watched[1]())
            looks = looks + 1 if now is not None and now == seen else 0
            seen = now
            if watched is not None and looks >= _LOOKS:
                looks = 0
                self._lost(watched)

    def _lost(self, watched: tuple[int, Callable[[], object], Callable[[str], None]]) -> None:
        ident, _, lost = watched
        frame = sys._current_frames().get(ident)
        stack = [] if frame is None else traceback.extract_stack(frame)
        if any(os.path.basename(f.filename).startswith(_DEBUGGERS) for f in stack):
            return
        words = (
            f"a step has not come back for {PATIENCE:g} s of real time: {''.join(traceback.format_list(stack[-6:]))}"
        )
        lost(words)
        print(f"youyou.testing: {words}", file=sys.stderr, flush=True)
        if self._watched is watched:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(StepKilled))


current: list[Watchdog] = []
"""Those of the campaigns under way; the last is the innermost."""

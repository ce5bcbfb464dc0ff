"""Notice what a run left behind: coroutines never awaited, generators dropped half-way, errors nobody saw.

Watches the whole process while a sweep runs (the interpreter has one hook for all threads) and puts everything back
after. Automatic garbage collection is off meanwhile: it would run at moments no seed controls.
"""

from __future__ import annotations

import gc
import re
import sys
import warnings
from types import TracebackType
from typing import Any

_TELLING = re.compile(r"coroutine .* was never awaited|[Aa]sync generator .* was garbage collected")


class LeakWatch:
    """A context around many runs; `collect` tells what the run just ended has left behind."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._warnings = warnings.catch_warnings(record=True)
        self._log: list[warnings.WarningMessage] = []
        self._others: list[warnings.WarningMessage] = []

    def __enter__(self) -> LeakWatch:
        self._had_gc = gc.isenabled()
        gc.collect(0)
        gc.disable()
        log = self._warnings.__enter__()
        self._log = [] if log is None else log
        warnings.filterwarnings("always", message=_TELLING.pattern)
        self._hook = sys.unraisablehook
        sys.unraisablehook = self._unraisable
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.collect()
        sys.unraisablehook = self._hook
        self._warnings.__exit__(kind, error, at)
        if self._had_gc:
            gc.enable()
        for seen in self._others:
            warnings.showwarning(seen.message, seen.category, seen.filename, seen.lineno)

    def collect(self) -> list[str]:
        """What was found since the last call, in words. Collects the youngest garbage only: that of the last run."""
        gc.collect(0)
        for seen in self._log:
            text = str(seen.message)
            if _TELLING.search(text):
                self._found.append(text.split("\n")[0].split(". Surround")[0])
            else:
                self._others.append(seen)
        self._log.clear()
        found, self._found = self._found, []
        return found

    def _unraisable(self, seen: Any) -> None:
        # Keep the words only: the hook's arguments would keep a dying object alive.
        self._found.append(f"{seen.err_msg or 'unseen error'}: {type(seen.exc_value).__name__}: {seen.exc_value}")

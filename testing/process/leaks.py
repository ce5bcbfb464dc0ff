"""Notice what a run left behind: coroutines never awaited, generators dropped half-way, errors nobody saw.

Watches the whole process while a sweep runs (the interpreter has one hook for all threads) and puts everything back
after. Automatic garbage collection is off meanwhile: it would run at moments no seed controls.
"""

from __future__ import annotations

import dis
import gc
import re
import sys
import warnings
from types import CodeType, TracebackType
from typing import Any

import attrs

_TELLING = re.compile(r"coroutine .* was never awaited|[Aa]sync generator .* was garbage collected")
_QUOTED = re.compile(r"'([^']*)'")


@attrs.frozen
class Leak:
    """Something left behind."""

    message: str
    name: str
    """Of the coroutine or generator, with its module: what a pattern of ``allow_leaks`` is compared with."""
    harmless: bool = False
    """A generator that waited where no clean-up of its own was open: nothing is lost with it."""


class LeakWatch:
    """A context around many runs; `collect` tells what the run just ended has left behind."""

    def __init__(self) -> None:
        self._found: list[Leak] = []
        self._dropped: dict[str, bool] = {}
        """Names of generators that were dropped, and whether nothing was lost with any of them."""
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

    def observe_generators(self) -> None:
        """See every async generator of the Trio run in this thread that is dropped, before Trio closes it."""
        finalizer = sys.get_asyncgen_hooks().finalizer

        def dropped(generator: Any) -> None:
            leak = _leak("", generator)
            self._dropped[leak.name] = leak.harmless and self._dropped.get(leak.name, True)
            if finalizer is not None:
                finalizer(generator)

        # Trio puts back what was there before its run.
        sys.set_asyncgen_hooks(finalizer=dropped)

    def collect(self) -> list[Leak]:
        """What was found since the last call. Collects the youngest garbage only: that of the last run."""
        gc.collect(0)
        for seen in self._log:
            text = str(seen.message)
            if _TELLING.search(text):
                # The source is the coroutine or generator itself; the log is cleared below, so that it can go.
                self._found.append(_leak(text.split("\n")[0].split(". Surround")[0], seen.source))
            else:
                self._others.append(seen)
        self._log.clear()
        found = [attrs.evolve(leak, harmless=self._dropped.get(leak.name, False)) for leak in self._found]
        self._found.clear()
        self._dropped.clear()
        return found

    def _unraisable(self, seen: Any) -> None:
        # Keep the words only: the hook's arguments would keep a dying object alive.
        text = f"{seen.err_msg or 'unseen error'}: {type(seen.exc_value).__name__}: {seen.exc_value}"
        self._found.append(Leak(text, text))


def left_open(generator: Any) -> Leak:
    """An async generator that still waits at a ``yield`` when all is over."""
    return _leak(f"async generator {generator.__qualname__} was left open", generator)


def _leak(message: str, source: Any) -> Leak:
    quoted = _QUOTED.search(message)
    # Of a generator that is gone Trio has kept the name, of a coroutine Python has.
    known = None if message.startswith("Async") else getattr(source, "__qualname__", None)
    name = known or (quoted.group(1) if quoted else message)
    frame = getattr(source, "ag_frame", None) or getattr(source, "cr_frame", None)
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    full = name if not module or name.startswith(f"{module}.") else f"{module}.{name}"
    harmless = getattr(source, "ag_frame", None) is not None and not cleans_up(source.ag_code, source.ag_frame.f_lasti)
    return Leak(message, full, harmless)


def cleans_up(code: CodeType, at: int) -> bool:
    """Whether a ``try``, ``with`` or ``async with`` of ``code`` is open at instruction ``at``.

    Read from the table of exception handlers. Those that the compiler adds of its own (around the whole of a generator,
    around an await) begin with other instructions than those of the program.
    """
    instructions = {i.offset: i for i in dis.get_instructions(code)}
    table: Any = dis.Bytecode(code)
    for entry in table.exception_entries:
        if entry.start <= at < entry.end:
            # Since 3.12 a generator turns StopIteration into RuntimeError by a handler of its own around everything.
            handler = instructions.get(entry.target)
            if handler is not None and handler.opname == "PUSH_EXC_INFO":
                return True
    return False

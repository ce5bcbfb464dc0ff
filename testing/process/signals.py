"""A signal that a simulated program sends to itself must not end the process that tests it.

While a campaign lasts, signals whose default action is to end the process have a handler. One that the program sent
itself is told to the run; one that came from outside has its default action, as ever.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

from .trio_internals import current

_DEADLY = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM", "SIGVTALRM", "SIGPROF", "SIGABRT")
_own = 0
"""Signals that simulated programs have sent to this process and that have not arrived yet."""


def sent_to_itself() -> None:
    """A simulated program is about to send one."""
    global _own
    _own += 1


def _arrived(number: int, frame: FrameType | None) -> None:
    global _own
    scheduler = current.scheduler
    if scheduler is not None and _own:
        _own -= 1
        scheduler.deadly_signal(signal.Signals(number).name)
    else:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class SignalGuard:
    """A context around many runs; does nothing outside the main thread, where Python takes no handlers."""

    def __enter__(self) -> None:
        self._handled: list[signal.Signals] = []
        self._raise: Any = signal.raise_signal
        if threading.current_thread() is not threading.main_thread():
            return
        for name in _DEADLY:
            number = getattr(signal.Signals, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _arrived)
                self._handled.append(number)
        signal.raise_signal = self._noted

    def _noted(self, number: int, /) -> None:
        if current.scheduler is not None and signal.getsignal(number) is _arrived:
            sent_to_itself()
        self._raise(number)

    def __exit__(self, *_: object) -> None:
        signal.raise_signal = self._raise
        for number in self._handled:
            if signal.getsignal(number) is _arrived:
                signal.signal(number, signal.SIG_DFL)

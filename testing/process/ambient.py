"""Randomness and clocks that a program takes from the interpreter: the same in every run, and put back after it.

``random``, ``os.urandom`` (with it ``secrets`` and ``uuid``) and numpy's old global generator begin each run from its
seed. ``time`` and ``datetime`` tell virtual time. Only threads of a simulation see this: functions are replaced by ones
that ask which thread calls, so that every other thread goes on as before.

A module that took a function by name (``from time import monotonic``) before the kit was used has a reference of its
own; `Ambient` finds those by identity, in modules that are neither Python's, nor Trio's, nor a test runner's.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import os
import random
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import trio

from .trio_internals import Scheduler, current

EPOCH = 1_600_000_000.0
"""What ``time.time()`` says at the beginning of every run: 2020-09-13, 12:26:40 UTC."""
_ZERO = 1_000.0
"""What ``time.monotonic()`` and the like say then."""
_NANO = 1_000_000_000
_TESTING = os.path.dirname(os.path.dirname(__file__))
_HOMES = (sysconfig.get_path("stdlib"), os.path.dirname(trio.__file__), _TESTING)
_RUNNERS = ("pytest", "_pytest", "hypothesis", "pluggy", "outcome", "coverage", "xdist", "execnet")


def _virtual(scheduler: Scheduler) -> float:
    # Trio's mock clock asks a real one for the time, which does not matter to it: this must not ask back.
    current.scheduler = None
    try:
        return scheduler.time()
    finally:
        current.scheduler = scheduler


def _clock(real: Callable[[], Any], convert: Callable[[float], Any]) -> Callable[[], Any]:
    def clock() -> Any:
        scheduler = current.scheduler
        return real() if scheduler is None else convert(_virtual(scheduler))

    clock.__name__ = clock.__qualname__ = real.__name__
    return clock


def _with_default(real: Callable[..., Any], position: int) -> Callable[..., Any]:
    """For ``time.localtime`` and the like: without an argument they take the time from the clock themselves."""

    def convert(*args: Any) -> Any:
        scheduler = current.scheduler
        if scheduler is None or (len(args) > position and args[position] is not None):
            return real(*args)
        now: Any = EPOCH + _virtual(scheduler)
        return real(*args[:position], now if position == 0 and real is not _REAL_ASCTIME else time.localtime(now))

    convert.__name__ = convert.__qualname__ = real.__name__
    return convert


_REAL_ASCTIME = time.asctime


def _sleep(real: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        scheduler = current.scheduler
        if scheduler is None:
            real(seconds)
        else:
            scheduler.sleep(seconds)

    return sleep


def _urandom(real: Callable[[int], bytes]) -> Callable[[int], bytes]:
    def urandom(size: int, /) -> bytes:
        return real(size) if current.scheduler is None else _ambient_bytes.randbytes(size)

    return urandom


_ambient_bytes = random.Random()


def _moments() -> Iterator[tuple[type, str, Any]]:
    """Class, name, and the class method that stands there; subclasses of a program inherit them."""
    moment: Any = datetime.datetime
    day: Any = datetime.date
    # Not `cls.fromtimestamp`: a subclass that overrides it does not expect the base class to call it.
    made, real_now = moment.__dict__["fromtimestamp"], moment.__dict__["now"]

    def now(cls: Any, tz: datetime.tzinfo | None = None) -> Any:
        scheduler = current.scheduler
        if scheduler is None:
            return real_now.__get__(None, cls)(tz)
        return made.__get__(None, cls)(EPOCH + _virtual(scheduler), tz)

    yield moment, "now", now
    yield (
        moment,
        "utcnow",
        _without_argument(
            moment.__dict__["utcnow"],
            lambda cls, seconds: made.__get__(None, cls)(seconds, datetime.UTC).replace(tzinfo=None),
        ),
    )
    yield day, "today", _without_argument(day.__dict__["today"], lambda cls, seconds: cls.fromtimestamp(seconds))


def _without_argument(real: Any, virtual: Callable[[Any, float], Any]) -> Callable[[Any], Any]:
    def present(cls: Any) -> Any:
        scheduler = current.scheduler
        return real.__get__(None, cls)() if scheduler is None else virtual(cls, EPOCH + _virtual(scheduler))

    return present


def _set_method(cls: type, name: str, method: Any) -> None:
    """Put ``method`` into a class of the interpreter's own, which no assignment can change.

    The class itself has to stay: pydantic, msgspec, cattrs, pickle and every ``type(x) is datetime`` ask for this very
    type, so that a subclass in its place breaks whatever is first built inside a run.
    """
    [namespace] = gc.get_referents(cls.__dict__)
    namespace[name] = method
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


def _seconds(now: float) -> float:
    return _ZERO + now


def _nanoseconds(now: float) -> int:
    return int((_ZERO + now) * _NANO)


def _replacements() -> Iterator[tuple[ModuleType, str, Any]]:
    """Module, name, and what stands there while a campaign lasts."""
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        yield time, name, _clock(getattr(time, name), _seconds)
        yield time, f"{name}_ns", _clock(getattr(time, f"{name}_ns"), _nanoseconds)
    yield time, "time", _clock(time.time, lambda now: EPOCH + now)
    yield time, "time_ns", _clock(time.time_ns, lambda now: int((EPOCH + now) * _NANO))
    for name, position in (("localtime", 0), ("gmtime", 0), ("ctime", 0), ("asctime", 0), ("strftime", 1)):
        yield time, name, _with_default(getattr(time, name), position)
    yield time, "sleep", _sleep(time.sleep)
    yield os, "urandom", _urandom(os.urandom)
    yield random, "_urandom", _urandom(os.urandom)
    # Otherwise ``uuid1`` takes the real time in C.
    yield uuid, "_generate_time_safe", None


class Ambient:
    """A context around many runs. Between two runs everything is real."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []
        self._methods: list[tuple[type, str, Any]] = []

    def __enter__(self) -> Ambient:
        found = {}
        for module, name, made in _replacements():
            real = getattr(module, name, None)
            if real is None or made is None:
                self._replace(module, name, made)
                continue
            found[id(real)] = made
            self._replace(module, name, made)
        for module in list(sys.modules.values()):
            if _is_the_programs(module):
                for name, value in list(vars(module).items()):
                    if id(value) in found:
                        self._replace(module, name, found[id(value)])
        for cls, name, method in list(_moments()):
            self._methods.append((cls, name, cls.__dict__[name]))
            method.__name__ = method.__qualname__ = name
            _set_method(cls, name, classmethod(method))
        return self

    def __exit__(self, *_: object) -> None:
        for module, name, real in reversed(self._undo):
            setattr(module, name, real)
        self._undo.clear()
        for cls, name, method in reversed(self._methods):
            _set_method(cls, name, method)
        self._methods.clear()

    def _replace(self, module: Any, name: str, made: Any) -> None:
        self._undo.append((module, name, getattr(module, name, None)))
        setattr(module, name, made)


def _is_the_programs(module: object) -> bool:
    if not isinstance(module, ModuleType) or module.__name__.partition(".")[0] in _RUNNERS:
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ == "__main__"
    inside = os.path.join(_HOMES[0], "site-packages")
    return file.startswith(inside) or not file.startswith(_HOMES) if not file.startswith(_HOMES[1:]) else False


class Seeded:
    """A context around one run: global generators begin from ``seed``, and go on after it as if nothing had been."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._state = random.getstate()
        random.seed(self._seed)
        _ambient_bytes.seed(self._seed)
        numpy = sys.modules.get("numpy.random")
        self._numpy = None if numpy is None else numpy.get_state()
        if numpy is not None:
            numpy.seed(self._seed % 2**32)
        self._last = getattr(uuid, "_last_timestamp", None)
        setattr(uuid, "_last_timestamp", None)  # noqa: B010  # private: the type checker does not know it

    def __exit__(self, *_: object) -> None:
        random.setstate(self._state)
        if self._numpy is not None:
            sys.modules["numpy.random"].set_state(self._numpy)
        setattr(uuid, "_last_timestamp", self._last)  # noqa: B010  # same

"""What a scenario promises, and when the promise is looked at: after every step, at the end, some time, in time.

Knows nothing of how a run is steered; it is told when to look, and says what is wrong to its listeners.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Protocol

import attrs
import trio

from ..process.locations import caller
from ..process.watchdog import StepKilled
from .attempt import Promise, Severity

Check = Callable[[], object]


class Listener(Protocol):
    """Hears of a broken promise."""

    now: float
    stopped: int | None

    def stop(self, kind: str, message: str, leaves: tuple[str, ...] = ()) -> None:
        """Record it and end the run."""

    def violate(
        self,
        kind: str,
        message: str,
        leaves: tuple[str, ...] = (),
        trace: str = "",
        severity: Severity = "failure",
    ) -> None:
        """Record it."""


@attrs.define(eq=False)
class Oracles:
    """The promises of one run."""

    listener: Listener
    promises: dict[Promise, None]
    """What was promised, in order."""
    checks: list[Callable[[], None]]
    """Called after every step."""
    longest_shutdown: float | None = None
    _ends: list[tuple[str, Check]] = attrs.field(factory=list)
    _pending: dict[int, tuple[str, Callable[[], None]]] = attrs.field(factory=dict)

    def always(self, check: Check, message: str) -> None:
        """``check`` holds after every step; the first time it does not ends the run."""
        name = self._promised("always", check, message)

        def look() -> None:
            if self.listener.stopped is None and (problem := problem_of(check)) is not None:
                self.listener.stop("always", f"{name}: {problem}", ("AssertionError",))

        self.checks.append(look)

    def at_end(self, check: Check, message: str) -> None:
        """``check`` holds when all is over."""
        self._ends.append((self._promised("at_end", check, message), check))

    def eventually(self, check: Check, message: str, deadline: float | None) -> None:
        """``check`` holds once, before ``deadline``."""
        name, number = self._promised("eventually", check, message), len(self.checks)

        def look() -> None:
            if number not in self._pending:
                return
            if deadline is not None and self.listener.now > deadline:
                del self._pending[number]
                self.listener.stop("eventually", f"{name}: not true in time")
            elif problem_of(check) is None:
                del self._pending[number]

        self._pending[number] = (name, look)
        self.checks.append(look)

    def shutdown_within(self, seconds: float) -> None:
        """The target of the first cancel ends in time."""
        self._note("shutdown", f"what is cancelled ends within {seconds:g} s")
        self.longest_shutdown = seconds

    def _promised(self, kind: str, check: Check, message: str) -> str:
        if not callable(check):
            raise TypeError(f"sim.{kind}() takes a function that is called later; {check!r} is its result already")
        if kind != "at_end" and inspect.iscoroutinefunction(check):
            raise TypeError(f"sim.{kind}() takes a plain function, which {describe(check)} is not: it is async")
        if not isinstance(message, str):
            raise TypeError(f"the message of sim.{kind}() is a text, not {message!r}")
        name = message or describe(check)
        self._note(kind, name)
        return name

    def _note(self, kind: str, name: str) -> None:
        self.promises[Promise(kind, name, caller())] = None

    def shut_down(self, took: float) -> None:
        """The target of the first cancel has ended ``took`` virtual seconds after it."""
        longest = self.longest_shutdown
        if longest is not None and took > longest:
            self.listener.violate(
                "shutdown", f"ended {took:g} virtual seconds after the cancel, allowed are {longest:g}"
            )

    def finish_pending(self) -> None:
        """Nothing more will happen: what has not become true never will."""
        for _, look in list(self._pending.values()):
            look()
        for name, _ in self._pending.values():
            self.listener.violate("eventually", f"{name}: never became true")

    async def end(self) -> None:
        """Look at what must hold in the end.

        Cancellation: the checks themselves may be cancelled when they hang; nothing else waits.
        """
        for name, check in self._ends:
            if (problem := await _problem_at_end(check)) is not None:
                self.listener.violate("at_end", f"{name}: {problem}", ("AssertionError",))


def describe(check: Check) -> str:
    """A name for a check that was given none."""
    code = getattr(check, "__code__", None)
    name = getattr(check, "__name__", repr(check))
    return f"{name} (line {code.co_firstlineno})" if code is not None else str(name)


def problem_of(check: Check) -> str | None:
    """What is wrong with the world according to ``check``; None if nothing is."""
    try:
        result = check()
    except (KeyboardInterrupt, StepKilled):
        raise
    except BaseException as error:  # noqa: ASYNC103  # a sync check; pytest.fail() raises no Exception
        return f"{type(error).__name__}: {error}"  # noqa: ASYNC104  # same
    return None if result is None or result else f"is {result!r}"


async def _problem_at_end(check: Check) -> str | None:
    try:
        result = check()
        if inspect.isawaitable(result):
            result = await result
    except trio.Cancelled:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if result is None or result else f"is {result!r}"

"""Break a port on purpose: fail before or after the effect, hang, be slow, end early, die.

A port is any object whose awaited methods stand for the outside world. `FaultPlan.wrap` returns a stand-in that
numbers every awaited call (a stream counts one call per item) and breaks the ones the plan names. Works in any Trio
program; inside a simulation `sim.port` does the same and lets a sweep choose the calls.

    plan = FaultPlan().at("store", "append", call=2, mode="raise_after")
    store = plan.wrap("store", MemoryStore())
"""

from __future__ import annotations

import errno
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, cast, get_args

import attrs
import trio

T = TypeVar("T")
Mode = Literal[
    "raise_before",
    "raise_after",
    "hang",
    "slow",
    "cut",
    "dies",
    "cancel_after",
    "hang_after",
    "slow_after",
    "dies_after",
]
MODES: tuple[Mode, ...] = get_args(Mode)
LATE = 3600.0
"""Seconds by which a ``slow`` call is late unless the fault says otherwise."""


class InjectedFault(Exception):
    """What a broken port raises unless the fault names another error."""


class InjectedDeath(BaseException):
    """What a port raises that dies with something no ``except Exception`` sees."""


@attrs.frozen
class PortCall:
    """One awaited call: its number among all calls, and which call of its method it is (from 1)."""

    number: int
    port: str
    method: str
    nth: int

    def __str__(self) -> str:
        return f"{self.port}.{self.method}#{self.nth}"


@attrs.frozen
class Fault:
    """What goes wrong with one call.

    ``raise_before``: nothing happened. ``raise_after``: the effect happened and the answer was lost. ``hang``: no
    answer ever. ``slow``: late by ``seconds``. ``cut``: a stream ends early without an error. ``dies``: a
    `BaseException`. With ``_after`` (hang, slow, dies) the effect happens first. ``cancel_after``: the effect happened,
    and a cancel comes in place of the answer; in a simulation only.
    """

    mode: Mode
    """What goes wrong."""
    port: str = "*"
    """Name of the port; ``*``: any."""
    method: str = "*"
    """Name of the method; ``*``: any."""
    call: int = 1
    """Which call of the method, from 1."""
    error: Callable[[], BaseException] | None = None
    """Makes the exception to raise; None: `InjectedFault` or `InjectedDeath`."""
    seconds: float = LATE
    """How late a ``slow`` call is."""

    def exception(self, call: PortCall) -> BaseException:
        """The error to raise for ``call``."""
        if self.error is not None:
            return self.error()
        kind = InjectedDeath if self.mode in ("dies", "dies_after") else InjectedFault
        done = self.mode.endswith("_after")
        happened = "the effect happened, the answer is lost" if done else "nothing happened"
        return kind(f"{call}: {happened}")


@attrs.define(eq=False)
class FaultPlan:
    """Which calls of which ports go wrong, and a log of every call made."""

    faults: list[Fault] = attrs.field(factory=list)
    """What goes wrong with which call."""
    calls: list[PortCall] = attrs.field(factory=list)
    """Every call that was made, in order."""
    raised: list[BaseException] = attrs.field(factory=list)
    """Every exception that was raised on purpose."""
    _counts: Counter[tuple[str, str]] = attrs.field(factory=Counter)

    def at(
        self,
        port: str,
        method: str,
        *,
        call: int = 1,
        mode: Mode = "raise_before",
        error: Callable[[], BaseException] | None = None,
        seconds: float = LATE,
    ) -> FaultPlan:
        """Break the ``call``-th call (from 1) of ``port.method``; ``*`` matches any name. Returns the plan itself."""
        if mode not in MODES:
            raise ValueError(f"unknown fault mode {mode!r}; choose one of {', '.join(MODES)}")
        if mode == "cancel_after":
            raise ValueError("'cancel_after' needs a simulation, which knows what to cancel: sweep(..., faults=...)")
        self.faults.append(Fault(mode, port, method, call, error, seconds))
        return self

    def wrap(self, name: str, target: T) -> T:
        """A stand-in for ``target`` that behaves the same until the plan says otherwise."""
        return cast("T", proxy(self, name, target))

    def fault_for(self, call: PortCall) -> Fault | None:
        """The fault planned for ``call``, if any."""
        for fault in self.faults:
            if fault.port in ("*", call.port) and fault.method in ("*", call.method) and fault.call == call.nth:
                return fault
        return None

    async def cancel_now(self, call: PortCall) -> None:
        """Deliver a cancel to the task that made ``call``."""
        raise NotImplementedError

    def latency(self, call: PortCall) -> float:
        """Seconds by which an unbroken call is late; 0 here."""
        return 0

    async def perform(self, port: str, method: str, invoke: Callable[[], Awaitable[Any]]) -> Any:
        """Make one call, as the plan wants it.

        Cancellation: as the call itself; a broken call adds one checkpoint before it raises.
        """
        call = self._number(port, method)
        if delay := self.latency(call):
            await trio.sleep(delay)
        fault = self.fault_for(call)
        if fault is None:
            return await invoke()
        match fault.mode:
            case "hang":
                await trio.sleep_forever()
            case "slow":
                await trio.sleep(fault.seconds)
                return await invoke()
            case "cut" if method == "__anext__":
                raise StopAsyncIteration
            case "hang_after":
                await invoke()
                await trio.sleep_forever()
            case "slow_after":
                made = await invoke()
                await trio.sleep(fault.seconds)
                return made
            case "cancel_after":
                made = await invoke()
                await self.cancel_now(call)
                return made
            case "raise_after" | "dies_after":
                await invoke()
            case _:
                await trio.lowlevel.checkpoint()
        self.raised.append(fault.exception(call))
        raise self.raised[-1]

    def perform_now(self, port: str, method: str) -> None:
        """Count a call that is not awaited, such as one of a file, and break it if the plan wants it.

        Such a call cannot hang or be late: it is broken before its effect whatever the mode.

        Raises:
            OSError: ``EIO``; its cause is the injected error.
        """
        call = self._number(port, method)
        fault = self.fault_for(call)
        if fault is not None and fault.mode != "cancel_after":
            self.raised.append(fault.exception(call))
            raise OSError(errno.EIO, f"{call} is broken") from self.raised[-1]

    def _number(self, port: str, method: str) -> PortCall:
        self._counts[port, method] += 1
        call = PortCall(len(self.calls) + 1, port, method, self._counts[port, method])
        self.calls.append(call)
        return call


class Proxy:
    """Forwards everything to the real object and sends awaited calls through the plan."""

    def __init__(self, plan: FaultPlan, name: str, target: Any) -> None:
        self._proxied = (plan, name, target)

    def __getattr__(self, attribute: str) -> Any:
        plan, name, target = self._proxied
        value = getattr(target, attribute)
        return _method(plan, name, attribute, value) if callable(value) else value

    def __repr__(self) -> str:
        return f"<port {self._proxied[1]}: {self._proxied[2]!r}>"


def proxy(plan: FaultPlan, name: str, target: Any) -> Any:
    """A `Proxy` that also has the special methods of ``target``, and passes for its type."""
    body: dict[str, Any] = {"__class__": property(lambda self: type(target))}
    for special in _SPECIAL & set(dir(type(target))):
        body[special] = _special(special)
    return type("Proxy", (Proxy,), body)(plan, name, target)


_AWAITED = {"__aenter__", "__aexit__", "__anext__"}
_PLAIN = {"__enter__", "__exit__", "__len__", "__iter__", "__contains__", "__getitem__", "__setitem__", "__call__"}
_SPECIAL = _AWAITED | _PLAIN | {"__aiter__"}


def _special(special: str) -> Callable[..., Any]:
    def forward(self: Proxy, *args: Any) -> Any:
        plan, name, target = self._proxied
        if special in _AWAITED and special != "__aexit__":
            return _awaited(plan, name, special, lambda: getattr(target, special)(*args))
        result = getattr(target, special)(*args)
        return self if result is target else _seen(plan, name, result)

    return forward


def _method(plan: FaultPlan, name: str, method: str, value: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if method in ("aclose", "athrow"):
            return value(*args, **kwargs)
        if inspect.iscoroutinefunction(value):
            return _awaited(plan, name, method, lambda: value(*args, **kwargs))
        result = value(*args, **kwargs)
        if inspect.isawaitable(result) and not hasattr(result, "__aenter__"):
            return _finish(plan, name, method, result)
        return _seen(plan, f"{name}.{method}", result)

    # What Trio calls a task that is spawned with it.
    call.__name__, call.__qualname__ = method, f"{name}.{method}"
    return call


async def _awaited(plan: FaultPlan, name: str, method: str, invoke: Callable[[], Awaitable[Any]]) -> Any:
    result = await plan.perform(name, method, invoke)
    where = name if method in ("__aenter__", "__anext__") else f"{name}.{method}"
    if method == "__aenter__" and _has_async_methods(result):
        return proxy(plan, where, result)
    return result if method == "__anext__" else _seen(plan, where, result)


async def _finish(plan: FaultPlan, name: str, method: str, made: Any) -> Any:
    async def invoke() -> Any:
        return await made

    try:
        return await _awaited(plan, name, method, invoke)
    finally:
        if inspect.iscoroutine(made):
            made.close()


def _has_async_methods(result: object) -> bool:
    kind = type(result)
    return any(inspect.iscoroutinefunction(getattr(kind, name, None)) for name in dir(kind))


def _seen(plan: FaultPlan, name: str, result: Any) -> Any:
    """Streams and contexts that a port hands out are part of the port."""
    if hasattr(type(result), "__anext__") or hasattr(type(result), "__aenter__"):
        return proxy(plan, name, result)
    return result

"""Where a task waits, and for whom: read from the frames of suspended coroutines. Changes nothing."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from types import CodeType, FrameType, GeneratorType
from typing import Any

import attrs
import trio

from . import trio_internals

Task = trio.lowlevel.Task

_TRIO = os.path.dirname(trio.__file__) + os.sep
_TESTING = os.path.dirname(os.path.dirname(__file__))
_MODULES = (
    "campaigns/decorator",
    "engine/faults",
    "engine/oracles",
    "engine/port_calls",
    "engine/running",
    "engine/targets",
    "process/recording",
    "process/trio_internals",
)
_ENGINE = {os.path.join(_TESTING, *f"{name}.py".split("/")) for name in _MODULES}
_SIMULATION = os.path.join(_TESTING, "engine", "simulation.py")
_foreign: dict[str, bool] = {}


@attrs.frozen
class Location:
    """An await in the program: the innermost one outside Trio."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return self.function if not self.file else f"{os.path.basename(self.file)}:{self.line} in {self.function}"


NOWHERE = Location("", 0, "(finished)")
_locations: dict[tuple[str, int, str], Location] = {}


def is_foreign(file: str) -> bool:
    """Whether ``file`` is part of Trio or of this engine rather than of the program."""
    known = _foreign.get(file)
    if known is None:
        known = file.startswith(_TRIO) or file in _ENGINE
        _foreign[file] = known
    return known


def frames(coro: Any) -> Iterator[FrameType]:
    """The frames of a suspended coroutine, outermost first."""
    while coro is not None:
        if hasattr(coro, "cr_frame"):
            if coro.cr_frame is not None:
                yield coro.cr_frame
            coro = coro.cr_await
        elif hasattr(coro, "gi_frame"):
            if coro.gi_frame is not None:
                yield coro.gi_frame
            coro = coro.gi_yieldfrom
        else:
            coro = _behind(coro)
            if coro is None:
                return
            yield coro.ag_frame
            coro = coro.ag_await


def _behind(awaited: object) -> Any:
    """The async generator behind an ``asend`` or ``athrow``, which only the garbage collector knows."""
    for referent in gc.get_referents(awaited):
        if getattr(referent, "ag_frame", None) is not None:
            return referent
    return None


def location_of(task: Task) -> Location:
    """Where ``task`` is suspended."""
    coro: Any = task.coro
    found: Any = None
    # Code and not frames: Python makes a frame of a suspended coroutine only for somebody who asks, and this is asked
    # after every step.
    try:
        while coro is not None:
            file = coro.cr_code.co_filename
            if not (_foreign[file] if file in _foreign else is_foreign(file)):
                found = coro
            coro = coro.cr_await
    except AttributeError:
        # Nearly always Trio's own generator at the very bottom, which says nothing.
        if type(coro) is not GeneratorType or coro.gi_yieldfrom is not None or not is_foreign(coro.gi_code.co_filename):
            below = [frame for frame in frames(coro) if not is_foreign(frame.f_code.co_filename)]
            if below:
                return locate(below[-1])
    frame = None if found is None else found.cr_frame
    if frame is None:
        return _of_trio_alone(task)
    key = (id(found.cr_code), frame.f_lasti)
    known = _of_instruction.get(key)
    if known is None:
        # With the code, so that no other one gets its number.
        known = _of_instruction[key] = (locate(frame), found.cr_code)
    return known[0]


_of_instruction: dict[tuple[int, int], tuple[Location, CodeType]] = {}
"""To tell a line of an instruction takes Python longer than all the rest."""


def _of_trio_alone(task: Task) -> Location:
    """For a task that runs one of Trio's own functions, or a port's method: the call by its name."""
    for frame in frames(task.coro):
        if (called := _port_method(frame)) is not None:
            return _located("", 0, called)
        if frame.f_code.co_filename.startswith(_TRIO):
            return _located("", 0, _call(frame.f_code.co_qualname, frame.f_locals.get("self")))
    return NOWHERE


def _port_method(frame: FrameType) -> str | None:
    """``bank.charge`` if this is the frame of the proxy that makes this call."""
    if frame.f_code.co_filename in _ENGINE and frame.f_code.co_name in ("_awaited", "_finish"):
        return f"{frame.f_locals['name']}.{frame.f_locals['method']}"
    return None


def arguments_of(task: Task) -> str:
    """The plain arguments (texts, numbers) of the function that ``task`` runs, as its frame holds them now."""
    frame: FrameType | None = getattr(task.coro, "cr_frame", None)
    if frame is None:
        return ""
    code = frame.f_code
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = ((name, frame.f_locals.get(name)) for name in named)
    return ", ".join(f"{name}={value!r}" for name, value in values if isinstance(value, str | int | float))


def chain_of(task: Task) -> tuple[Location, ...]:
    """The program's calls that lead to where ``task`` is suspended, the outermost first."""
    found = [locate(frame) for frame in frames(task.coro) if not is_foreign(frame.f_code.co_filename)]
    return tuple(found) or (_of_trio_alone(task),)


def chain_of_caller(task: Task) -> tuple[Location, ...]:
    """The program's calls that lead into the engine, in ``task``, which runs now; none if the engine is all it runs."""
    frame: FrameType | None = sys._getframe(1)
    outermost = getattr(task.coro, "cr_frame", None)
    found: list[Location] = []
    while frame is not None:
        if not is_foreign(frame.f_code.co_filename):
            found.append(locate(frame))
        if frame is outermost:
            break
        frame = frame.f_back
    return tuple(reversed(found))


def caller() -> str:
    """The line of the program that calls into the engine now, as ``file:line``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_foreign(frame.f_code.co_filename) or frame.f_code.co_filename == _SIMULATION):
        frame = frame.f_back
    return "" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def raised_at(error: BaseException) -> Location:
    """The innermost place of the program that ``error`` passed; where it was caught, if it was caught there."""
    return _passed(error, innermost=True)


def caught_at(error: BaseException) -> Location:
    """The outermost place of the program that ``error`` has reached."""
    return _passed(error, innermost=False)


def _passed(error: BaseException, *, innermost: bool) -> Location:
    found, trace = NOWHERE, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not is_foreign(code.co_filename) and (innermost or found is NOWHERE):
            found = _located(code.co_filename, trace.tb_lineno, code.co_qualname)
        trace = trace.tb_next
    return found


def locate(frame: FrameType) -> Location:
    """The place in the source at which ``frame`` stands."""
    code = frame.f_code
    return _located(code.co_filename, frame.f_lineno, code.co_qualname)


def _located(file: str, line: int, function: str) -> Location:
    key = (file, line, function)
    location = _locations.get(key)
    if location is None:
        location = _remembered(key, Location(key[0], key[1], key[2].replace("<locals>.", "")))
    return location


def _remembered(key: tuple[str, int, str], location: Location) -> Location:
    name = f"{os.path.basename(location.file)}:{location.line} {location.function}"
    _codes[id(location)] = int.from_bytes(blake2b(name.encode(), digest_size=7).digest(), "big")
    _locations[key] = location
    return location


_codes: dict[int, int] = {}
"""By identity: each place is one object, which lives as long as the process."""
_remembered(("", 0, NOWHERE.function), NOWHERE)


def code_of(location: Location) -> int:
    """A number for a place at which a task was seen, the same in every process; its folder does not count."""
    return _codes[id(location)]


@attrs.frozen
class Wait:
    """One blocked task: where, in which call of Trio, and the tasks that could wake it (as far as Trio tells)."""

    task: str
    location: Location
    call: str
    holders: tuple[str, ...] = ()
    detail: str = ""
    chain: tuple[Location, ...] = ()
    """The calls that led there, the outermost first."""

    def __str__(self) -> str:
        by = f", which {' and '.join(self.holders)} must end" if self.holders else ""
        extra = f" ({self.detail})" if self.detail else ""
        return f"{self.task} waits at {self.location}, in {self.call}{extra}{by}"


def wait_of(task: Task, name_of: Callable[[Task], str], others: Iterable[Task] = ()) -> Wait:
    """Describe what ``task`` waits for; ``others`` are the tasks that may hold what could wake it."""
    location, call, owner = NOWHERE, "", None
    for frame in frames(task.coro):
        if not is_foreign(frame.f_code.co_filename):
            location, call, owner = locate(frame), "", None
        elif frame.f_code.co_name == "perform" and "call" in frame.f_locals and "port" in frame.f_locals:
            call, owner = f"port call {frame.f_locals['call']}", None
        elif not call and frame.f_code.co_filename not in _ENGINE:
            owner = frame.f_locals.get("self")
            call = _call(frame.f_code.co_qualname, owner)
            # A child that has not said started() lives in a nursery of its own.
            owner = frame.f_locals.get("old_nursery", owner)
    location = _of_trio_alone(task) if location is NOWHERE else location
    holders, detail = _holders(owner, name_of)
    if not holders:
        detail = "; ".join(filter(None, [detail, _held(owner, task, name_of, others)]))
    return Wait(name_of(task), location, call or "a custom awaitable", holders, detail, chain_of(task))


def _held(owner: object, waiter: Task, name_of: Callable[[Task], str], others: Iterable[Task]) -> str:
    """Which tasks hold, in a variable, what could end the wait: the event, or the channel's other end."""
    if isinstance(owner, trio.MemorySendChannel | trio.MemoryReceiveChannel):
        sends = isinstance(owner, trio.MemorySendChannel)
        wanted: type = trio.MemoryReceiveChannel if sends else trio.MemorySendChannel
        state = trio_internals.channel_state(owner)

        def is_it(value: object) -> bool:
            return isinstance(value, wanted) and trio_internals.channel_state(value) is state

        what = "its receiving end" if sends else "its sending end"
    elif isinstance(owner, trio.Event | trio.Condition):

        def is_it(value: object) -> bool:
            return value is owner

        what = "it"
    else:
        return ""
    holding = sorted(name_of(t) for t in others if t is not waiter and _refers(t, is_it))
    return f"{what} is held by {' and '.join(holding) if holding else 'no other task'}"


def _refers(task: Task, is_it: Callable[[object], bool]) -> bool:
    """Whether a variable of the program in ``task``, or an attribute of one, is what is looked for."""
    for frame in frames(task.coro):
        if not is_foreign(frame.f_code.co_filename):
            for value in frame.f_locals.values():
                if is_it(value) or any(map(is_it, getattr(value, "__dict__", {}).values())):
                    return True
    return False


def _call(qualified: str, owner: object) -> str:
    """The call in words: ``Lock.acquire``, whichever base class or special method it went through."""
    name = qualified.rpartition(".")[2]
    if owner is None:
        return f"trio.{qualified}"
    if "Nursery" in type(owner).__name__ and name != "start":
        return "the nursery's end"
    return f"{type(owner).__name__}.{ {'__aenter__': 'acquire', '__anext__': 'receive'}.get(name, name) }"


def _holders(owner: Any, name_of: Callable[[Task], str]) -> tuple[tuple[str, ...], str]:
    if isinstance(owner, trio.Nursery):
        return tuple(sorted(name_of(child) for child in owner.child_tasks)), ""
    nursery = getattr(owner, "_nursery", None)
    if isinstance(nursery, trio.Nursery):
        return tuple(sorted(name_of(child) for child in nursery.child_tasks)), ""
    if isinstance(owner, trio.Lock | trio.StrictFIFOLock):
        holder = owner.statistics().owner
        return ((name_of(holder),) if holder is not None else ()), "locked"
    if isinstance(owner, trio.CapacityLimiter):
        holders = owner.statistics().borrowers
        return tuple(sorted(name_of(t) for t in holders if isinstance(t, Task))), "all tokens borrowed"
    if isinstance(owner, trio.MemorySendChannel | trio.MemoryReceiveChannel):
        seen = owner.statistics()
        return (), f"{seen.open_send_channels} senders and {seen.open_receive_channels} receivers open"
    return (), ""

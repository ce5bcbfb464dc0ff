"""Where a task waits, and for whom: read from the frames of suspended coroutines. Changes nothing."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import attrs
import trio

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
    found: FrameType | None = None
    while coro is not None:
        try:
            frame, coro = coro.cr_frame, coro.cr_await
        except AttributeError:
            for frame in frames(coro):
                if not is_foreign(frame.f_code.co_filename):
                    found = frame
            break
        if frame is None:
            break
        file = frame.f_code.co_filename
        if not (_foreign[file] if file in _foreign else is_foreign(file)):
            found = frame
    if found is None:
        return NOWHERE
    return locate(found)


def location_of_caller(task: Task) -> Location | None:
    """Where the program calls into the engine, in ``task``, which runs now; None if the engine is all it runs."""
    frame: FrameType | None = sys._getframe(1)
    outermost = getattr(task.coro, "cr_frame", None)
    while frame is not None and is_foreign(frame.f_code.co_filename):
        if frame is outermost:
            return None
        frame = frame.f_back
    return None if frame is None else locate(frame)


def locate(frame: FrameType) -> Location:
    """The place in the source at which ``frame`` stands."""
    code = frame.f_code
    key = (code.co_filename, frame.f_lineno, code.co_qualname)
    location = _locations.get(key)
    if location is None:
        location = _locations[key] = Location(key[0], key[1], key[2].replace("<locals>.", ""))
    return location


@attrs.frozen
class Wait:
    """One blocked task: where, in which call of Trio, and the tasks that could wake it (as far as Trio tells)."""

    task: str
    location: Location
    call: str
    holders: tuple[str, ...] = ()
    detail: str = ""

    def __str__(self) -> str:
        by = f", which {' and '.join(self.holders)} must end" if self.holders else ""
        extra = f" ({self.detail})" if self.detail else ""
        return f"{self.task} waits at {self.location}, in {self.call}{extra}{by}"


def wait_of(task: Task, name_of: Callable[[Task], str]) -> Wait:
    """Describe what ``task`` waits for."""
    location, call, owner = NOWHERE, "await", None
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
    return Wait(name_of(task), location, call or "a custom awaitable", *_holders(owner, name_of))


def _call(qualified: str, owner: object) -> str:
    """The call in words: ``Lock.acquire``, whichever base class or special method it went through."""
    name = qualified.rpartition(".")[2]
    if owner is None:
        return qualified
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

"""Task ownership, so that no task waits for what waits for that task (semantics 1.1, WOULD_DEADLOCK).

The task that all of an agent's tasks descend from is marked with the agent. A hook, tool, provider, storage or plugin
that then waits for that agent's turn, session or end would wait for itself: walking up the tree of tasks shows it.
What a tool's thread calls through Trio may run in a system task, which descends from nobody: its context shows it.
"""

from __future__ import annotations

from contextvars import ContextVar
from weakref import WeakKeyDictionary

import trio

from ...messages.errors import WouldDeadlock, WrongTrioRun

_owners: WeakKeyDictionary[trio.lowlevel.Task, object] = WeakKeyDictionary()
_thread_of: ContextVar[object] = ContextVar("youyou_thread_of", default=None)


def own_task(agent: object) -> None:
    """Mark the current task, and all that are started below it, as working for ``agent``. To its end."""
    _owners[trio.lowlevel.current_task()] = agent


def owned_by_in_thread(agent: object) -> None:
    """Mark what the current worker thread calls through Trio as working for ``agent``."""
    _thread_of.set(agent)


def is_owned_by(agent: object) -> bool:
    """Whether the current task, or one that it descends from, works for ``agent``."""
    task: trio.lowlevel.Task | None = trio.lowlevel.current_task()
    # By walking up the tree rather than by a context variable: contexts are copied to tasks that the host starts for
    # itself, which may wait for whatever they like.
    while task is not None:
        if _owners.get(task) is agent:
            return True
        parent = task.parent_nursery.parent_task if task.parent_nursery is not None else None
        # A context is handed on to tasks of the host's as well, but those do not hang right below Trio's own root.
        if parent is not None and parent.parent_nursery is None and task.context.get(_thread_of) is agent:
            return True
        task = parent
    return False


def refuse_waiting(agent: object, what: str) -> None:
    """Raise `WouldDeadlock` where waiting for ``what`` would be waiting for oneself."""
    if is_owned_by(agent):
        raise WouldDeadlock(
            f"{what} waits for the very hook, tool or port that calls it; cancel() is fine here, "
            "but wait in a task of the host"
        )


def check_run(token: trio.lowlevel.TrioToken, what: str) -> None:
    """Raise `WrongTrioRun` outside the Trio run that ``token`` stands for."""
    try:
        here = trio.lowlevel.current_trio_token()
    except RuntimeError:
        here = None
    if here is not token:
        raise WrongTrioRun(
            f"{what} belongs to another Trio run or thread; from a thread of Trio write trio.from_thread.run(...), or "
            "trio.from_thread.run_sync(...) for what is not awaited, as turn.cancel"
        )


def check_trio(what: str) -> None:
    """Raise `WrongTrioRun` where no Trio run is, in asyncio for one."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        raise WrongTrioRun(
            f"{what} needs Trio, and this is not inside a Trio run; start the program with trio.run(main), not with "
            "asyncio.run(main()); the page 'Beside asyncio' says how to have both"
        ) from None

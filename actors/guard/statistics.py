"""What goes on inside an agent (semantics 1.1): numbers, and the tree of tasks with where each waits.

Only Trio's public API is used; looking changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import trio

from ..session.runtime import Runtime
from .guard import Guard

if TYPE_CHECKING:
    from types import CodeType


@attrs.frozen
class MailboxStatistics:
    """One mailbox of an actor: how full it is, and how many tasks wait at it."""

    depth: int
    """Messages not yet taken out."""
    senders_waiting: int
    """Tasks that wait for room to send."""
    receivers_waiting: int
    """1 while the actor waits for a message, 0 while it works on one."""


@attrs.frozen
class AgentStatistics:
    """The numbers of one agent at one moment (semantics 1.1): ``agent.statistics()``.

    Synopsis::

        seen = agent.statistics()
        if seen.stuck: print("still running:", ", ".join(seen.stuck))
        seen.mailboxes["session"].depth

    A frozen copy: ask again for newer numbers. Counts start at zero when the agent is entered.
    """

    running: tuple[str, ...]
    """Names of tools that run now, with a task for each call."""
    stuck: tuple[str, ...]
    """Names of tools that did not stop when they had to; their tasks still run."""
    peak_tools: int
    """The largest number of tools that ran at once."""
    extra_threads: int
    """Worker threads lent beyond the limit, one for each thread of a tool that was abandoned and still runs."""
    unsaved_events: int
    """Events that the session storage has not acknowledged."""
    peak_unsaved_events: int
    """The largest value of ``unsaved_events``."""
    storage_failures: int
    """Writes that failed or took longer than ``storage_timeout_ms``."""
    mailboxes: dict[str, MailboxStatistics]
    """By actor: "guard", "memory extractor" with a memory storage, and "session" while one is open."""
    events_waiting: int = 0
    """Events of the newest turn that wait for a reader."""
    peak_events: int = 0
    """The largest value of ``events_waiting`` in this turn."""
    dropped_events: int = 0
    """Events of this turn that were dropped because it is detached."""
    turn_running: bool = False
    """Whether a turn of the session runs."""


@attrs.frozen
class TaskNode:
    """A task, where it waits, and the tasks below it: ``agent.tree()``. ``str()`` draws the tree."""

    name: str
    """The task's name, for example ``turn`` or ``tool weather``."""
    waits_at: str
    """Function, file and line that the task waits at; "not started" for one that has not run yet."""
    children: tuple[TaskNode, ...] = ()
    """The tasks in the nurseries that the task has open, by name."""

    def __str__(self) -> str:
        return "\n".join(_lines(self, "", ""))


def _lines(node: TaskNode, first: str, rest: str) -> list[str]:
    lines = [f"{first}{node.name}  ({node.waits_at})"]
    for index, child in enumerate(node.children):
        last = index == len(node.children) - 1
        lines += _lines(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))
    return lines


def statistics(runtime: Runtime, guard: Guard) -> AgentStatistics:
    """The numbers of one agent, now."""
    pool, recorder = runtime.pool, runtime.recorder
    session = guard.session
    turn = session.turn if session is not None else None
    events = turn.context.events if turn is not None else None
    mailboxes = {"guard": _mailbox(guard.box)}
    if runtime.registry.memory_storage is not None:
        mailboxes["memory extractor"] = _mailbox(runtime.extractor.box)
    if session is not None:
        mailboxes["session"] = _mailbox(session.box)
    return AgentStatistics(
        pool.running,
        pool.stuck,
        pool.peak,
        pool.threads.lent,
        recorder.unsaved,
        recorder.peak,
        recorder.failures,
        mailboxes,
        # Not `if events`: an empty stream is false.
        len(events) if events is not None else 0,
        events.peak if events is not None else 0,
        events.dropped if events is not None else 0,
        turn is not None,
    )


def _mailbox(channel: trio.MemorySendChannel[Any]) -> MailboxStatistics:
    seen = channel.statistics()
    return MailboxStatistics(seen.current_buffer_used, seen.tasks_waiting_send, seen.tasks_waiting_receive)


def tree(task: trio.lowlevel.Task) -> TaskNode:
    """The task and all below it."""
    children = [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    # Nurseries hold sets: sorted, the drawing is the same each time.
    children.sort(key=lambda child: child.name)
    return TaskNode(task.name, _waits_at(task), tuple(tree(child) for child in children))


def _waits_at(task: trio.lowlevel.Task) -> str:
    """The innermost frame outside Trio itself, where there is one."""
    frames = [(frame.f_code, line) for frame, line in task.iter_await_frames()]
    own = [(code, line) for code, line in frames if not _is_trio(code)]
    if not own:
        return "not started" if not frames else _place(*frames[-1])
    return _place(*own[-1])


def _is_trio(code: CodeType) -> bool:
    return "/trio/" in code.co_filename.replace("\\", "/")


def _place(code: CodeType, line: int) -> str:
    file = code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{code.co_qualname} at {file}:{line}"

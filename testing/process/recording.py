"""A run in full detail: who sent what to whom over which channel, and who woke whom.

Only failures and plain runs are recorded.
`trio_internals.ChannelTracer` tells a recording of every value that passes through a channel.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio

from . import trio_internals

Task = trio.lowlevel.Task
_LONGEST = 120


@attrs.define
class Message:
    """One value on its way through a memory channel."""

    channel: int
    """Number of the channel in this run."""
    value: str
    sender: int | None
    sent_step: int
    sent_time: float
    receiver: int | None = None
    received_step: int | None = None
    received_time: float | None = None
    taken_in_step: bool = False


@attrs.frozen
class Wake:
    """``by`` (a task, or None: the clock, a thread, an injection) made ``task`` runnable."""

    task: int
    by: int | None
    step: int
    time: float
    how: str
    """``value``, ``deadline`` (a sleep is over, for instance), ``cancel`` or ``error``."""


@attrs.define(eq=False, slots=False)
class Recording:
    """The messages and wake-ups of one run; filled by the run's control."""

    messages: list[Message] = attrs.field(factory=list)
    wakes: list[Wake] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._channels: dict[int, tuple[int, object]] = {}
        self._pending: dict[int, list[tuple[object, Message]]] = {}
        self._wakers: dict[Task, int | None] = {}
        self._queued: set[Task] = set()
        self._handed: dict[Task, Message] = {}
        self._control: Any = None

    def begin(self, control: Any) -> None:
        """The first step is under way."""
        self._control, self._queued = control, set(trio_internals.runnable(control.loop))

    def before(self, control: Any, task: Task) -> None:
        """A step begins: what woke the task?"""
        index = control.tasks[task].index
        error = trio_internals.thrown_into(task)
        waker = self._wakers.pop(task, None)
        if waker != index:
            self.wakes.append(Wake(index, waker, control.step, control.now, _how(error)))
        if (message := self._handed.pop(task, None)) is not None and error is None:
            self._received(message, task)
        self._queued = set(trio_internals.runnable(control.loop))

    def after(self, control: Any, task: Task) -> None:
        """A step ended: whom did it wake?"""
        index = control.tasks[task].index
        for woken in trio_internals.runnable(control.loop):
            if woken not in self._queued and woken in control.tasks:
                self._wakers[woken] = index

    def forget(self) -> None:
        """Let go of tasks, channels and values; what was noted stays."""
        for held in (self._channels, self._pending, self._wakers, self._queued, self._handed):
            held.clear()
        self._control = None

    def messages_json(self) -> list[dict[str, Any]]:
        """Every message: from, to, steps, times, and what it was."""
        return [attrs.asdict(m, filter=lambda a, _: a.name != "taken_in_step") for m in self.messages]

    def wakes_json(self) -> list[dict[str, Any]]:
        """Every wake-up."""
        return [attrs.asdict(w) for w in self.wakes]

    # Called by the tracer of channels.

    def sent(self, state: Any, value: object, task: Task | None, to: Task | None) -> None:
        """``value`` entered a channel; ``to`` was already waiting for it."""
        if self._control is None or task not in self._control.tasks:
            return
        number = self._channels.setdefault(id(state), (len(self._channels), state))[0]
        index = self._control.tasks[task].index
        message = Message(number, _short(value), index, self._control.step, self._control.now)
        self.messages.append(message)
        if to is not None:
            self._handed[to] = message
        else:
            self._pending.setdefault(id(state), []).append((value, message))

    def taken(self, state: Any, value: object, task: Task | None) -> None:
        """``value`` left a channel without waiting."""
        waiting = self._pending.get(id(state), [])
        for position, (sent, message) in enumerate(waiting):
            if sent is value:
                del waiting[position]
                self._received(message, task)
                return

    def _received(self, message: Message, task: Task | None) -> None:
        if self._control is not None and task in self._control.tasks:
            message.receiver = self._control.tasks[task].index
            message.received_step, message.received_time = self._control.step, self._control.now


def _how(error: BaseException | None) -> str:
    if error is None:
        return "value"
    if isinstance(error, trio.Cancelled):
        return "deadline" if error.source == "deadline" else "cancel"
    return "error"


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

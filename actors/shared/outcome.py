"""How a turn may end: one place decides, synchronously (semantics 6.1).

The first of completed, failed and cancelled wins. A stop also bounds hooks and, with a grace, tools. Touched by the
turn, by whoever holds its handle and by the session: every method is one sync step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import trio
from trio_util import AsyncValue

from ...messages.content import UserInput
from ...messages.errors import AgentError
from ...messages.events import TurnStatus
from .lifetime import Deadline


@attrs.define(eq=False)
class StopClock:
    """When a stop was asked for, and when what runs is to be cut. Both only move closer."""

    hook_timeout: float
    asked: float = math.inf
    cut_at: float = math.inf
    _hooks: dict[Deadline, None] = attrs.Factory(dict)
    _tools: dict[Deadline, None] = attrs.Factory(dict)

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self.asked < math.inf

    def ask(self, grace: float | None = None) -> None:
        """Ask to stop. Hooks have their time-out from now on; with ``grace`` all is cut after so many seconds."""
        now = trio.current_time()
        self.asked = min(self.asked, now)
        if grace is not None:
            self.cut_at = min(self.cut_at, now + max(0.0, grace))
        for box in self._hooks:
            box.tighten(min(self.asked + self.hook_timeout, self.cut_at))
        for box in self._tools:
            box.tighten(self.cut_at)

    @contextmanager
    def hook(self) -> Iterator[trio.CancelScope]:
        """Around one hook: unbounded until a stop is asked for, then its time-out from the stop or from its start."""
        box = Deadline()
        if self.stopping:
            box.tighten(min(max(self.asked, trio.current_time()) + self.hook_timeout, self.cut_at))
        self._hooks[box] = None
        try:
            with box.scope as scope:
                yield scope
        finally:
            del self._hooks[box]

    @contextmanager
    def cut(self) -> Iterator[trio.CancelScope]:
        """Around work that has a bound of its own: only a grace cuts it."""
        box = Deadline()
        with self.tool(box), box.scope as scope:
            yield scope

    @contextmanager
    def tool(self, box: Deadline) -> Iterator[None]:
        """Around a running tool: only a grace cuts it."""
        self._tools[box] = None
        box.tighten(self.cut_at)
        try:
            yield
        finally:
            del self._tools[box]


@attrs.define(eq=False)
class TurnControl:
    """The outcome of one turn."""

    clock: StopClock
    open_gate: Callable[[], None]
    status: AsyncValue[TurnStatus] = attrs.Factory(lambda: AsyncValue(TurnStatus.QUEUED))
    outcome: TurnStatus | None = None
    reason: str = ""
    error: AgentError | None = None
    steering: list[UserInput] = attrs.Factory(list)
    on_queued_cancel: Callable[[], None] = lambda: None
    _scopes: dict[trio.CancelScope, None] = attrs.Factory(dict)

    def start(self) -> None:
        """The turn leaves the queue."""
        if self.outcome is None:
            self.status.value = TurnStatus.RUNNING

    def steer(self, user_input: UserInput) -> bool:
        """Take a message into the running turn, if nothing is decided. True: it is delivered or handed back."""
        if self.outcome is None:
            self.steering.append(user_input)
        return self.outcome is None

    def take_steering(self) -> tuple[UserInput, ...]:
        """What was steered in and is delivered now."""
        taken = tuple(self.steering)
        self.steering.clear()
        return taken

    def commit(self, *, despite_steering: bool = False) -> bool:
        """Decide *completed*, if nothing is decided and nothing waits to be delivered. Whether it is completed."""
        # A message that was steered in meanwhile was promised to be delivered: the answer before it is then not the
        # final one.
        if self.outcome is None and (despite_steering or not self.steering):
            self.outcome = TurnStatus.COMPLETED
        return self.outcome is TurnStatus.COMPLETED

    def fail(self, error: AgentError) -> bool:
        """Decide *failed*, if nothing is decided. Whether the outcome is failed."""
        if self.outcome is None:
            self.outcome, self.error = TurnStatus.FAILED, error
        return self.outcome is TurnStatus.FAILED

    def cancel(self, reason: str, grace: float | None = None) -> bool:
        """Decide *cancelled*, if nothing is decided, and bound what still runs. Whether the outcome is cancelled."""
        if self.outcome is None:
            self.outcome, self.reason = TurnStatus.CANCELLED, reason
            # Read before the status changes: a turn that never left the queue has no task that could end it.
            queued = self.status.value is TurnStatus.QUEUED
            self.status.value = TurnStatus.CANCELLING
            if queued:
                self.on_queued_cancel()
        # Whatever the outcome: also a stream that has said all, but does not close, is left now.
        for scope in self._scopes:
            scope.cancel(f"the turn was stopped: {reason}")
        # Before the clock: from now on nothing of the turn may wait for a reader, who may be the very task that
        # cancels.
        self.open_gate()
        self.clock.ask(grace)
        return self.outcome is TurnStatus.CANCELLED

    def lose(self, error: AgentError) -> None:
        """Decide *failed*, whatever was decided, and cut all that runs: the log has another owner (semantics 7).

        Whatever was decided, because it is not stored and never will be.
        """
        self.outcome, self.error = TurnStatus.FAILED, error
        for scope in self._scopes:
            scope.cancel("the session has another owner")
        self.open_gate()
        self.clock.ask(0)

    @property
    def committed(self) -> bool:
        """Whether the outcome is completed."""
        return self.outcome is TurnStatus.COMPLETED

    @property
    def stopping(self) -> bool:
        """Whether nothing new may start."""
        return self.outcome is not None

    @contextmanager
    def interruptible(self) -> Iterator[trio.CancelScope]:
        """Around what a cancel ends at once: a stream, a wait, submitting a job."""
        with trio.CancelScope() as scope:
            if self.outcome is TurnStatus.CANCELLED:
                # A scope that is opened after the stop must not begin to wait: the loop may be anywhere between two of
                # them.
                scope.cancel(f"the turn was stopped: {self.reason}")
            self._scopes[scope] = None
            try:
                yield scope
            finally:
                del self._scopes[scope]

    def finish(self) -> TurnStatus:
        """The final status, set once the terminal event is queued."""
        final = self.outcome or TurnStatus.CANCELLED
        self.status.value = final
        return final

"""How long an agent lives once something asks it to stop (semantics 6.2).

One shield around everything that the agent runs. A forced shutdown fixes three absolute points: until the first, tools,
hooks and model streams may run; until the second, history is closed and flushed; at the end of the shield everything is
cut. The points only ever move closer, so that graces never add up. A graceful shutdown fixes none.

    with lifetime.user_code():       # cut at the first point
    with lifetime.flushing():        # closing code: cut at the second
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import trio


@attrs.define(eq=False)
class Deadline:
    """A scope around user code and, for a tool, the patience after it. Both only move closer.

    ``on_tightened`` learns when the tool is given up, whenever that has moved.
    """

    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    patience: float = 0.0
    on_tightened: Callable[[float], None] | None = None

    @property
    def given_up_at(self) -> float:
        """When nobody waits for the tool any more."""
        return self.scope.deadline + self.patience

    def tighten(self, deadline: float, patience: float | None = None) -> None:
        """Cut no later than ``deadline``, and give up ``patience`` seconds after that."""
        if patience is not None:
            self.patience = min(self.patience, patience)
        if deadline < self.scope.deadline:
            self.scope.deadline = deadline
        if self.on_tightened is not None:
            self.on_tightened(self.given_up_at)


@attrs.define(eq=False)
class Lifetime:
    """The one shield of an agent and its three points. Times are `trio.current_time` seconds."""

    grace: float
    closing: float
    shield: trio.CancelScope = attrs.Factory(lambda: trio.CancelScope(shield=True))
    shutting_down: trio.Event = attrs.Factory(trio.Event)
    shutdown_grace: float | None = None
    forced: str | None = None
    interrupt: BaseException | None = None
    user_code_deadline: float = math.inf
    flush_deadline: float = math.inf
    on_forced: list[Callable[[], None]] = attrs.Factory(list)
    on_shutdown: list[Callable[[], None]] = attrs.Factory(list)
    _working: dict[Deadline, None] = attrs.Factory(dict)
    _recording: dict[trio.CancelScope, None] = attrs.Factory(dict)

    def shut_down(self, grace: float | None = None) -> None:
        """Begin, or tighten, a graceful shutdown. Sync, idempotent, any task."""
        if grace is not None:
            self.shutdown_grace = grace if self.shutdown_grace is None else min(self.shutdown_grace, grace)
        self.shutting_down.set()
        for callback in tuple(self.on_shutdown):
            callback()

    def force_shutdown(self, reason: str) -> None:
        """Fix the three points. Sync, idempotent, any task: the first call decides."""
        if self.forced is None:
            self.forced = reason
            now = trio.current_time()
            # Fixed now, as absolute times: whatever is opened later inherits them, so that no closing step can begin a
            # grace of its own.
            self.user_code_deadline = now + self.grace
            # Half of the closing time is the flush's, so that a storage that hangs leaves the other half to plugins.
            self.flush_deadline = self.user_code_deadline + self.closing / 2
            # The shield has a deadline from here on and only because of this line; see `on_forced` for everything that
            # hangs below it.
            self.shield.deadline = min(self.shield.deadline, self.user_code_deadline + self.closing)
            for scope in self._recording:
                scope.deadline = self.flush_deadline
            for box in self._working:
                box.tighten(self.user_code_deadline, patience=0)
            # A copy, because a callback may end a step that takes its own callback out of the list.
            for callback in tuple(self.on_forced):
                callback()
            self.shut_down()

    def interrupted(self, exc: BaseException) -> None:
        """Ctrl-C or `SystemExit` came out of user code: remember it for the host, and force the shutdown."""
        if self.interrupt is None:
            self.interrupt = exc
        self.force_shutdown("host_cancelled")

    @contextmanager
    def user_code(self, deadline: float = math.inf) -> Iterator[trio.CancelScope]:
        """What is cut at the first point, or at ``deadline`` if that is earlier."""
        box = Deadline(trio.CancelScope(deadline=deadline))
        self.follow(box)
        try:
            with box.scope as scope:
                yield scope
        finally:
            self.unfollow(box)

    def follow(self, box: Deadline) -> None:
        """Let a forced shutdown tighten ``box``, until ``unfollow``. Sync."""
        self._working[box] = None
        # Registered after the shutdown began: it must be as tight as what was registered before.
        if self.forced is not None:
            box.tighten(self.user_code_deadline, patience=0)

    def unfollow(self, box: Deadline) -> None:
        """What ``box`` bounds is over. Sync."""
        del self._working[box]

    @contextmanager
    def flushing(self) -> Iterator[trio.CancelScope]:
        """What closes history: cut at the second point."""
        with trio.CancelScope(deadline=self.flush_deadline) as scope:
            self._recording[scope] = None
            try:
                yield scope
            finally:
                del self._recording[scope]

    def share(self, steps_left: int) -> float:
        """The end of an equal share of what is left, so that a closing step that hangs cannot starve the next ones."""
        if self.shield.deadline == math.inf:
            return math.inf
        now = trio.current_time()
        return now + (self.shield.deadline - now) / steps_left

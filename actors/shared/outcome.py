"""How a turn may end: one place decides, synchronously (semantics 6.1).

The first of completed, failed and cancelled wins. A stop also bounds hooks and, with a grace, tools. The rules and the
table of states are `core.stopping`'s; this applies them to scopes and clocks. Touched by the turn, by the holder of its
handle and by the session: every method is one sync step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import trio
from trio_util import AsyncValue

from ...core.stopping import OUTCOMES, Stop, TurnInput, TurnState, Work, deadline, next_state, status_of
from ...messages.content import UserInput
from ...messages.errors import AgentError
from ...messages.events import TurnStatus
from .lifetime import Deadline


@attrs.define(eq=False)
class StopClock:
    """When a stop was asked for, and when what runs is to be cut. Both only move closer."""

    hook_timeout: float
    stop: Stop = attrs.Factory(Stop)
    _hooks: dict[Deadline, float] = attrs.Factory(dict)
    _tools: dict[Deadline, None] = attrs.Factory(dict)
    _flushes: dict[Deadline, float] = attrs.Factory(dict)

    @property
    def stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self.stop.asked < math.inf

    def ask(self, grace: float | None = None) -> None:
        """Ask to stop. Hooks have their time-out from now on; with ``grace`` all is cut after so many seconds."""
        self.stop = self.stop.asked_for(trio.current_time(), grace)
        for box, started in self._hooks.items():
            box.tighten(self._until(Work.HOOK, started))
        for box in self._tools:
            box.tighten(self.stop.cut_at)
        for box, closing in self._flushes.items():
            box.tighten(self.stop.cut_at + closing)

    def _until(self, work: Work, started: float) -> float:
        return deadline(work, self.stop, started=started, hook_timeout=self.hook_timeout)

    @contextmanager
    def hook(self) -> Iterator[trio.CancelScope]:
        """Around one hook: unbounded until a stop is asked for, then its time-out from the stop or from its start."""
        box, started = Deadline(), trio.current_time()
        box.tighten(self._until(Work.HOOK, started))
        self._hooks[box] = started
        try:
            with box.scope as scope:
                yield scope
        finally:
            del self._hooks[box]

    @contextmanager
    def cut(self) -> Iterator[trio.CancelScope]:
        """Around work that has a bound of its own: only a grace cuts it."""
        box = Deadline()
        self.follow_tool(box)
        try:
            with box.scope as scope:
                yield scope
        finally:
            self.unfollow_tool(box)

    @contextmanager
    def flush(self, closing: float) -> Iterator[trio.CancelScope]:
        """Around a wait for storage: given up ``closing`` seconds after a grace, so that no lock holds up a stop."""
        box = Deadline()
        if self.stop.cut_at < math.inf:
            box.tighten(self.stop.cut_at + closing)
        self._flushes[box] = closing
        try:
            with box.scope as scope:
                yield scope
        finally:
            del self._flushes[box]

    def follow_tool(self, box: Deadline) -> None:
        """Let a grace, and nothing else of a stop, tighten ``box``, until ``unfollow_tool``. Sync."""
        self._tools[box] = None
        if self.stop.cut_at < math.inf:
            box.tighten(self._until(Work.TOOL, trio.current_time()))

    def unfollow_tool(self, box: Deadline) -> None:
        """The tool is over, or given up. Sync."""
        del self._tools[box]


@attrs.define(eq=False)
class TurnControl:
    """The outcome of one turn. ``open_gate``: what holds the turn up behind a slow reader is let go by a stop."""

    clock: StopClock
    open_gate: Callable[[], None]
    state: TurnState = TurnState.QUEUED
    outcome: TurnStatus | None = None  # what is decided in this state, looked up once: it is asked for at each delta
    reason: str = ""
    error: AgentError | None = None
    default_grace: float | None = None
    """Seconds that a cancel without a grace gives. None: it cuts nothing."""
    batch_goes_on: bool = False
    """Cancelled, but the calls of the last response may all run (``after_batch``)."""
    steering: list[UserInput] = attrs.Factory(list)
    _shown: AsyncValue[TurnStatus] | None = None  # made for the first who waits for a status
    _scopes: dict[trio.CancelScope, bool] = attrs.Factory(dict)
    """The scopes around what a cancel ends; whether they are a batch's, which may go on."""

    def _take(self, happened: TurnInput) -> bool:
        """Go where the table leads. Whether that is another state."""
        before, self.state = self.state, next_state(self.state, happened)
        if self.state is before:
            return False
        self.outcome = OUTCOMES.get(self.state)
        if self._shown is not None:
            self._shown.value = self.status
        return True

    @property
    def status(self) -> TurnStatus:
        """Where the turn stands, as its host sees it."""
        return status_of(self.state)

    @property
    def committed(self) -> bool:
        """Whether the outcome is completed."""
        return self.outcome is TurnStatus.COMPLETED

    @property
    def stopping(self) -> bool:
        """Whether nothing new may start."""
        return self.outcome is not None

    @property
    def batch_stopped(self) -> bool:
        """Whether no further call of the running batch may start."""
        return self.stopping and not (self.batch_goes_on and trio.current_time() < self.clock.stop.cut_at)

    def start(self) -> None:
        """The turn leaves the queue."""
        self._take(TurnInput.START)

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
        if despite_steering or not self.steering:
            self._take(TurnInput.COMMIT)
        return self.committed

    def fail(self, error: AgentError) -> bool:
        """Decide *failed*, if nothing is decided. Whether the outcome is failed."""
        if self._take(TurnInput.FAIL):
            self.error = error
        return self.outcome is TurnStatus.FAILED

    def cancel(self, reason: str, grace: float | None = None, *, after_batch: bool = False) -> bool:
        """Decide *cancelled*, if nothing is decided, and bound what still runs. Whether the outcome is cancelled."""
        if self._take(TurnInput.CANCEL):
            self.reason = reason
            self.batch_goes_on = after_batch
        elif not after_batch:
            self.batch_goes_on = False
        grace = self.default_grace if grace is None else grace
        # Whatever the outcome: also a stream that has said all, but does not close, is left now.
        for scope, of_batch in self._scopes.items():
            if not (of_batch and self.batch_goes_on):
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
        if self._take(TurnInput.LOSE):
            self.error = error
        self.batch_goes_on = False
        for scope in self._scopes:
            scope.cancel("the session has another owner")
        self.open_gate()
        self.clock.ask(0)

    @contextmanager
    def interruptible(self, *, of_batch: bool = False) -> Iterator[trio.CancelScope]:
        """Around what a cancel ends at once: a stream, a wait, submitting a job (``of_batch``)."""
        with trio.CancelScope() as scope:
            if self.outcome is TurnStatus.CANCELLED and not (of_batch and self.batch_goes_on):
                # A scope that is opened after the stop must not begin to wait: the loop may be anywhere between two of
                # them.
                scope.cancel(f"the turn was stopped: {self.reason}")
            self._scopes[scope] = of_batch
            try:
                yield scope
            finally:
                del self._scopes[scope]

    def finish(self) -> None:
        """The terminal event is queued."""
        self._take(TurnInput.END)

    async def wait_status(self, wanted: Callable[[TurnStatus], bool]) -> TurnStatus:
        """Wait until the host sees a status that ``wanted`` accepts. A checkpoint."""
        if self._shown is None:
            self._shown = AsyncValue(self.status)
        status: TurnStatus = await self._shown.wait_value(wanted)
        return status

"""Runs at most N tools concurrently (semantics 8).

Starting is one sync step, the commit point: either a call has started, and it runs to its end whatever becomes of the
turn, or it never did. Each job is answered for exactly once within time-out + patience, in the sync step in which its
tool ends. A tool that will not stop holds up nothing but the very end of the agent.

    if pool.free:
        pool.start(ToolJob(call=call, ..., on_end=record))
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.host_exceptions import find_exception
from ...core.ports.protocols import ToolHandler, ToolInput
from ...core.stopping import CutReason, cut_reason
from ...core.tools.declaration import ThreadFunction
from ...core.tools.output_checks import checked_output
from ...messages.errors import InvalidToolArguments
from ...messages.events import ToolOutput
from ...messages.history import ToolCall
from ...messages.jsonvalue import thaw
from ...messages.text import safe_str
from ..shared.event_stream import EventStream
from ..shared.lifetime import Deadline, Lifetime
from ..shared.outcome import TurnControl
from ..shared.user_code import call_unprotected, own_cancellation, to_user_code_error
from .tool_threads import ToolThreads, reporter

logger: logging.Logger = logging.getLogger("youyou.tools")


@attrs.frozen(eq=False)
class ToolRunResult:
    """The outcome of a job: the tool's output, what it raised, or why it was cut."""

    outcome: ToolOutput | BaseException | CutReason
    duration_ms: int


@attrs.frozen(eq=False, kw_only=True)
class ToolJob:
    """A call that is ready to run. ``on_end`` gets the outcome, once, in a sync step: nothing finished is lost."""

    call: ToolCall
    handler: ToolHandler
    timeout: float
    control: TurnControl
    events: EventStream
    on_end: Callable[[ToolRunResult], None]


@attrs.define(eq=False)
class _Run:
    """A running tool. ``answered``: its job knows the outcome, although the tool may run on."""

    job: ToolJob
    deadline: Deadline
    started: float
    answered: bool = False

    @property
    def threads(self) -> int:
        """How many thread tokens it holds."""
        return int(isinstance(self.job.handler.execute, ThreadFunction))

    def report(self, progress: Any) -> None:
        if not self.answered:
            self.job.events.progress(self.job.call.call_id, progress)


def _as_output(value: Any) -> ToolOutput | BaseException:
    try:
        return checked_output(value)
    except Exception as exc:
        return exc


@attrs.define(eq=False)
class ToolPool:
    """The running tools of one agent. They live in the outermost nursery; the actor gives up those that do not stop."""

    lifetime: Lifetime
    limit: int
    patience: float
    threads: ToolThreads
    peak: int = 0
    _running: dict[_Run, None] = attrs.Factory(dict)
    _stuck: dict[_Run, None] = attrs.Factory(dict)
    _beginning: deque[_Run] = attrs.Factory(deque)
    """Those whose tasks have not taken their first step, in the order in which they were started."""
    _order: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)
    _home: trio.Nursery | None = None  # None: not begun, or ended
    _closing: bool = False
    _watch: trio.CancelScope = attrs.Factory(trio.CancelScope)
    _bug: Exception | None = None
    _freed: trio.lowlevel.ParkingLot = attrs.Factory(trio.lowlevel.ParkingLot)

    @property
    def running(self) -> tuple[str, ...]:
        """The tools that run and have not been given up."""
        return tuple(run.job.call.tool_name for run in self._running)

    @property
    def stuck(self) -> tuple[str, ...]:
        """The tools that were given up and still run."""
        return tuple(run.job.call.tool_name for run in self._stuck)

    async def wait_for_stuck(self) -> tuple[str, ...]:
        """Let the tools that were given up end within their patience; the names of those that did not.

        Cancellation: a checkpoint unless there are none. Bounded by the patience, counted from the cut.
        """
        # A stop without patience gives up what is merely cleaning up, which is not to be accused.
        while waits := [until for run in self._stuck if (until := self._patient_until(run)) > trio.current_time()]:
            with trio.move_on_at(max(waits)):
                await self._freed.park()
        return self.stuck

    def _patient_until(self, run: _Run) -> float:
        return run.deadline.scope.deadline + self.patience

    @property
    def open(self) -> bool:
        """Whether tools may start."""
        return self._home is not None

    @property
    def free(self) -> int:
        """How many tools may start now."""
        return self.limit - len(self._running) if self._home is not None else 0

    async def wait_free(self) -> None:
        """Wait until a tool may start, or the pool has ended. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._home is not None and not self.free:
            await self._freed.park()

    def start(self, job: ToolJob) -> None:
        """Start a tool, in the context of the calling task. Sync: it has started when this returns (decision 0002).

        There must be a free place. The job is answered for within its time-out and the patience.
        """
        assert self._home is not None
        now = trio.current_time()
        scope = trio.CancelScope(deadline=now + job.timeout)
        run = _Run(job, Deadline(scope, self.patience, self._look_by), now)
        self._running[run] = None
        self.peak = max(self.peak, len(self._running))
        self.lifetime.follow(run.deadline)
        job.control.clock.follow_tool(run.deadline)
        self._look_by(run.deadline.given_up_at)
        self._beginning.append(run)
        self._home.start_soon(self._execute, run, name=f"tool {job.call.tool_name} ({job.call.call_id})")

    def _look_by(self, when: float) -> None:
        # One task watches over the patience with all tools: a scope for each would be the dearest part of a call.
        if when < self._watch.deadline:
            self._watch.deadline = when

    def close(self) -> None:
        """No more tools will start. Sync."""
        self._closing = True
        self._watch.cancel("the agent is left")

    @enable_ki_protection
    async def run(self, home: trio.Nursery) -> None:
        """Run the actor until it is closed and all that runs was answered for."""
        self._home = home
        try:
            while self._running or not self._closing:
                next_one = min((run.deadline.given_up_at for run in self._running), default=math.inf)
                self._watch = trio.CancelScope(deadline=next_one)
                with self._watch:
                    await trio.sleep_forever()
                if self._bug is not None:
                    raise self._bug
                now = trio.current_time()
                for run in [run for run in self._running if run.deadline.given_up_at <= now]:
                    self._give_up(run)
        finally:
            self._home = None
            self._freed.unpark_all()

    def _give_up(self, run: _Run) -> None:
        self._stuck[run] = None
        self.threads.lend(run.threads)
        self._answer(run, self._why_cut(run))

    def _answer(self, run: _Run, outcome: ToolOutput | BaseException | CutReason) -> None:
        """Tell the outcome of a job, once. Sync, so that no stop comes between a tool's end and its record."""
        self._forget(run)
        run.answered = True
        run.job.on_end(ToolRunResult(outcome, round((trio.current_time() - run.started) * 1000)))

    def _forget(self, run: _Run) -> None:
        del self._running[run]
        self.lifetime.unfollow(run.deadline)
        run.job.control.clock.unfollow_tool(run.deadline)
        self._freed.unpark_all()
        if self._closing and not self._running:
            self._watch.cancel("the last tool has ended")

    @enable_ki_protection
    async def _execute(self, run: _Run) -> None:
        """The tool's own task."""
        outcome: ToolOutput | BaseException | CutReason = CutReason.INTERRUPTED
        try:
            try:
                await self._wait_turn(run)
                with run.deadline.scope as scope:
                    outcome = await self._call(run)
                if scope.cancelled_caught:
                    outcome = self._why_cut(run)
            finally:
                # Also when the nursery around all tools is cancelled.
                if run.answered:
                    del self._stuck[run]
                    self.threads.lend(-run.threads)
                    self._freed.unpark_all()
                else:
                    self._answer(run, outcome)
        except Exception as exc:
            # Raised by the pool, among the actors: from here it would cancel the plugins.
            logger.error("running tool %r broke", run.job.call.tool_name, exc_info=exc)
            if run in self._running:
                self._forget(run)
            self._bug = exc
            self._watch.cancel("a bug")

    async def _wait_turn(self, run: _Run) -> None:
        # Tasks that were started in one step take their first steps in that order or, half of the time, in reverse:
        # the first then wakes all the others at once, so that there are few more passes of the loop, not one for each.
        try:
            while self._beginning[0] is not run:
                await self._order.park()
        finally:
            self._beginning.remove(run)
            self._order.unpark_all()

    async def _call(self, run: _Run) -> ToolOutput | BaseException | CutReason:
        call = run.job.call
        given = ToolInput(call.call_id, call.tool_name, thaw(call.arguments), reporter(run.report))
        execute = run.job.handler.execute
        try:
            if isinstance(execute, ThreadFunction):
                output: Any = await self.threads.run(execute, given)
            else:
                output = await call_unprotected(execute, given)
        except BaseException as exc:  # noqa: ASYNC103  a cancellation that is ours is raised by _raised
            return self._raised(run, exc)  # noqa: ASYNC104  the same
        return _as_output(output)

    def _raised(self, run: _Run, exc: BaseException) -> BaseException | CutReason:
        if own_cancellation(exc):
            raise to_user_code_error(self.lifetime, exc) from None
        # Not SystemExit: a tool that calls `sys.exit()` is a tool that failed, and must not end the program of its
        # host.
        if (interrupt := find_exception(exc, KeyboardInterrupt)) is not None:
            self.lifetime.interrupted(interrupt)
            return CutReason.INTERRUPTED
        name, cut = run.job.call.tool_name, run.deadline.scope.cancel_called
        # Here, where it is raised: all that is made of it later is the text for the model.
        # Arguments that a typed parameter refuses are the model's fault, and the model is told.
        level = logging.INFO if isinstance(exc, InvalidToolArguments) else logging.WARNING
        logger.log(level, "tool %r raised %s%s", name, safe_str(exc), ", while it was cut" if cut else "")
        logger.debug("the traceback of tool %r", name, exc_info=exc)
        return self._why_cut(run) if cut else exc

    def _why_cut(self, run: _Run) -> CutReason:
        return cut_reason(
            timed_out_at=run.started + run.job.timeout,
            cut_at=min(run.job.control.clock.stop.cut_at, self.lifetime.user_code_deadline),
            now=trio.current_time(),
        )

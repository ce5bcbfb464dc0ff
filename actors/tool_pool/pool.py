"""Runs at most N tools concurrently (semantics 8).

The rendezvous is the commit point: the job channel has no buffer, so either a worker took a job, and it runs to its end
whatever becomes of the turn, or the send was cancelled and it never started. Each job carries its own reply, which gets
exactly one answer within time-out + patience. A tool that will not stop holds up nothing but the very end of the agent.
"""

from __future__ import annotations

import contextvars
import logging
import math
from functools import partial
from typing import Any

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.host_exceptions import find_exception
from ...core.ports.protocols import ToolHandler, ToolInput
from ...core.stopping import CutReason, cut_reason
from ...core.tools.declaration import ThreadFunction
from ...core.tools.output_checks import checked_output
from ...messages.events import ToolOutput
from ...messages.history import ToolCall
from ...messages.jsonvalue import thaw
from ..shared.deadlock import owned_by
from ..shared.event_stream import EventStream
from ..shared.lifetime import Deadline, Lifetime
from ..shared.mailbox import Reply, close_all
from ..shared.outcome import TurnControl
from ..shared.user_code import call_unprotected, own_cancellation, to_user_code_error
from .tool_threads import ToolThreads, reporter

logger: logging.Logger = logging.getLogger("youyou")


@attrs.frozen(eq=False)
class ToolRunResult:
    """The outcome of a job: the tool's output, what it raised, or why it was cut."""

    outcome: ToolOutput | BaseException | CutReason
    duration_ms: int


@attrs.frozen(eq=False)
class ToolJob:
    """A call that is ready to run. The sender knows, when the send returns, that a worker has it."""

    call: ToolCall
    handler: ToolHandler
    timeout: float
    control: TurnControl
    events: EventStream
    context: contextvars.Context
    reply: Reply[ToolRunResult]

    @property
    def name(self) -> str:
        """For task names."""
        return f"tool {self.call.tool_name} ({self.call.call_id})"


@attrs.define(eq=False)
class _Run:
    """A running tool, seen from the task that supervises it."""

    job: ToolJob
    box: Deadline
    started: float
    done: trio.Event = attrs.Factory(trio.Event)
    outcome: ToolOutput | BaseException | CutReason | None = None
    given_up: bool = False
    bug: Exception | None = None

    @property
    def threads(self) -> int:
        """How many thread tokens it holds."""
        return int(isinstance(self.job.handler.execute, ThreadFunction))

    def ran(self, outcome: ToolOutput | BaseException | CutReason) -> ToolRunResult:
        return ToolRunResult(outcome, round((trio.current_time() - self.started) * 1000))

    def report(self, progress: Any) -> None:
        if not self.done.is_set() and not self.given_up:
            self.job.events.progress(self.job.call.call_id, progress)


def _as_output(value: Any) -> ToolOutput | BaseException:
    try:
        return checked_output(value)
    except Exception as exc:
        return exc


@attrs.define(eq=False)
class ToolPool:
    """The workers of one agent. ``home`` is the outermost nursery: tools live there, their supervisors in the pool."""

    lifetime: Lifetime
    limit: int
    patience: float
    threads: ToolThreads
    home: trio.Nursery | None = None
    running: dict[ToolJob, str] = attrs.Factory(dict)
    stuck: dict[ToolJob, str] = attrs.Factory(dict)
    peak: int = 0
    jobs: trio.MemorySendChannel[ToolJob] = attrs.field(init=False)
    _inbox: trio.MemoryReceiveChannel[ToolJob] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        # No buffer: a job in a buffer would belong to nobody, neither started nor refusable, when the turn is
        # cancelled.
        self.jobs, self._inbox = trio.open_memory_channel[ToolJob](0)

    @enable_ki_protection
    async def run(self) -> None:
        """Run the actor. Ends when ``jobs`` is closed and all that runs was answered for."""
        slots = trio.Semaphore(self.limit)
        try:
            async with trio.open_nursery() as supervisors:
                while True:
                    # The slot before the job: a job that is taken runs at once, so that "taken" can mean "started".
                    await slots.acquire()
                    try:
                        job = await self._inbox.receive()
                    except trio.EndOfChannel:
                        break
                    name = f"supervisor of {job.name}"
                    job.context.copy().run(partial(supervisors.start_soon, self._supervise, job, slots, name=name))
        finally:
            close_all(self._inbox)

    @enable_ki_protection
    async def _supervise(self, job: ToolJob, slots: trio.Semaphore) -> None:
        """Answer for one job exactly once, whatever happens."""
        self.running[job] = job.call.tool_name
        self.peak = max(self.peak, len(self.running))
        # What the asker gets if the shield expires while this task waits.
        ran = ToolRunResult(CutReason.INTERRUPTED, 0)
        try:
            ran = await self._watch(job)
        finally:
            # Sync: also when the shield itself has expired.
            del self.running[job]
            with job.reply as reply:
                reply.send(ran)
            slots.release()

    async def _watch(self, job: ToolJob) -> ToolRunResult:
        now = trio.current_time()
        box = Deadline(trio.CancelScope(deadline=now + job.timeout), trio.CancelScope(), self.patience)
        run = _Run(job, box, now)
        box.tighten(math.inf)
        assert self.home is not None and box.waiter is not None
        # Three that may tighten one pair of deadlines: the agent's end, the turn's stop, and the tool's own time-out.
        with self.lifetime.following(box), job.control.clock.tool(box), box.waiter:
            self.home.start_soon(self._execute, run, name=job.name)  # in the job's context, as this task
            await run.done.wait()
        if run.bug is not None:
            raise run.bug
        if run.outcome is None:
            self._give_up(run)
            return run.ran(self._why_cut(run))
        return run.ran(run.outcome)

    def _give_up(self, run: _Run) -> None:
        # From now on nothing that it reports or returns counts: its call has been answered.
        run.given_up = True
        self.stuck[run.job] = run.job.call.tool_name
        self.threads.lend(run.threads)

    @enable_ki_protection
    async def _execute(self, run: _Run) -> None:
        """The tool's own task."""
        outcome: ToolOutput | BaseException | CutReason = CutReason.INTERRUPTED
        job = run.job
        try:
            with owned_by(self.lifetime), run.box.scope as scope:
                outcome = await self._call(run)
            if scope.cancelled_caught:
                outcome = self._why_cut(run)
        except Exception as exc:
            # Raised by its supervisor, among the actors: from here it would cancel the plugins.
            logger.error("running tool %r broke", job.call.tool_name, exc_info=exc)
            run.bug = exc
        finally:
            run.outcome = outcome
            run.done.set()
            if run.given_up:
                del self.stuck[job]
                self.threads.lend(-run.threads)

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
        return self._why_cut(run) if run.box.scope.cancel_called else exc

    def _why_cut(self, run: _Run) -> CutReason:
        return cut_reason(
            timed_out_at=run.started + run.job.timeout,
            cut_at=min(run.job.control.clock.stop.cut_at, self.lifetime.user_code_deadline),
            now=trio.current_time(),
        )

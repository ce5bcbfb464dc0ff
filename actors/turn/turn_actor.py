"""One turn: from the user's input to exactly one terminal event (semantics 6).

The order of a turn can be read off `_converse`. Whatever happens, `_end` is sync: it closes what is open and queues the
terminal event, also when the shield itself has expired or an actor has crashed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.ports.protocols import MemoryStorage
from ...core.profiles.modes import Pipeline, ReAct, SingleShot
from ...core.prompts.system_prompt import dynamic_prompt
from ...core.stopping import TurnState
from ...messages.chat import SystemPrompt
from ...messages.codec import converter
from ...messages.content import UserInput, text_of
from ...messages.errors import AgentError, ErrorCode, HookAborted, RequestCancelled
from ...messages.events import ErrorEvent, TurnCancelled, TurnComplete, TurnResult, TurnStatus
from ...messages.hook_payloads import TurnEnd, TurnStart
from ...messages.records import Memory
from ..memory.memory_search import search_memories
from .accepted_turn import AcceptedTurn
from .agent_loop import AgentLoop, LoopLimits
from .compactor import Compactor
from .pipeline import PipelineRun
from .session_state import SessionState, Unfinished
from .turn_context import TurnContext

logger: logging.Logger = logging.getLogger("youyou")


@attrs.define(eq=False)
class Turn:
    """The actor of one turn. ``ended`` is set when the terminal event is queued."""

    context: TurnContext
    state: SessionState
    user_input: UserInput
    checkpoint: Callable[[int], None]
    steps: PipelineRun
    number: int = 0
    ended: trio.Event = attrs.Factory(trio.Event)
    result: TurnResult | None = None
    _input_kept: bool = False
    _announced: bool = False
    _closed: bool = False
    _marked: int = 0
    _late_error: AgentError | None = None
    _sections: tuple[str, ...] = ()

    def accepted(self) -> AcceptedTurn:
        """What its holder gets."""
        context = self.context
        return AcceptedTurn(
            context.turn_id,
            context.setup,
            context.lifetime,
            context.events,
            context.control,
            self.ended,
            self.cancel,
            lambda: self.result,
        )

    def begin(self, number: int) -> None:
        """The turn leaves the queue: from now on its input is kept, whatever comes. Sync."""
        self.number = number
        self.context.journal.skip_told_failure()
        self.context.control.start()

    def cancel(self, reason: str, grace: float | None = None, *, after_batch: bool = False) -> bool:
        """Stop the turn. Sync, any task. One that waits in the queue ends here and hands its input back.

        Whether the outcome is cancelled.
        """
        # Read before the state changes: a turn that never left the queue has no task that could end it.
        queued = self.context.control.state is TurnState.QUEUED
        cancelled = self.context.control.cancel(reason, grace, after_batch=after_batch)
        if queued:
            self._announced = self._closed = True
            self._end((self.user_input,))
        return cancelled

    @enable_ki_protection
    async def run(self) -> None:
        """Run the actor to its end.

        Cancellation: by the agent's lifetime only. The terminal event is queued in any case.
        """
        context = self.context
        try:
            with context.lifetime.user_code():
                await self._converse()
            # A scope of its own after the one for user code: when a stop has cut that one, there is still time to
            # close the log.
            with context.lifetime.flushing():
                await self._close_log()
        finally:
            self._end()

    async def _converse(self) -> None:
        try:
            await self._begin()
            if not self.context.control.stopping:
                await self._prepare_prompt()
                await self._carry_out()
                self.context.control.commit(despite_steering=True)
        except AgentError as error:
            self._refuse_content(error)
            if not self.context.control.fail(error) and error is not self.context.control.error:
                await self.context.emit_error(error)
        await self._conclude()

    async def _begin(self) -> None:
        """TurnStart hooks, then the input with its skills enters history and log."""
        context = self.context
        self._announce()
        if self.state.unreadable is not None:
            error, self.state.unreadable = self.state.unreadable, None
            context.events.put(ErrorEvent(error))
        aborted = False
        if context.control.stopping:
            self._keep_input()
            return
        try:
            event = TurnStart(self.user_input, session_id=self.state.session_id, turn_id=context.turn_id)
            outcome = await context.hooks.before(event, context.control.clock)
            aborted = outcome.abort is not None and not context.control.stopping
        finally:
            # Also when a stop came meanwhile: only an abort leaves the input out.
            if not aborted:
                self._keep_input()
        if aborted:
            if outcome.error is not None:
                await context.emit_error(outcome.error)
            raise HookAborted(f"a TurnStart hook refused the input: {outcome.abort}") from outcome.error
        self._sections = outcome.event.dynamic_sections

    def _announce(self) -> None:
        self._announced = True
        mark = {"turn_id": self.context.turn_id, "number": self.number, "sequence": self.state.numbering.last}
        if self.steps.continues is not None:
            mark["continues"] = self.steps.continues
        self.context.journal.append_metadata("turn_started", mark)

    def _keep_input(self) -> None:
        self._input_kept = True
        if isinstance(self.state.setup.mode, Pipeline):
            # Before the first step: a pipeline that is stopped earlier is unfinished, too, as it is after a resume.
            self.state.unfinished = Unfinished(self.context.turn_id, self.user_input, self.steps.outputs)
        if self.steps.continues is not None:
            return
        self.state.title_from(self.user_input)
        self.context.append_input(self.user_input)

    async def _prepare_prompt(self) -> None:
        setup = self.state.setup
        storage = setup.registry.memory_storage
        memories = () if storage is None else await self._memories(storage)
        environment = setup.session.environment or setup.config.environment
        self.context.system = SystemPrompt(self.state.stable(), dynamic_prompt(memories, environment, self._sections))

    async def _memories(self, storage: MemoryStorage) -> tuple[Memory, ...]:
        try:
            with self.context.control.interruptible():
                return await search_memories(self.context.lifetime, self.context.config, storage, self.user_input)
        except AgentError as error:
            await self.context.emit_error(error)
        return ()

    async def _carry_out(self) -> None:
        setup, config = self.state.setup, self.state.setup.config
        compactor = Compactor(self.context, self.state)
        max_calls = setup.budget.max_tool_calls
        free = LoopLimits(
            setup.specs,
            config.retry,
            setup.budget.max_rounds,
            config.max_tool_calls_per_turn if max_calls is None else max_calls,
            final=True,
        )
        match setup.mode:
            case Pipeline() as pipeline:
                await self.steps.run(pipeline, self.context, free, compactor, text_of(self.user_input.content))
            case SingleShot(retry=retry):
                await AgentLoop(
                    self.context, attrs.evolve(free, tools=(), retry=retry or config.retry, single=True), compactor
                ).run()
            case ReAct():
                await AgentLoop(self.context, free, compactor).run()

    def _refuse_content(self, error: AgentError) -> None:
        # Content that a provider refuses must not lock the session: later requests carry a note in its place. Whatever
        # the request held: from whichever turn, and whether it was steered in.
        if error.code is ErrorCode.CONTENT_NOT_SUPPORTED and self.context.journal.transcript.refuse_content():
            self.context.keep_refusal()

    async def _conclude(self) -> None:
        """The memory checkpoint and the TurnEnd hooks."""
        context, outcome = self.context, self.context.control.outcome or TurnStatus.CANCELLED
        if self._input_kept and outcome is not TurnStatus.CANCELLED and context.journal.lost is None:
            # Not after a cancel: the user took the input back, and half an answer teaches nothing.
            self.checkpoint(self.number)
        if context.hooks.registry.taps(TurnEnd):
            event = TurnEnd(context.text, outcome, session_id=self.state.session_id, turn_id=context.turn_id)
            for problem in await context.hooks.after(event, context.control.clock):
                await context.emit_error(problem)

    async def _close_log(self) -> None:
        if self.context.control.outcome is None:
            self.context.control.cancel("host_cancelled", math.inf)
        await self._report_late()
        self._post_end()
        try:
            await self.context.flush()
        except AgentError as error:
            self._late_error = error
        failure = self._late_error or self.context.journal.unseen_failure()
        # By value: the write at the end that fails as the one before it is the same news.
        if failure is not None and failure != self.context.control.error:
            self.context.events.put(ErrorEvent(failure))

    async def _report_late(self) -> None:
        failure = self.context.journal.unseen_failure()
        if failure is not None and failure != self.context.control.error:
            await self.context.emit_error(failure)
        if self.context.control.outcome is TurnStatus.FAILED and self.context.control.error is not None:
            await self.context.emit_error(self.context.control.error)

    def _post_end(self) -> None:
        self._closed = True
        self._marked = self.state.numbering.last + 1
        control = self.context.control
        if self._input_kept and not control.committed:
            status = control.outcome or TurnStatus.CANCELLED
            self.context.journal.transcript.leave_unanswered(status.value)
        self.context.journal.append_metadata(
            "turn_ended",
            {
                "turn_id": self.context.turn_id,
                "status": control.outcome or TurnStatus.CANCELLED,
                "stop_reason": self.context.stop_reason,
                "usage": converter.unstructure(self.context.usage),
                "sequence": self._marked,
                "meter": self.context.journal.transcript.meter.learnt(),
            },
        )

    def _end(self, undelivered: tuple[UserInput, ...] = ()) -> None:
        """Close what is open and queue the terminal event. Sync."""
        control = self.context.control
        # Only when the shield itself expired, or an actor crashed, before the turn decided anything.
        if control.outcome is None:
            control.cancel("host_cancelled", math.inf)
        if not self._announced:
            self._announce()
        if not self._closed:
            self._post_end()
        self.state.usage += self.context.usage
        if control.committed:
            self.state.unfinished = None
        self.result = self._make_result((*undelivered, *control.take_steering()))
        self.context.events.terminal(self._terminal(self.result))
        self._mark_sequence()
        # After the terminal event is queued: a host that sees the final status must find the event.
        control.finish()
        self.ended.set()

    def _mark_sequence(self) -> None:
        # Events that were numbered after `_post_end` must not lend their numbers to events after a resume.
        last = self.state.numbering.last
        if last > self._marked:
            self._marked = last
            self.context.journal.append_metadata("sequence", {"sequence": last})

    def _make_result(self, undelivered: tuple[UserInput, ...]) -> TurnResult:
        context, status = self.context, self.context.control.outcome or TurnStatus.CANCELLED
        error = context.control.error or self._late_error
        if status is TurnStatus.CANCELLED:
            error = RequestCancelled(
                f"the turn was stopped ({context.control.reason}); send the message again to go on"
                + ("" if self._late_error is None else f"; its end is not stored yet: {self._late_error.message}")
            )
        return TurnResult(
            context.turn_id,
            status,
            context.text,
            context.usage,
            error,
            tuple(context.results),
            tuple(context.skipped),
            tuple(context.interrupted),
            undelivered,
            context.stop_reason,
            context.value if context.control.committed else None,
        )

    def _terminal(self, result: TurnResult) -> TurnComplete | TurnCancelled:
        if result.status is not TurnStatus.CANCELLED:
            return TurnComplete(
                result.status, result.text, result.usage, result.error, result.undelivered, result.stop_reason
            )
        return TurnCancelled(
            self.context.control.reason,
            result.text,
            result.usage,
            result.skipped,
            result.interrupted,
            result.undelivered,
        )

"""One turn: from the user's input to exactly one terminal event (semantics 6).

The order of a turn can be read off `_converse`. Whatever happens, `_end` is sync: it closes what is open and queues the
terminal event, also when the shield itself has expired or an actor has crashed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.profiles.modes import Pipeline, ReAct, SingleShot
from ...core.prompts.system_prompt import dynamic_prompt
from ...messages.chat import SystemPrompt
from ...messages.codec import converter
from ...messages.content import FileBlock, ImageBlock, UserInput, text_of
from ...messages.errors import AgentError, ErrorCode, HookAborted, RequestCancelled
from ...messages.events import ErrorEvent, TurnCancelled, TurnComplete, TurnResult, TurnStatus
from ...messages.hook_payloads import TurnEnd, TurnStart
from ...messages.records import Memory
from ..shared.deadlock import serving
from .agent_loop import Assignment, Rounds
from .compactor import Compactor
from .memory_search import recall
from .pipeline import Steps
from .session_state import SessionState, Unfinished
from .turn_context import Desk

logger: logging.Logger = logging.getLogger("youyou")


@attrs.define(eq=False)
class Turn:
    """The actor of one turn. ``ended`` is set when the terminal event is queued."""

    desk: Desk
    state: SessionState
    user_input: UserInput
    checkpoint: Callable[[int], None]
    steps: Steps
    number: int = 0
    ended: trio.Event = attrs.Factory(trio.Event)
    result: TurnResult | None = None
    _input_kept: bool = False
    _announced: bool = False
    _closed: bool = False
    _marked: int = 0
    _late_error: AgentError | None = None
    _sections: tuple[str, ...] = ()

    def begin(self, number: int) -> None:
        """The turn leaves the queue: from now on its input is kept, whatever comes. Sync."""
        self.number = number
        self.desk.control.start()

    def end_unstarted(self) -> None:
        """The turn was stopped while it waited in the queue: hand its input back. Sync."""
        self._announced = self._closed = True
        self._end((self.user_input,))

    @enable_ki_protection
    async def run(self) -> None:
        """The actor.

        Cancellation: by the agent's lifetime only. The terminal event is queued in any case.
        """
        desk = self.desk
        try:
            with serving(desk.lifetime):
                with desk.lifetime.work():
                    await self._converse()
                with desk.lifetime.records():
                    await self._close_log()
        finally:
            self._end()

    async def _converse(self) -> None:
        try:
            await self._begin()
            if not self.desk.control.stopping:
                await self._prepare_prompt()
                await self._carry_out()
                self.desk.control.commit(despite_steering=True)
        except AgentError as error:
            self._refuse_content(error)
            if not self.desk.control.fail(error) and error is not self.desk.control.error:
                await self.desk.report(error)
        await self._conclude()

    async def _begin(self) -> None:
        """TurnStart hooks, then the input with its skills enters history and log."""
        desk = self.desk
        self._announce()
        aborted = False
        if desk.control.stopping:
            self._keep_input()
            return
        try:
            event = TurnStart(self.user_input, session_id=self.state.session_id, turn_id=desk.turn_id)
            outcome = await desk.hooks.before(event, desk.control.clock)
            aborted = outcome.abort is not None and not desk.control.stopping
        finally:
            # Also when a stop came meanwhile: only an abort leaves the input out.
            if not aborted:
                self._keep_input()
        if aborted:
            if outcome.error is not None:
                await desk.report(outcome.error)
            raise HookAborted(f"a TurnStart hook refused the input: {outcome.abort}") from outcome.error
        self._sections = outcome.event.dynamic_sections

    def _announce(self) -> None:
        self._announced = True
        mark = {"turn_id": self.desk.turn_id, "number": self.number, "sequence": self.state.numbering.last}
        if self.steps.continues is not None:
            mark["continues"] = self.steps.continues
        self.desk.journal.note("turn_started", mark)

    def _keep_input(self) -> None:
        self._input_kept = True
        if isinstance(self.state.setup.mode, Pipeline):
            # Before the first step: a pipeline that is stopped earlier is unfinished, too, as it is after a resume.
            self.state.unfinished = Unfinished(self.desk.turn_id, self.user_input, self.steps.outputs)
        if self.steps.continues is not None:
            return
        self.state.title_from(self.user_input)
        self.desk.take_in(self.user_input)

    async def _prepare_prompt(self) -> None:
        memories: tuple[Memory, ...] = ()
        try:
            with self.desk.control.interruptible():
                memories = await recall(self.desk, self.user_input)
        except AgentError as error:
            await self.desk.report(error)
        setup = self.state.setup
        environment = setup.session.environment or setup.config.environment
        self.desk.system = SystemPrompt(self.state.stable(), dynamic_prompt(memories, environment, self._sections))

    async def _carry_out(self) -> None:
        setup, config = self.state.setup, self.state.setup.config
        compactor = Compactor(self.desk, self.state)
        max_calls = setup.budget.max_tool_calls
        free = Assignment(
            setup.specs,
            config.retry,
            setup.budget.max_rounds,
            config.max_tool_calls_per_turn if max_calls is None else max_calls,
            final=True,
        )
        match setup.mode:
            case Pipeline() as pipeline:
                await self.steps.run(pipeline, self.desk, free, compactor, text_of(self.user_input.content))
            case SingleShot(retry=retry):
                await Rounds(
                    self.desk, attrs.evolve(free, tools=(), retry=retry or config.retry, single=True), compactor
                ).run()
            case ReAct():
                await Rounds(self.desk, free, compactor).run()

    def _refuse_content(self, error: AgentError) -> None:
        # Content that a provider refuses must not lock the session: later requests carry a note in its place.
        refused = error.code is ErrorCode.CONTENT_NOT_SUPPORTED
        refused |= error.code is ErrorCode.PROVIDER_ERROR and not error.retryable
        if refused and any(isinstance(block, ImageBlock | FileBlock) for block in self.user_input.content):
            self.desk.journal.transcript.refuse_content()

    async def _conclude(self) -> None:
        """The memory checkpoint and the TurnEnd hooks."""
        desk, outcome = self.desk, self.desk.control.outcome or TurnStatus.CANCELLED
        if self._input_kept and outcome is not TurnStatus.CANCELLED:
            self.checkpoint(self.number)
        event = TurnEnd(desk.text, outcome, session_id=self.state.session_id, turn_id=desk.turn_id)
        for problem in await desk.hooks.after(event, desk.control.clock):
            await desk.report(problem)

    async def _close_log(self) -> None:
        if self.desk.control.outcome is None:
            self.desk.control.cancel("host_cancelled")
        await self._report_late()
        self._post_end()
        try:
            await self.desk.journal.flush()
        except AgentError as error:
            self._late_error = error
        failure = self._late_error or self.desk.journal.unseen_failure()
        if failure is not None:
            self.desk.events.put(ErrorEvent(failure))

    async def _report_late(self) -> None:
        failure = self.desk.journal.unseen_failure()
        if failure is not None and failure is not self.desk.control.error:
            await self.desk.report(failure)
        if self.desk.control.outcome is TurnStatus.FAILED and self.desk.control.error is not None:
            await self.desk.report(self.desk.control.error)

    def _post_end(self) -> None:
        self._closed = True
        self._marked = self.state.numbering.last + 1
        control = self.desk.control
        self.desk.journal.note(
            "turn_ended",
            {
                "turn_id": self.desk.turn_id,
                "status": control.outcome or TurnStatus.CANCELLED,
                "usage": converter.unstructure(self.desk.usage),
                "sequence": self._marked,
                "meter": self.desk.journal.transcript.meter.learnt(),
            },
        )

    def _end(self, undelivered: tuple[UserInput, ...] = ()) -> None:
        """Close what is open and queue the terminal event. Sync."""
        control = self.desk.control
        if control.outcome is None:
            control.cancel("host_cancelled")
        if not self._announced:
            self._announce()
        if not self._closed:
            self._post_end()
        self.state.usage += self.desk.usage
        if control.committed:
            self.state.unfinished = None
        self.result = self._make_result((*undelivered, *control.take_steering()))
        self.desk.events.terminal(self._terminal(self.result))
        self._mark_sequence()
        control.finish()
        self.ended.set()

    def _mark_sequence(self) -> None:
        # Events that were numbered after `_post_end` must not lend their numbers to events after a resume.
        last = self.state.numbering.last
        if last > self._marked:
            self._marked = last
            self.desk.journal.note("sequence", {"sequence": last})

    def _make_result(self, undelivered: tuple[UserInput, ...]) -> TurnResult:
        desk, status = self.desk, self.desk.control.outcome or TurnStatus.CANCELLED
        error = desk.control.error or self._late_error
        if status is TurnStatus.CANCELLED:
            error = RequestCancelled(f"the turn was stopped ({desk.control.reason}); send the message again to go on")
        return TurnResult(
            desk.turn_id,
            status,
            desk.text,
            desk.usage,
            error,
            tuple(desk.results),
            tuple(desk.skipped),
            tuple(desk.interrupted),
            undelivered,
        )

    def _terminal(self, result: TurnResult) -> TurnComplete | TurnCancelled:
        if result.status is not TurnStatus.CANCELLED:
            return TurnComplete(result.status, result.text, result.usage, result.error, result.undelivered)
        return TurnCancelled(
            self.desk.control.reason,
            result.text,
            result.usage,
            result.skipped,
            result.interrupted,
            result.undelivered,
        )

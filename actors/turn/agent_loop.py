"""Rounds of model and tools until the model asks for no more (semantics 4, 6).

rounds = AgentLoop(context, assignment, compactor)
text = await rounds.run()
"""

from __future__ import annotations

import attrs
import trio

from ...core.config import RetryPolicy
from ...core.ports.stop_rules import beyond_repair, emptiness, failure
from ...core.randomness import new_id, random
from ...core.retry import AfterFailure, after_failure, given_up, may_be_about_content, retry_delay_ms
from ...core.structured_output import Misfit, OutputFormat
from ...messages.chat import (
    ChatRequest,
    Done,
    Progress,
    ReasoningDelta,
    SystemPrompt,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    ToolSpec,
    Usage,
)
from ...messages.errors import AgentError, InvalidOutput, MaxToolCallsExceeded, ProviderError
from ...messages.events import OutputRejected, RetryScheduled, TurnStatus
from ...messages.history import Message, SystemMessage, ToolCall
from ...messages.text import clean_text
from ..shared.model_stream import ModelStream, Response, open_stream
from ..shared.user_code import UserCodeError, call_sync
from .compactor import Compactor
from .ledger import Ledger
from .tool_batch import ToolBatch
from .turn_context import TurnContext


@attrs.frozen
class LoopLimits:
    """What these rounds may do. ``final``: their last answer completes the turn. None as a limit: no limit."""

    tools: tuple[ToolSpec, ...]
    retry: RetryPolicy
    max_rounds: int | None
    max_tool_calls: int
    final: bool
    single: bool = False


@attrs.define(eq=False)
class AgentLoop:
    """The loop of one turn, or of one step of it."""

    context: TurnContext
    assignment: LoopLimits
    compactor: Compactor
    calls_used: int = 0
    _repairs: int = 0
    _misfit: Misfit | None = None
    """Why the newest answer is not what was asked for."""

    @property
    def output(self) -> OutputFormat | None:
        """What the last answer of these rounds must be. A step before the last one is free."""
        return self.context.output if self.assignment.final else None

    async def run(self) -> str:
        """The text of the last answer.

        Cancellation: by a forced shutdown. A turn's cancel makes it return early; ``context.control`` says so.

        Raises:
            AgentError: the turn, or the step, has failed.
        """
        rounds, empty, pauses = 0, 0, 0
        while not self.context.control.stopping:
            self._deliver_steering()
            rounds += 1
            response = await self._respond()
            if response.done is None:
                break
            if not response.says_something:
                empty += 1
                if (error := emptiness(response.stop_reason, empty)) is not None:
                    raise error
                continue
            empty = 0
            if response.calls:
                await self._carry_out(response, rounds)
                if self.assignment.single:
                    return response.text
            elif response.paused and not self.assignment.single:
                pauses += 1
                self._check_pauses(pauses, rounds)
            elif self.assignment.single or not self.context.control.steering:
                if self._misfit is None or self.context.control.stopping:
                    return response.text
                await self._reject(self._misfit, response, rounds)
        return self.context.text

    @property
    def turn_limit(self) -> int:
        """How many calls the whole turn may have, whatever its steps may."""
        limit = self.context.setup.budget.max_tool_calls
        return self.context.config.max_tool_calls_per_turn if limit is None else limit

    def _deliver_steering(self) -> None:
        for user_input in self.context.control.take_steering():
            self.context.append_input(user_input)

    def _check_pauses(self, pauses: int, rounds: int) -> None:
        """A model that pauses forever is bounded as one that calls forever is."""
        most = self.assignment.max_rounds
        if (pauses >= self.turn_limit) if most is None else (rounds >= most):
            raise ProviderError(f"the model paused {pauses} times and did not end its turn", retryable=False)

    async def _reject(self, misfit: Misfit, response: Response, rounds: int) -> None:
        """Tell the model what does not fit, unless that has no use."""
        context, most = self.context, self.assignment.max_rounds
        why = beyond_repair(response.stop_reason)
        if misfit.cause is not None or why is not None:
            raise InvalidOutput(f"the answer does not fit: {why or 'the class refused it'}\n{misfit.problems}") from (
                misfit.cause
            )
        if self._repairs >= context.config.max_output_repairs or (most is not None and rounds >= most):
            raise InvalidOutput(
                f"the answer does not fit, after {self._repairs} repair rounds; ask for less, or raise "
                f"max_output_repairs if the model comes closer each time\n{misfit.problems}"
            )
        self._repairs += 1
        context.journal.append(SystemMessage(context.config.notices.misfit_output.format(problems=misfit.problems)))
        await context.emit(OutputRejected(self._repairs, misfit.problems))

    async def _carry_out(self, response: Response, rounds: int) -> None:
        limit = self.assignment.max_tool_calls
        out_of_rounds = self.assignment.max_rounds is not None and rounds >= self.assignment.max_rounds
        left = min(limit - self.calls_used, self.turn_limit - self.context.calls_used)
        allowed = 0 if out_of_rounds else max(0, left)
        self.calls_used += len(response.calls)
        self.context.calls_used += len(response.calls)
        ledger = Ledger.announce(self.context, response.calls)
        names = frozenset(spec.name for spec in self.assignment.tools)
        await ToolBatch(self.context, ledger, names, response.stop_reason, allowed).run()
        if self.context.control.outcome is TurnStatus.FAILED and self.context.control.error is not None:
            raise self.context.control.error
        if len(response.calls) > allowed and not self.context.control.stopping:
            self._give_notice(limit)
            raise MaxToolCallsExceeded(
                f"the model asked for more than the {self.assignment.max_rounds} rounds it may have"
                if out_of_rounds
                else f"the model asked for more than {limit} tool calls; raise max_tool_calls_per_turn if it needs them"
            )

    def _give_notice(self, limit: int) -> None:
        self.context.journal.append(SystemMessage(self.context.config.notices.tool_limit.format(limit=limit)))

    async def _respond(self) -> Response:
        """One answer of the model, with retries. Without ``done`` the turn was stopped meanwhile."""
        attempt, compacted, again = 1, False, False
        doubted: AgentError | None = None
        left_out: tuple[Message, ...] = ()
        transcript = self.context.journal.transcript
        while True:
            # Before the request: what the model is told must be stored, or a crash would leave an answer to nothing.
            await self.context.flush()
            if not self.context.control.stopping:
                await self.compactor.before_request(self.assignment.tools)
            response = Response(new_id())
            if self.context.control.stopping:
                return response
            error = await self._stream(response, again)
            again = True
            if error is None and left_out:
                self.context.keep_refusal()  # the try without the content has worked, so the content was to blame
            if error is None or self.context.control.outcome is TurnStatus.CANCELLED:
                return response
            if doubted is not None:
                transcript.allow_content(left_out)
                raise given_up(doubted, self.assignment.retry)
            match after_failure(
                error, self.assignment.retry, attempt=attempt, visible=response.visible, compacted=compacted
            ):
                case AfterFailure.COMPACT:
                    compacted = True
                    await self.compactor.after_overflow(self.assignment.tools, error)
                case AfterFailure.RETRY:
                    await self._wait(attempt, error)
                    attempt += 1
                case AfterFailure.GIVE_UP if not response.visible and may_be_about_content(error):
                    left_out = transcript.refuse_content()
                    if not left_out:
                        raise given_up(error, self.assignment.retry)
                    doubted = error
                case AfterFailure.GIVE_UP:
                    raise given_up(error, self.assignment.retry)

    async def _stream(self, response: Response, again: bool) -> AgentError | None:
        """One request. What went wrong is returned; what arrived is kept in any case."""
        context = self.context
        system, tools = self._system(), self.assignment.tools
        self._misfit = None
        request = self._request(system)
        # Right before sending: what is appended from here on is not part of the size that will be reported.
        context.journal.transcript.meter.sent(system, tools)
        try:
            with context.control.interruptible():
                async with open_stream(context.lifetime, context.provider, request, context.limits) as stream:
                    await self._read(stream, response)
            return failure(response.stop_reason)
        except AgentError as error:
            return error
        finally:
            context.journal.transcript.meter.reported(response.usage)
            done = Usage(requests=1, tool_calls=len(response.calls), retries=int(again))
            context.usage += done + response.usage
            self._keep(response)

    async def _read(self, stream: ModelStream, response: Response) -> None:
        """Up to `Done`. A delta enters the response and the events in one step: both hold it, or neither."""
        control, events = self.context.control, self.context.events
        while (event := await stream.next()) is not None:
            if control.outcome is not None:
                # Raises: the scope around the stream is cancelled, and its provider must have swallowed that.
                await trio.lowlevel.checkpoint()
            match event:
                case TextDelta() | ReasoningDelta():
                    if events.room <= 0:
                        await stream.wait_for_reader(events.wait_for_capacity)
                    response.add(event)
                    events.put(event)
                case ToolCallDelta():
                    if events.room <= 0:
                        await stream.wait_for_reader(events.wait_for_capacity)
                    call_id = self._call_id(response, event.call_id)
                    events.put(ToolCallDelta(call_id, event.tool_name, clean_text(event.text)))
                case Progress(usage=TokenUsage() as usage):
                    response.reported = usage
                case ToolCall():
                    call_id = self._call_id(response, event.call_id)
                    response.call_ids.pop(event.call_id)
                    response.add_call(event, call_id)
                case Done():
                    response.done = event
                    # Before the stream is closed: closing awaits, and a cancel that arrives meanwhile must find that
                    # the turn completed (semantics 6.1).
                    if self._is_last(response) and self._fits(response):
                        control.commit(despite_steering=self.assignment.single)
                    return

    def _is_last(self, response: Response) -> bool:
        """Whether nothing is left to do after this answer, if it is what was asked for."""
        single = self.assignment.single
        return self.assignment.final and response.completes and (single or not response.paused)

    def _fits(self, response: Response) -> bool:
        """Whether an answer that would be the last is what was asked for; its value is kept."""
        context = self.context
        if self.output is None:
            return True
        # As code of the host's: a class that is built of the answer may have validators.
        try:
            value = call_sync(context.lifetime, self.output.read, response.text)
        except UserCodeError as error:  # Ctrl-C: everything else is a misfit
            value = Misfit(f"- {error}", error.cause)
        self._misfit, context.value = (value, None) if isinstance(value, Misfit) else (None, value)
        return self._misfit is None

    def _call_id(self, response: Response, given: str) -> str:
        """The id of a call, the same for its pieces and for itself."""
        if given not in response.call_ids:
            response.call_ids[given] = self.context.unique_call_id(given)
        return response.call_ids[given]

    def _request(self, system: SystemPrompt) -> ChatRequest:
        context, session, config = self.context, self.context.setup.session, self.context.config
        return ChatRequest(
            context.model.id,
            system,
            context.journal.transcript.requests(context.model.capabilities),
            self.assignment.tools,
            session.temperature if session.temperature is not None else config.temperature,
            session.max_tokens if session.max_tokens is not None else config.max_tokens,
            session.reasoning_effort if session.reasoning_effort is not None else config.reasoning_effort,
            None if self.output is None else self.output.schema,
            session.metadata,
        )

    def _system(self) -> SystemPrompt:
        system = self.context.system
        if self.output is None or self.context.model.capabilities.structured_output:
            return system
        return attrs.evolve(system, dynamic="\n\n".join(filter(None, (system.dynamic, self.output.instruction))))

    def _keep(self, response: Response) -> None:
        """What arrived enters history, whole or not. Sync: it also runs when all is cut."""
        if response.done is not None:
            self.context.stop_reason = response.stop_reason
        whole = response.done is not None and failure(response.stop_reason) is None
        if whole and not response.says_something:
            return
        cause = None if whole else "cancelled" if self.context.control.outcome is TurnStatus.CANCELLED else "failed"
        message = response.message(cause)
        if not message.blank:
            self.context.text = message.text
        self.context.journal.append(*([] if message.blank else [message]), *response.calls)
        # The stream broke off: none of its calls runs, and each still needs its one result.
        if response.calls and not whole:
            Ledger.announce(self.context, response.calls).finalize()

    async def _wait(self, attempt: int, error: AgentError) -> None:
        delay_ms = retry_delay_ms(self.assignment.retry, attempt, error.retry_after_ms, random())
        await self.context.emit(RetryScheduled(attempt, delay_ms, error))
        with self.context.control.interruptible():
            await trio.sleep(delay_ms / 1000)

"""A pipeline: fixed steps in order, each with its own prompt, tools and budget (semantics 13, L2).

A finished step is stored and never run again: a stopped or crashed pipeline goes on at the first step without an
outcome.
"""

from __future__ import annotations

import attrs

from ...core.profiles.modes import Pipeline, SingleShot, Step
from ...core.profiles.step_prompts import fill_in
from ...core.resume import LastTurn
from ...messages.content import UserInput
from ...messages.errors import AgentError
from ...messages.events import StepEnd, StepStart, TurnStatus
from ...messages.history import UserMessage
from .agent_loop import AgentLoop, LoopLimits
from .compactor import Compactor
from .session_state import Unfinished
from .turn_context import TurnContext


@attrs.define(eq=False)
class PipelineRun:
    """The way through one pipeline. ``outputs``: what the finished steps came to, by their key, in order.

    ``continues``: the turn that began it, if that was another one.
    """

    outputs: dict[str, str] = attrs.Factory(dict)
    continues: str | None = None

    async def run(
        self, pipeline: Pipeline, context: TurnContext, free: LoopLimits, compactor: Compactor, user_text: str
    ) -> None:
        """Carry out the steps that are not finished.

        Cancellation: by a forced shutdown; a turn's cancel makes it return early. Finished steps stay finished.

        Raises:
            AgentError: a step failed after its retries; the message names it.
        """
        for index, step in enumerate(pipeline.steps):
            # Finished in an earlier turn, and its effects with it: never again.
            if step.key in self.outputs:
                context.text = self.outputs[step.key]
                continue
            if context.control.stopping:
                return
            await context.emit(StepStart(step.name, index))
            assignment = _assignment(step, context, free, final=index == len(pipeline.steps) - 1)
            prompt = fill_in(step.prompt, user_text, self.outputs)
            output = await self._try(step, context, assignment, compactor, prompt)
            if isinstance(output, AgentError):
                await context.emit(StepEnd(step.name, index, False, ""))
                raise _named(step, output) from output
            if not _complete(context, assignment):
                await context.emit(StepEnd(step.name, index, False, ""))
                return
            self._keep(context, step, index, output)
            await context.emit(StepEnd(step.name, index, True, output))

    async def _try(
        self, step: Step, context: TurnContext, assignment: LoopLimits, compactor: Compactor, prompt: str
    ) -> str | AgentError:
        """The step's output, or why its last try failed."""
        left = step.retries
        while True:
            # A try before this one may have ended before the model answered: its prompt then stands there already.
            if (message := UserMessage(prompt)) != context.journal.transcript.newest:
                context.journal.append(message)
            try:
                return await AgentLoop(context, assignment, compactor).run()
            except AgentError as error:
                if not left or context.control.stopping:
                    return error
            left -= 1

    def _keep(self, context: TurnContext, step: Step, index: int, output: str) -> None:
        self.outputs[step.key] = output
        outcome = {"turn_id": context.turn_id, "step": step.name, "index": index, "success": True, "output": output}
        context.journal.append_metadata("step_ended", outcome)


def _complete(context: TurnContext, assignment: LoopLimits) -> bool:
    return not context.control.stopping or (assignment.final and context.control.committed)


def _assignment(step: Step, context: TurnContext, free: LoopLimits, *, final: bool) -> LoopLimits:
    registry = context.registry
    tools = free.tools
    if step.tools is not None and context.model.capabilities.tool_use:
        tools = registry.offer(tuple(step.tools))
    if isinstance(step.mode, SingleShot):
        retry = step.mode.retry or free.retry
        return attrs.evolve(free, tools=(), retry=retry, single=True, final=final)
    budget = step.budget or step.mode.budget
    if budget is None:
        return attrs.evolve(free, tools=tools, final=final)
    limits = [limit for limit in (budget.max_tool_calls, free.max_tool_calls) if limit is not None]
    return attrs.evolve(free, tools=tools, max_rounds=budget.max_rounds, max_tool_calls=min(limits), final=final)


def unfinished_of(last: LastTurn, pipeline: Pipeline) -> Unfinished | None:
    """What of a stored turn there is to go on with. None: it completed, or it was not a turn of this pipeline."""
    if last.status is TurnStatus.COMPLETED or last.input is None:
        return None
    outputs: dict[str, str] = {}
    for step, outcome in zip(pipeline.steps, last.steps, strict=False):
        if outcome.step != step.name or not outcome.success:
            break
        outputs[step.key] = outcome.output
    return Unfinished(last.turn_id, UserInput(last.input.content), outputs)


def _named(step: Step, error: AgentError) -> AgentError:
    message = f"step {step.name!r} failed: {error.message}"
    return AgentError.of(error.code, message, retryable=error.retryable, source=error.source)

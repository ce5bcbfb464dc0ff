"""Keeps requests within the model's window (semantics 9). Decisions are `core.compaction`'s; this carries them out.

await compactor.before_request(tools)               # trigger 1: the estimate is over the threshold
await compactor.after_overflow(tools, error)        # trigger 2: the provider said that it is too long
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs

from ...core.compaction.compaction_texts import SUMMARY_PROMPT
from ...core.compaction.decisions import (
    CompactionRecord,
    Split,
    check_summary,
    compacted,
    fixed_text_problem,
    keep_budget,
    needs_compaction,
    shrink_items,
    split_history,
    summary_request_messages,
    truncate_history,
)
from ...core.randomness import new_id
from ...core.session_setup import model_of
from ...messages.chat import ChatRequest, SystemPrompt, ToolSpec, Usage
from ...messages.errors import AgentError, CompactError, ErrorCode
from ...messages.events import ContextCompacted
from ...messages.history import Message
from ...messages.hook_payloads import BeforeCompact
from ..shared.model_stream import Response, read_response
from .session_state import SessionState
from .turn_context import TurnContext

logger: logging.Logger = logging.getLogger("youyou.providers")

SUMMARY_TRIES = 3


@attrs.define(eq=False)
class Compactor:
    """One turn's compactions."""

    context: TurnContext
    state: SessionState

    async def before_request(self, tools: tuple[ToolSpec, ...]) -> None:
        """Compact if the next request would be over the threshold.

        Cancellation: a turn's cancel stops it at once, history unchanged.

        Raises:
            CompactError: fixed text alone fills the window.
        """
        config, window = self.context.config, self.context.model.context_window
        meter = self.context.journal.transcript.meter
        if not needs_compaction(meter.estimate(self.context.system, tools), window, config.compact_threshold):
            return
        fixed = meter.fixed(self.context.system, tools)
        if (problem := fixed_text_problem(fixed, window, config.compact_threshold)) is not None:
            raise CompactError(problem)
        if await self._allowed(tools):
            await self._compact(tools, int(config.compact_threshold * window) - fixed, window)

    async def after_overflow(self, tools: tuple[ToolSpec, ...], error: AgentError) -> None:
        """Compact because the provider refused the request as too long.

        Raises:
            AgentError: ``error``, where a hook forbids it or nothing can be made smaller.
        """
        meter = self.context.journal.transcript.meter
        # The provider knows better: its window is no larger than what was sent, and half of that is the new bound.
        sent = meter.estimate(self.context.system, tools)
        room = sent // 2 - meter.fixed(self.context.system, tools)
        window = min(sent, self.context.model.context_window)
        if not await self._allowed(tools) or not await self._compact(tools, max(room, 1), window):
            raise error

    async def _allowed(self, tools: Sequence[ToolSpec]) -> bool:
        context = self.context
        event = BeforeCompact(
            len(context.journal.transcript.history),
            context.journal.transcript.meter.estimate(context.system, tools),
            session_id=context.journal.session_id,
            turn_id=context.turn_id,
        )
        outcome = await context.hooks.before(event, context.control.clock)
        if outcome.error is not None:
            await context.emit_error(outcome.error)
        return outcome.abort is None and not context.control.stopping

    async def _compact(self, tools: tuple[ToolSpec, ...], room: int, window: int) -> bool:
        """Replace old history by what fits into ``room`` tokens. False: nothing became smaller, or a stop came."""
        context, transcript = self.context, self.context.journal.transcript
        before = transcript.meter.estimate(context.system, tools)
        history = transcript.history
        kind, messages = "summary", await self._summarised(history, keep_budget(window))
        if context.control.stopping:
            return False
        if messages is None:
            kind, messages = "truncation", truncate_history(history, room * 3 // 4, transcript.meter.size)
        if sum(map(transcript.meter.size, messages)) > room:
            messages = shrink_items(messages, room, transcript.meter.size)
        if tuple(messages) == tuple(history):
            return False
        # Taken before the record itself is numbered: the messages stand for everything up to here.
        through = context.journal.next_seq - 1
        transcript.replace(messages)
        after = transcript.meter.estimate(context.system, tools)
        record = CompactionRecord(kind, before, after, through, messages, transcript.unanswered)
        context.journal.append_metadata("compaction", record.to_value())
        # The provider's prompt cache is lost in any case: the moment to let the stable part change.
        self.state.rebuild()
        context.system = attrs.evolve(context.system, stable=self.state.stable())
        await context.emit(ContextCompacted(kind, before, after))
        return True

    async def _summarised(self, history: Sequence[Message], keep: int) -> tuple[Message, ...] | None:
        """History with its old part summarised. None: no summary could be had."""
        if not self.state.breaker.allows():
            return None
        split = split_history(history, keep, self.context.journal.transcript.meter.size)
        if split is None:
            return None
        summary = await self._summary(split)
        if summary is None:
            if not self.context.control.stopping:
                # A stop is not a failure of the summary's model.
                self.state.breaker.failed()
            return None
        self.state.breaker.succeeded()
        return compacted(summary, split.kept)

    async def _summary(self, split: Split) -> str | None:
        config = self.context.config
        model, _ = model_of(self.context.registry, config.compact_model or self.context.model.id)
        budget = int(model.context_window * config.compact_threshold)
        for _ in range(SUMMARY_TRIES):
            response = Response(new_id())
            try:
                await self._ask(split, budget, response)
            except AgentError as error:
                if error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED:
                    budget //= 2
                    continue
                logger.warning("no summary: %s", error)
                return None
            if response.done is None:
                return None
            return self._accepted(split, response)
        return None

    def _accepted(self, split: Split, response: Response) -> str | None:
        count = self.context.journal.transcript.meter.text_size
        problem = check_summary(response.text, split.replaced_tokens, called_tool=bool(response.calls), count=count)
        if problem is not None:
            logger.warning("no summary: %s", problem)
            return None
        return response.text

    async def _ask(self, split: Split, budget: int, response: Response) -> None:
        context, config = self.context, self.context.config
        model, provider = model_of(context.registry, config.compact_model or context.model.id)
        prompt = config.compact_prompt or SUMMARY_PROMPT
        messages = summary_request_messages(split.old, prompt, budget, context.journal.transcript.meter.text_size)
        request = ChatRequest(model.id, SystemPrompt(), messages)
        try:
            with context.control.interruptible():
                await read_response(context.lifetime, provider, request, context.limits, response)
        finally:
            context.usage += Usage(requests=1) + response.usage

"""What the parts of one turn share: rounds, batch, compaction and the turn itself all work at one context."""

from __future__ import annotations

from typing import Any

import attrs

from ...core.config import AgentConfig
from ...core.ports.protocols import ModelInfo, ModelProvider
from ...core.prompts.skills import injection, skills_in
from ...core.randomness import new_id
from ...core.registry.registry import Registry
from ...core.session_setup import SessionSetup
from ...core.structured_output import OutputFormat
from ...messages.chat import SystemPrompt, Usage
from ...messages.content import UserInput
from ...messages.errors import AgentError
from ...messages.events import AgentEventPayload, ErrorEvent
from ...messages.history import StopReason, ToolResult, UserMessage
from ..recorder.journal import Journal
from ..shared.event_stream import EventStream
from ..shared.hook_runner import HookRunner
from ..shared.lifetime import Lifetime
from ..shared.model_stream import StreamLimits
from ..shared.outcome import TurnControl
from ..tool_pool.pool import ToolPool


@attrs.define(eq=False)
class TurnContext:
    """One turn's tools of trade, and what it has come to so far. Touched by the turn's own tasks alone."""

    turn_id: str
    lifetime: Lifetime
    setup: SessionSetup
    journal: Journal
    control: TurnControl
    events: EventStream
    hooks: HookRunner
    pool: ToolPool
    call_ids: set[str]
    output: OutputFormat | None = None
    config: AgentConfig = attrs.field(init=False)
    registry: Registry = attrs.field(init=False)
    model: ModelInfo = attrs.field(init=False)
    provider: ModelProvider = attrs.field(init=False)
    limits: StreamLimits = attrs.field(init=False)
    system: SystemPrompt = attrs.Factory(SystemPrompt)
    text: str = ""
    value: Any = None
    """The last answer as what ``output`` asks for; it counts only if the turn completes."""
    usage: Usage = attrs.Factory(Usage)
    stop_reason: StopReason | None = None
    calls_used: int = 0
    results: list[ToolResult] = attrs.Factory(list)
    skipped: list[str] = attrs.Factory(list)
    interrupted: list[str] = attrs.Factory(list)
    injected: set[str] = attrs.Factory(set)

    def __attrs_post_init__(self) -> None:
        setup = self.setup
        self.config, self.registry = setup.config, setup.registry
        self.model, self.provider = setup.model, setup.provider
        self.limits = StreamLimits.of(setup.config)

    async def emit(self, payload: AgentEventPayload) -> None:
        """Emit an event. A checkpoint at least once per buffer; waits for a slow reader until the turn is stopped."""
        if not self.events.offer(payload):
            await self.events.emit(payload)

    async def emit_error(self, error: AgentError) -> None:
        """Emit an error that does not end the turn by itself."""
        await self.emit(ErrorEvent(error))

    async def flush(self, mark: int | None = None) -> None:
        """Wait until what was posted is stored, within the bound of a stop (semantics 6.1).

        A checkpoint, except where all is stored: then there is nothing to wait for, and nobody is woken.

        Raises:
            AgentError: the storage failed, or was not waited for any longer.
        """
        await self.journal.flush_within(self.control.clock, self.config.closing_ms / 1000, mark)

    def keep_refusal(self) -> None:
        """Store that this model's provider refused the images and files so far (semantics 6). Sync."""
        value = {"provider": str(self.provider.id), "model": self.model.id}
        self.journal.append_metadata("content_refused", value)

    def append_input(self, user_input: UserInput) -> None:
        """The user's words enter history and log, the prompts of skills they name before them. Sync.

        A skill's prompt is injected once per turn (semantics 11).
        """
        skills = self.registry.skills
        names = [name for name in skills_in(user_input, skills) if name not in self.injected]
        self.injected.update(names)
        prompts = [injection(skills[name]) for name in names]
        self.journal.append(*prompts, UserMessage(user_input.content))

    def unique_call_id(self, wanted: str) -> str:
        """``wanted``, unless it is blank or was used before in this session (semantics 4)."""
        call_id = wanted if wanted.strip() and wanted not in self.call_ids else f"call_{new_id()[:16]}"
        self.call_ids.add(call_id)
        return call_id

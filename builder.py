"""Collects what an agent is made of, and builds it (semantics 2)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, final

import trio

from .core.config import AgentConfig
from .core.ports.protocols import MemoryStorage, ModelProvider, Plugin, SessionStorage, ToolHandler
from .core.profiles.profile import AgentProfile
from .core.prompts.skills import SkillDefinition
from .core.registry.registration import Part, Registrations
from .messages.misuse import misused

if TYPE_CHECKING:
    from .actors.handles.agent_handle import Agent


@final
class NoProvider:
    """The state of a builder without a model provider: it has no use for ``build()``."""


@final
class HasProvider:
    """The state of a builder with a model provider."""


S = TypeVar("S", NoProvider, HasProvider)


@final
@misused(async_with="a builder is not an agent; write 'async with builder.build() as agent:'")
class AgentBuilder(Generic[S]):
    """Registers parts, then builds one agent.

    Synopsis::

        builder = AgentBuilder(config).register_model_provider(provider).register_tool(weather)
        async with builder.build() as agent: ...            # or:
        agent = await nursery.start(builder.serve)          # for a host that owns the nursery

    Each ``register_...`` returns the builder, so that calls chain. A type checker refuses ``build()`` before a model
    provider is registered. Semantics 2.
    """

    def __init__(self: AgentBuilder[NoProvider], config: AgentConfig) -> None:
        self._registrations = Registrations(config)

    def _add(self, part: Part, value: object, config: object = None) -> AgentBuilder[S]:
        self._registrations.add(part, value, config)
        return self

    def register_model_provider(self, provider: ModelProvider) -> AgentBuilder[HasProvider]:
        """Add a provider. At least one is needed; ids and model ids are unique."""
        self._add(Part.PROVIDER, provider)
        return cast("AgentBuilder[HasProvider]", cast(object, self))

    def register_tool(self, tool: ToolHandler) -> AgentBuilder[S]:
        """Add a tool that models may call."""
        return self._add(Part.TOOL, tool)

    def register_skill(self, skill: SkillDefinition) -> AgentBuilder[S]:
        """Add a skill that the user may trigger."""
        return self._add(Part.SKILL, skill)

    def register_plugin(self, plugin: Plugin, config: Any = None) -> AgentBuilder[S]:
        """Add a plugin; ``config`` is handed to its ``initialize`` and is in each of its hook events."""
        return self._add(Part.PLUGIN, plugin, config)

    def register_session_storage(self, storage: SessionStorage) -> AgentBuilder[S]:
        """Have sessions stored. At most one."""
        return self._add(Part.SESSION_STORAGE, storage)

    def register_memory_storage(self, storage: MemoryStorage) -> AgentBuilder[S]:
        """Have memories kept across sessions. At most one."""
        return self._add(Part.MEMORY_STORAGE, storage)

    def register_profile(self, profile: AgentProfile) -> AgentBuilder[S]:
        """Add a profile that sessions may choose."""
        return self._add(Part.PROFILE, profile)

    def build(self: AgentBuilder[HasProvider]) -> AbstractAsyncContextManager[Agent]:
        """Validate everything, now, and return the agent to enter.

        Sync. Plugins are initialised when the block is entered.

        Raises:
            AgentError: the first problem by registration order; its ``__notes__`` have the others.
        """
        # Loaded here, so that importing youyou costs little.
        from .actors.open_agent import AgentBlock
        from .core.registry.registry import validate

        return AgentBlock(validate(self._registrations))

    async def serve(
        self: AgentBuilder[HasProvider], *, task_status: trio.TaskStatus[Agent] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run the agent as a task: ``agent = await nursery.start(builder.serve)``. Ends after ``agent.shutdown()``.

        Cancellation: as for leaving ``build()``'s block by a cancellation.

        Raises:
            AgentError: as ``build()``, and as entering does.
        """
        async with self.build() as agent:
            task_status.started(agent)
            await agent.closed()

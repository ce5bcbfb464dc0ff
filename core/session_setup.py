"""What one session works with: the registry, seen through its configuration and profile (semantics 6, 13).

Computed once, when the session opens; pure.
"""

from __future__ import annotations

import attrs

from ..messages.chat import ToolSpec
from ..messages.errors import InvalidConfig, InvalidInput, ModelNotSupported
from .config import AgentConfig, SessionConfig
from .ports.protocols import ModelInfo, ModelProvider
from .profiles.modes import Budget, ReAct, RuntimeMode
from .registry.registry import Registry
from .structured_output import OutputFormat


@attrs.frozen(eq=False)
class SessionSetup:
    """A session's model, tools, mode and instructions."""

    registry: Registry
    session: SessionConfig
    model: ModelInfo
    provider: ModelProvider
    tools: tuple[str, ...]
    specs: tuple[ToolSpec, ...]
    mode: RuntimeMode
    budget: Budget
    instructions: str | None
    output: OutputFormat | None = None

    @property
    def config(self) -> AgentConfig:
        """The agent's configuration."""
        return self.registry.config


def model_of(registry: Registry, model_id: str) -> tuple[ModelInfo, ModelProvider]:
    """The model and the provider that has it.

    Raises:
        ModelNotSupported: no provider has it.
    """
    if model_id not in registry.models:
        known = ", ".join(sorted(registry.models))
        raise ModelNotSupported(f"model {model_id!r} is not registered; the models are: {known}")
    return registry.models[model_id]


def resolve_setup(registry: Registry, session: SessionConfig, output: OutputFormat | None = None) -> SessionSetup:
    """The setup of a session.

    Args:
        output: what its answers must be; None: what its configuration has as ``response_schema``.

    Raises:
        ModelNotSupported, ProfileNotFound: the configuration names what is not registered.
        InvalidConfig: ``response_schema`` is not a JSON Schema.
    """
    profile = registry.resolved(session.domain, session.skill)
    model, provider = model_of(registry, session.model_id or profile.model_id or registry.config.default_model)
    # A provider refuses a request with tools for a model that has none, so the session goes without rather than fail.
    names = profile.tools if model.capabilities.tool_use else ()
    return SessionSetup(
        registry,
        session,
        model,
        provider,
        names,
        registry.offer(names),
        profile.mode or ReAct(),
        profile.budget or Budget(),
        profile.instructions,
        output or _output_of(session),
    )


def with_output(session: SessionConfig, output: OutputFormat) -> SessionConfig:
    """The configuration of a session whose answers must be this.

    Raises:
        InvalidConfig: it has a schema of its own.
    """
    if session.response_schema is not None:
        raise InvalidConfig("the session is given output and SessionConfig.response_schema; give one of them")
    return attrs.evolve(session, response_schema=output.schema)


def _output_of(session: SessionConfig) -> OutputFormat | None:
    if session.response_schema is None:
        return None
    try:
        return OutputFormat.of(session.response_schema)
    except InvalidInput as error:
        raise InvalidConfig(f"SessionConfig.response_schema: {error.message}") from error

"""Puts the agent together: tools and profiles are whatever is declared, in order."""

from __future__ import annotations

import youyou

from .model import StandIn
from .profiles import PROFILES
from .tools import TOOLS


def desk_agent(
    provider: youyou.ModelProvider, storage: youyou.SessionStorage | None = None
) -> youyou.AgentBuilder[youyou.HasProvider]:
    """The builder of the example's agent. Its default model is the provider's first."""
    config = youyou.AgentConfig(
        default_model=provider.models()[0].id,
        system_instructions=("You help with texts. Use a tool rather than guess what a chapter says.",),
        notices=youyou.Notices.english(),
    )
    builder = youyou.AgentBuilder(config).register_model_provider(provider)
    for tool in TOOLS:
        builder = builder.register_tool(tool)
    for profile in PROFILES:
        builder = builder.register_profile(profile)
    return builder if storage is None else builder.register_session_storage(storage)


def stand_in_agent() -> youyou.AgentBuilder[youyou.HasProvider]:
    """The same without a model behind it: ``youyou profiles writing_desk.agent:stand_in_agent``."""
    return desk_agent(StandIn())

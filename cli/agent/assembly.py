"""The command line's own agent: sample tools, two skills, three profiles."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from ...builder import AgentBuilder, HasProvider
from ...core.config import AgentConfig, EnvironmentContext, Notices
from ...core.ports.protocols import ModelProvider, SessionStorage
from ...core.profiles.modes import Pipeline, SingleShot, Step
from ...core.profiles.profile import AgentProfile, ProfileKind, QuickAction
from ...core.prompts.skills import SkillDefinition
from ...core.tools.declaration import Tool
from .sample_tools import sample_tools

_INSTRUCTIONS = "You are a helpful assistant in a terminal. Answer briefly, in Markdown where it helps."

SKILLS = (
    SkillDefinition("brief", "Brief", "Answer in one sentence.", "Answer the user's message in exactly one sentence."),
    SkillDefinition(
        "recap", "Recap", "Sum up the conversation.", "Sum up the conversation so far in at most five short points."
    ),
)

PROFILES = (
    AgentProfile(
        "facts",
        ProfileKind.DOMAIN,
        "Facts",
        "Answers with the clock and the calculator.",
        icon="lightbulb",
        instructions="Use a tool for every number and every time that you state.",
        require_tags=("facts",),
        quick_actions=(QuickAction("What time is it?", "What time is it?", "clock"),),
    ),
    AgentProfile(
        "notebook",
        ProfileKind.DOMAIN,
        "Notebook",
        "Keeps notes and reads them back.",
        icon="notebook",
        require_tags=("notes",),
        quick_actions=(QuickAction("Show my notes", "Which notes do I have?", "list"),),
    ),
    AgentProfile(
        "think-twice",
        ProfileKind.SKILL,
        "Think twice",
        "Drafts an answer, then improves it.",
        icon="repeat",
        mode=Pipeline(
            (
                Step("draft", "{input}", mode=SingleShot()),
                Step("improve", "Improve this answer. Question: {input}\n\nAnswer: {steps.draft}", mode=SingleShot()),
            )
        ),
    ),
)


def agent_builder(
    provider: ModelProvider, storage: SessionStorage | None = None, tools: Sequence[Tool] | None = None
) -> AgentBuilder[HasProvider]:
    """The command line's own agent: demonstration tools, two skills, three profiles."""
    config = AgentConfig(
        default_model=provider.models()[0].id,
        system_instructions=(_INSTRUCTIONS,),
        environment=EnvironmentContext(os=platform.system()),
        notices=Notices.english(),
        # SIGTERM and a closed terminal end the process soon.
        shutdown_grace_ms=1_000,
    )
    builder = AgentBuilder(config).register_model_provider(provider)
    for tool in sample_tools() if tools is None else tools:
        builder.register_tool(tool)
    for skill in SKILLS:
        builder.register_skill(skill)
    for profile in PROFILES:
        builder.register_profile(profile)
    return builder if storage is None else builder.register_session_storage(storage)

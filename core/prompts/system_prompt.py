"""The system prompt: a stable part that a provider can cache, and a dynamic part for each turn (semantics 10).

    stable_prompt(setup)                                    # instructions, personality, profile, skills, plugins
    dynamic_prompt(memories, environment, sections)         # memories, environment, sections of TurnStart hooks

Pure: the same input gives the same text. Everything inserted is in a tag that it cannot close. Tool definitions
travel in ``ChatRequest.tools``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ...messages.records import Memory
from ...messages.text import clean_json, clean_text
from ..config import EnvironmentContext
from ..ports.whole_plugin import WholePlugin
from ..session_setup import SessionSetup
from .prompt_texts import DEFAULT_TEXTS, PromptTexts
from .skills import SkillDefinition
from .tags import enclose


def stable_prompt(setup: SessionSetup, texts: PromptTexts = DEFAULT_TEXTS) -> str:
    """The part that stays the same for a session.

    In this order: the agent's instructions and the session's ``system_prompt_override``, the personality, the
    profile's instructions, the skills that a model may suggest, the plugins.
    """
    config, registry = setup.config, setup.registry
    instructions = [*config.system_instructions, setup.session.system_prompt_override or ""]
    return _join(
        _section("system_instructions", instructions),
        _section("personality", [config.personality or ""]),
        _section("profile_instructions", [setup.instructions or ""]),
        _list("skills", texts.skills, _skill_lines(registry.skills.values())),
        _list("plugins", texts.plugins, _plugin_lines(plugin for plugin, _ in registry.plugins)),
    )


def dynamic_prompt(
    memories: Sequence[Memory],
    environment: EnvironmentContext | None,
    dynamic_sections: Iterable[str],
    texts: PromptTexts = DEFAULT_TEXTS,
) -> str:
    """The part that is built anew for each turn: memories, environment, the sections of TurnStart hooks."""
    return _join(
        _list("memories", texts.memories, map(render_memory, memories)),
        _list("environment", texts.environment, _environment_lines(environment)),
        *(_section("section", [section]) for section in dynamic_sections),
    )


def render_memory(memory: Memory) -> str:
    """One memory in a tag of its own, with the id by which an extraction may update it."""
    return enclose(
        "memory", memory.content, id=memory.id, tags=", ".join(memory.tags), updated=f"{memory.updated_at:%F}"
    )


def _join(*sections: str) -> str:
    return clean_text("\n\n".join(filter(None, sections)))


def _section(tag: str, texts: Iterable[str]) -> str:
    said = [text for text in texts if text.strip()]
    return enclose(tag, "\n\n".join(said)) if said else ""


def _list(tag: str, header: str, items: Iterable[str]) -> str:
    lines = list(items)
    return enclose(tag, "\n".join([header, *lines])) if lines else ""


def _skill_lines(skills: Iterable[SkillDefinition]) -> Iterator[str]:
    for skill in skills:
        if skill.allow_implicit_invocation:
            yield _line(f"/{skill.name}", skill.display_name, skill.description)


def _plugin_lines(plugins: Iterable[WholePlugin]) -> Iterator[str]:
    for plugin in plugins:
        if plugin.description.strip():
            yield _line(plugin.id, plugin.display_name, plugin.description)


def _line(name: str, display_name: str, description: str) -> str:
    """An entry on one line, so that its text cannot pass for another entry."""
    # A line break in a description would begin what looks like another entry.
    return " ".join(f"- {name} ({display_name}): {description}".split())


def _environment_lines(environment: EnvironmentContext | None) -> Iterator[str]:
    if environment is None:
        return
    known = {"os": environment.os, "working directory": environment.working_directory, "time": environment.time}
    for name, value in {**known, **environment.extra}.items():
        if value is not None:
            yield f"{name}: {_shown(value)}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(clean_json(value), enc_hook=str).decode()

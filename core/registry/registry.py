"""Everything that is registered, validated together and frozen (semantics 2, requirements of names, models and tools).

    registry = validate(registrations)      # raises the first problem; the others are in its notes
    model, provider = registry.models["gpt-5-mini"]
    registry.checkers["weather"].check(arguments)

Runs nothing of the parts but ``models()`` of the providers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from ...messages.chat import ToolSpec
from ..config import AgentConfig
from ..ports.protocols import MemoryStorage, ModelInfo, ModelProvider, SessionStorage, ToolHandler
from ..ports.whole_plugin import WholePlugin
from ..profiles.profile import AgentProfile, ResolvedProfile, resolve_profile
from ..prompts.skills import SkillDefinition
from ..tools.declaration import spec_of
from ..tools.schema import ArgumentChecker
from .registration import Part as Part
from .registration import Registration
from .registration import Registrations as Registrations
from .validation import RegistrationProblems


@attrs.frozen(eq=False)
class Registry:
    """What an agent is made of. Mappings are read-only and in order of registration."""

    config: AgentConfig
    providers: tuple[ModelProvider, ...]
    models: Mapping[str, tuple[ModelInfo, ModelProvider]]
    tools: Mapping[str, ToolHandler]
    checkers: Mapping[str, ArgumentChecker]
    skills: Mapping[str, SkillDefinition]
    plugins: tuple[tuple[WholePlugin, Any], ...]
    session_storage: SessionStorage | None
    memory_storage: MemoryStorage | None
    profiles: Mapping[str, AgentProfile]
    _resolved: dict[tuple[str | None, str | None], ResolvedProfile] = attrs.field(factory=dict, init=False, repr=False)
    _offers: dict[tuple[str, ...], tuple[ToolSpec, ...]] = attrs.field(factory=dict, init=False, repr=False)

    # Both are made once for all sessions of a kind: an agent may have a thousand tools, and a session for each turn.
    def resolved(self, domain: str | None, skill: str | None) -> ResolvedProfile:
        """The effective profile of sessions with this domain and this skill.

        Raises:
            ProfileNotFound: no profile has this id, or it is of the other kind.
        """
        key = (domain, skill)
        if key not in self._resolved:
            self._resolved[key] = resolve_profile(self.config, self.tools, self.profiles, domain, skill)
        return self._resolved[key]

    def offer(self, tools: tuple[str, ...]) -> tuple[ToolSpec, ...]:
        """These tools as the model sees them."""
        if tools not in self._offers:
            self._offers[tools] = tuple(spec_of(self.tools[tool]) for tool in tools)
        return self._offers[tools]


def validate(registrations: Registrations) -> Registry:
    """Validate everything that can be seen without running anything, and freeze it (semantics 2).

    Raises:
        AgentError: the first problem in order of registration, the configuration coming before all parts; the text of
            each further problem is in its ``__notes__``.
    """
    found = RegistrationProblems(registrations)
    registry = _registry(registrations.config, found)
    problems = found.in_order()
    if problems:
        first, *others = problems
        for other in others:
            # As notes and not as a group: a host catches `NameConflict`, not a group with one in it.
            first.add_note(str(other))
        raise first
    return registry


def _registry(config: AgentConfig, found: RegistrationProblems) -> Registry:
    """The registry as far as the problems allow; right if there are no found."""
    found.check_config()
    found.filter_invalid()
    providers = found.named(Part.PROVIDER, "id", "give one of them another id")
    models = found.models(providers)
    tools = found.named(Part.TOOL, "name", "rename one, or pass Tool(name=...) to tell them apart")
    checkers = found.checkers(tools)
    skills = found.named(Part.SKILL, "name", "rename one")
    found.check_skills(skills, tools)
    plugins = found.named(Part.PLUGIN, "id", "give one of them another id")
    profiles = found.named(Part.PROFILE, "id", "give one of them another id")
    found.check_profiles(profiles, tools, models)
    return Registry(
        config=config,
        # Read-only from here on: sessions that are open must not see a tool that comes later.
        providers=tuple(entry.value for entry in providers.values()),
        models=MappingProxyType(models),
        tools=_values(tools),
        checkers=MappingProxyType(checkers),
        skills=_values(skills),
        plugins=tuple((WholePlugin(entry.value), entry.config) for entry in plugins.values()),
        session_storage=found.storage(Part.SESSION_STORAGE),
        memory_storage=found.storage(Part.MEMORY_STORAGE),
        profiles=_values(profiles),
    )


def _values(entries: Mapping[str, Registration]) -> Mapping[str, Any]:
    return MappingProxyType({name: entry.value for name, entry in entries.items()})

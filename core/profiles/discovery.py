"""Everything a front end needs to know about an agent's profiles (semantics 13, L3).

    converter.unstructure(agent.profiles())     # JSON: names, icons, quick actions, modes with their steps, tools

A new profile shows up here without a change in any front end. Instructions are included only where ``resolved``
is asked for, by a person who looks into why a profile does what it does.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..config import AgentConfig
from ..ports.protocols import ToolHandler
from ..tools.declaration import tags_of
from .modes import Budget, Pipeline, RuntimeMode
from .profile import AgentProfile, ProfileKind, QuickAction, ResolvedProfile, lineage, resolve_profile


@attrs.frozen
class ToolInfo:
    """A tool as a front end shows it. ``label`` is the name if the tool has no label of its own."""

    name: str
    """Name under which the model calls it."""
    label: str
    """Name that a front end shows; ``name`` where the tool sets none."""
    description: str
    """What the tool is for, as the model reads it."""
    icon: str | None = None
    """Name of an icon, for the front end to interpret. None: none."""
    mutating: bool = False
    """Whether it has side effects."""
    tags: tuple[str, ...] = ()
    """Words by which profiles choose tools; may be empty."""


@attrs.frozen
class ProfileInfo:
    """A profile as a front end shows it, with what it inherits.

    ``tools``: those that it may use, those of its pipeline's steps included. ``resolved``: every effective value with
    the profile it came from, when asked for.
    """

    id: str
    """Pass it as ``SessionConfig.domain`` or ``SessionConfig.skill``, depending on ``kind``."""
    kind: ProfileKind
    """The layer: what the work is about (``DOMAIN``), or what is to be done (``SKILL``)."""
    display_name: str
    """Name that a front end shows."""
    description: str
    """What the profile is for, in one sentence for people."""
    icon: str | None
    """Name of an icon, the profile's own or its parent's. None: none."""
    mode: RuntimeMode
    """The mode that counts, with the steps of a pipeline."""
    budget: Budget
    """The limits that count; ``max_tool_calls`` is always set."""
    model_id: str
    """Model of a session that names none itself."""
    tools: tuple[ToolInfo, ...]
    """Tools that a session with this profile alone has, those of its pipeline's steps included."""
    quick_actions: tuple[QuickAction, ...]
    """Buttons to offer: the parent's, then its own."""
    extends: str | None = None
    """Id of the profile that lies below. None: none."""
    resolved: ResolvedProfile | None = None
    """Every value with the profile that it came from. None unless ``profiles(resolved=True)`` asked for it."""


def discovery(
    config: AgentConfig,
    tools: Mapping[str, ToolHandler],
    profiles: Mapping[str, AgentProfile],
    *,
    resolved: bool = False,
) -> tuple[ProfileInfo, ...]:
    """All profiles in order of registration; each as it works when it is the only one of a session."""
    return tuple(_profile_info(config, tools, profiles, profile, resolved) for profile in profiles.values())


def _profile_info(
    config: AgentConfig,
    tools: Mapping[str, ToolHandler],
    profiles: Mapping[str, AgentProfile],
    profile: AgentProfile,
    resolved: bool,
) -> ProfileInfo:
    kind = ProfileKind(profile.kind)
    layers = lineage(profiles, profile.id, kind)
    domain, skill = (profile.id, None) if kind is ProfileKind.DOMAIN else (None, profile.id)
    effective = resolve_profile(config, tools, profiles, domain, skill)
    return ProfileInfo(
        id=profile.id,
        kind=kind,
        display_name=profile.display_name,
        description=profile.description,
        icon=next((layer.icon for layer in reversed(layers) if layer.icon is not None), None),
        mode=effective.mode,
        budget=effective.budget,
        model_id=effective.model_id,
        tools=tuple(_tool_info(tools[name]) for name in _tool_names(tools, effective)),
        quick_actions=tuple(dict.fromkeys(action for layer in layers for action in layer.quick_actions)),
        extends=profile.extends,
        resolved=effective if resolved else None,
    )


def _tool_names(tools: Mapping[str, ToolHandler], profile: ResolvedProfile) -> list[str]:
    steps = profile.mode.steps if isinstance(profile.mode, Pipeline) else ()
    used = {*profile.tools, *(name for step in steps for name in step.tools or ())}
    return [name for name in tools if name in used]


def _tool_info(handler: ToolHandler) -> ToolInfo:
    label = getattr(handler, "label", None) or handler.name
    icon = getattr(handler, "icon", None)
    return ToolInfo(handler.name, label, handler.description, icon, handler.mutating, tags_of(handler))

"""Profiles: what an agent is at a time, by domain and by skill, laid over each other (semantics 13, L1).

    resolved = resolve_profile(config, tools, profiles, domain="writing", skill="outline")
    resolved.tools, resolved.origins.tools      # names, and for each the profile that brought it

Lowest first: the domain's parent, the domain, the skill's parent, the skill. One rule per field: instructions are
joined, tools united and then excluded, and of mode, budget and model the nearest that is set counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import attrs

from ...messages.content import texts
from ...messages.errors import ProfileNotFound
from ..config import AgentConfig
from ..ports.protocols import ToolHandler
from ..tools.declaration import tags_of
from .modes import Budget, ReAct, RuntimeMode, SingleShot

T = TypeVar("T")

_REACT: RuntimeMode = ReAct()


class ProfileKind(StrEnum):
    """The two layers of a profile: what the work is about, and what is to be done."""

    SKILL = "skill"
    DOMAIN = "domain"


@attrs.frozen
class QuickAction:
    """A button of a front end: a label and the prompt that it sends."""

    label: str
    """Text of the button."""
    prompt: str
    """The message that the button sends."""
    icon: str | None = None
    """Name of an icon, for the front end to interpret. None: none."""


# As texts: mypy cannot see through a generic converter.
def _actions(actions: Iterable[QuickAction]) -> tuple[QuickAction, ...]:
    return tuple(actions)


@attrs.frozen
class AgentProfile:
    """One declaration of what the agent should be. None: not set here, an underlying layer decides."""

    id: str
    """Unique among the profiles."""
    kind: ProfileKind
    """The layer: what the work is about (``DOMAIN``), or what is to be done (``SKILL``)."""
    display_name: str
    """Name that a front end shows."""
    description: str
    """What the profile is for, in one sentence for people."""
    icon: str | None = None
    """Name of an icon, for the front end to interpret. None: none."""
    instructions: str | None = None
    """Section of the system prompt, joined to those of lower layers. None: nothing."""
    tools: tuple[str, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(texts))
    """Names of tools, united with those of other layers. None: this layer names none."""
    require_tags: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Tools that carry all of these tags belong to the profile as well. Default: none."""
    exclude_tools: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Names of tools taken away whatever another layer names. Default: none."""
    mode: RuntimeMode | None = None
    """How turns are carried out. None: a lower layer's, else `ReAct`."""
    budget: Budget | None = None
    """Limits of a turn. None: a lower layer's, else the agent's limits."""
    model_id: str | None = None
    """Id of a registered model. None: a lower layer's, else the agent's ``default_model``."""
    quick_actions: tuple[QuickAction, ...] = attrs.field(default=(), converter=_actions)
    """Buttons that a front end offers with the profile."""
    extends: str | None = None
    """Id of a profile of the same kind that lies below this one and extends none itself. None: none."""


@attrs.frozen
class ProfileOrigins:
    """Which profile each effective value came from, by id; None is the agent itself.

    ``instructions`` names the profiles whose instructions were joined, in that order; ``tools`` has one entry for each
    tool, in the same order as the tools.
    """

    instructions: tuple[str, ...] = ()
    """Ids of the profiles whose instructions were joined, in that order."""
    tools: tuple[str | None, ...] = ()
    """The profile that brought each tool, in the order of ``ResolvedProfile.tools``; None is the agent itself."""
    mode: str | None = None
    """The profile that set the mode. None: the agent's default."""
    budget: str | None = None
    """The profile that set the budget. None: the agent's limits."""
    model_id: str | None = None
    """The profile that set the model. None: the agent's ``default_model``."""


@attrs.frozen
class ResolvedProfile:
    """What a session works with once its profiles are laid over each other.

    ``tools``: names, in order of registration; none for `SingleShot`. ``model_id``: what a session uses that names
    none itself.
    """

    domain: str | None
    """Id of the profile of kind ``DOMAIN``. None: none was asked for."""
    skill: str | None
    """Id of the profile of kind ``SKILL``. None: none was asked for."""
    instructions: str | None
    """The instructions of all layers, joined by blank lines. None: no layer has any."""
    tools: tuple[str, ...]
    """Names in order of registration; empty for `SingleShot`."""
    mode: RuntimeMode
    """The mode that counts."""
    budget: Budget
    """The limits that count; ``max_tool_calls`` is always set."""
    model_id: str
    """Model of a session that names none itself."""
    origins: ProfileOrigins
    """Which profile each value came from."""


def resolve_profile(
    config: AgentConfig,
    tools: Mapping[str, ToolHandler],
    profiles: Mapping[str, AgentProfile],
    domain: str | None = None,
    skill: str | None = None,
) -> ResolvedProfile:
    """The effective profile of a session with this domain and this skill, either of which may be None.

    Raises:
        ProfileNotFound: no profile has this id, or it is of the other kind.
    """
    layers = [*lineage(profiles, domain, ProfileKind.DOMAIN), *lineage(profiles, skill, ProfileKind.SKILL)]
    mode, mode_origin = _nearest([(each.id, each.mode) for each in layers], _REACT)
    budget, budget_origin = _nearest([(each.id, _budget(each, mode_origin)) for each in layers], Budget())
    model_id, model_origin = _nearest([(each.id, each.model_id) for each in layers], config.default_model)
    # Resolved after the mode, since the mode decides whether there are tools at all.
    brought = {} if isinstance(mode, SingleShot) else _tools(tools, layers)
    said = {each.id: each.instructions for each in layers if each.instructions and each.instructions.strip()}
    if budget.max_tool_calls is None:
        budget = attrs.evolve(budget, max_tool_calls=config.max_tool_calls_per_turn)
    origins = ProfileOrigins(tuple(said), tuple(brought.values()), mode_origin, budget_origin, model_origin)
    joined = "\n\n".join(said.values()) or None
    return ResolvedProfile(domain, skill, joined, tuple(brought), mode, budget, model_id, origins)


def lineage(profiles: Mapping[str, AgentProfile], id: str | None, kind: ProfileKind) -> list[AgentProfile]:
    """The profile, below it the one that it extends; nothing for None. Lowest first."""
    if id is None:
        return []
    own = profiles.get(id)
    if own is None or own.kind != kind:
        known = ", ".join(each.id for each in profiles.values() if each.kind == kind) or "none"
        raise ProfileNotFound(f"no {kind} profile {id!r}; registered: {known}")
    return [own] if own.extends is None else [profiles[own.extends], own]


def _nearest(settings: Sequence[tuple[str, T | None]], default: T) -> tuple[T, str | None]:
    """The setting of the uppermost layer that has one, and that layer."""
    return next(((value, id) for id, value in reversed(settings) if value is not None), (default, None))


def _budget(profile: AgentProfile, mode_origin: str | None) -> Budget | None:
    """A layer's own budget, or the one inside its mode if that is the mode that counts."""
    # A budget inside a mode that another layer replaced has gone with that mode.
    if profile.budget is None and isinstance(profile.mode, ReAct) and profile.id == mode_origin:
        return profile.mode.budget
    return profile.budget


def _tools(tools: Mapping[str, ToolHandler], layers: Sequence[AgentProfile]) -> dict[str, str | None]:
    """Effective tools in order of registration, each with the lowest layer that brought it."""
    brought: dict[str, str] = {}
    for layer in layers:
        for name in _named(tools, layer):
            brought.setdefault(name, layer.id)
    # Only exclusions: then all tools but those. A profile that names none must not take all of them away.
    anything_named = any(each.tools is not None or each.require_tags for each in layers)
    excluded = {name for each in layers for name in each.exclude_tools}
    return {
        name: brought.get(name) for name in tools if name not in excluded and (name in brought or not anything_named)
    }


def _named(tools: Mapping[str, ToolHandler], profile: AgentProfile) -> list[str]:
    tagged = [name for name, handler in tools.items() if has_tags(handler, profile.require_tags)]
    return [*(profile.tools or ()), *tagged]


def has_tags(handler: ToolHandler, required: Sequence[str]) -> bool:
    """Whether a tool carries every one of these tags; nothing required means that none was asked for."""
    return bool(required) and set(required) <= set(tags_of(handler))

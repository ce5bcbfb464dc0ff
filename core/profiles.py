"""Profiles: what an agent is at a time, by domain and by skill (semantics 13, L1)."""

from __future__ import annotations

from enum import StrEnum

import attrs

from .modes import Budget, RuntimeMode


class ProfileKind(StrEnum):
    """The two layers of a profile: what the work is about, and what is to be done."""

    SKILL = "skill"
    DOMAIN = "domain"


@attrs.frozen
class QuickAction:
    """A button of a front end: a label and the prompt that it sends."""

    label: str
    prompt: str
    icon: str | None = None


@attrs.frozen
class AgentProfile:
    """One declaration of what the agent should be. None: not set here, an underlying layer decides."""

    id: str
    kind: ProfileKind
    display_name: str
    description: str
    icon: str | None = None
    instructions: str | None = None
    tools: tuple[str, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(tuple))
    require_tags: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    exclude_tools: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    mode: RuntimeMode | None = None
    budget: Budget | None = None
    model_id: str | None = None
    quick_actions: tuple[QuickAction, ...] = attrs.field(default=(), converter=tuple)
    extends: str | None = None

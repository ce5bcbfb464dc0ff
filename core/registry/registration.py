"""What a builder collects, in the order in which it was registered (semantics 2).

    registrations = Registrations(config)
    registrations.add(Part.TOOL, weather)
    registrations.add(Part.PLUGIN, audit, {"level": "all"})

Keeps anything; validating it is the work of `registry.validate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import attrs

from ..config import AgentConfig


class Part(StrEnum):
    """The kinds of things that a builder takes."""

    PROVIDER = "model provider"
    TOOL = "tool"
    SKILL = "skill"
    PLUGIN = "plugin"
    SESSION_STORAGE = "session storage"
    MEMORY_STORAGE = "memory storage"
    PROFILE = "profile"


@attrs.frozen(eq=False)
class Registration:
    """One registered thing. ``config`` is what came with a plugin."""

    part: Part
    value: Any
    config: Any = None


@attrs.define(eq=False)
class Registrations:
    """Everything registered so far. Owned by one builder."""

    config: AgentConfig
    entries: list[Registration] = attrs.field(factory=list)

    def add(self, part: Part, value: object, config: object = None) -> None:
        """Register ``value`` after all that is registered already."""
        self.entries.append(Registration(part, value, config))

    def of(self, part: Part) -> Iterator[Registration]:
        """The registrations of one kind, in order."""
        return (entry for entry in self.entries if entry.part is part)

"""What the agents of a host share, and what each has of its own (semantics 16).

Providers and storages of the first builder serve all; each session's agent has the tools, plugins, skills and profiles
of a builder of its own, because plugins keep the state of one agent.

    parts = SharedParts.of(make_builder)
    async with open_agent(parts.holder()): ...                              # enters providers and storages
    open_agent(parts.registry("user-7"), resources_entered=True)            # one session's agent
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from ..builder import AgentBuilder, HasProvider
from ..core.registry.registration import Part, Registration, Registrations
from ..core.registry.registry import Registry, validate
from ..messages.errors import InvalidConfig

MakeBuilder: TypeAlias = Callable[[], AgentBuilder[HasProvider]]
_SHARED = (Part.PROVIDER, Part.SESSION_STORAGE, Part.MEMORY_STORAGE)


@attrs.frozen(eq=False)
class SharedParts:
    """Where registries come from."""

    make_builder: MakeBuilder
    first: Registrations

    @classmethod
    def of(cls, make_builder: MakeBuilder) -> SharedParts:
        """Ask for the first builder.

        Raises:
            InvalidConfig: ``make_builder`` gave something else.
            AgentError: as ``AgentBuilder.build()``.
        """
        parts = cls(make_builder, _registrations(make_builder))
        validate(parts.first)
        return parts

    @property
    def session_storage(self) -> object:
        """The storage of all sessions, if there is one."""
        return next((e.value for e in self.first.entries if e.part is Part.SESSION_STORAGE), None)

    def holder(self) -> Registry:
        """The registry of the agent that only enters and leaves what is shared."""
        kept = [entry for entry in self.first.entries if entry.part is not Part.PLUGIN]
        return validate(Registrations(self.first.config, kept))

    def registry(self, memory_namespace: str | None) -> Registry:
        """The registry of one session's agent."""
        own = _registrations(self.make_builder)
        config = own.config
        if memory_namespace is not None:
            config = attrs.evolve(config, memory_namespace=memory_namespace)
        return validate(Registrations(config, [*self._shared(), *(e for e in own.entries if e.part not in _SHARED)]))

    def _shared(self) -> list[Registration]:
        return [entry for entry in self.first.entries if entry.part in _SHARED]


def _registrations(make_builder: MakeBuilder) -> Registrations:
    builder = make_builder()
    if not isinstance(builder, AgentBuilder):
        raise InvalidConfig(f"make_builder gave {type(builder).__name__}; have it return an AgentBuilder")
    return builder._registrations

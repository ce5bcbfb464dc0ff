"""How a turn is carried out: react freely, answer once, or follow fixed steps (semantics 13, L2). Values only.

Pipeline((Step("outline", "Outline this: {input}"), Step("cards", "Make cards of {steps.outline}", tools=("save",))))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from ...messages.content import texts
from ..config import RetryPolicy


@attrs.frozen
class Budget:
    """Limits of one turn or step. None: the limits of the agent's configuration."""

    max_rounds: int | None = None
    """Model requests that may ask for tools, at least 1. None: no limit."""
    max_tool_calls: int | None = None
    """Tool calls, at least 1. None: the agent's ``max_tool_calls_per_turn``."""


@attrs.frozen
class ReAct:
    """Rounds of model and tools until the model asks for no more."""

    budget: Budget | None = None
    """Limits of a turn in this mode; a ``budget`` set next to the mode goes first. None: the agent's limits."""


@attrs.frozen
class SingleShot:
    """One request, no tools. ``retry`` replaces the agent's policy."""

    retry: RetryPolicy | None = None
    """Replaces the agent's policy for this request. None: the agent's."""


@attrs.frozen
class Step:
    """One step of a pipeline. ``{input}`` and ``{steps.NAME}`` in the prompt are filled in; NAME is output or name.

    ``tools``: names it may use; None means those of the profile. ``retries``: how often a failed step is tried again.
    """

    name: str
    """Unique within its pipeline; appears in events and errors."""
    prompt: str
    """The user message of the step. ``{input}`` and ``{steps.NAME}`` are filled in."""
    tools: tuple[str, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(texts))
    """Names of tools that the step may use. None: those of the profile."""
    mode: ReAct | SingleShot = attrs.field(factory=ReAct)
    """How the step is carried out. Default: `ReAct`."""
    budget: Budget | None = None
    """Limits of the step, within those of the turn. None: those of the turn."""
    retries: int = 0
    """How often a failed step is run again. Default: 0."""
    output: str | None = None
    """Name under which later steps find the outcome. None: ``name``."""

    @property
    def key(self) -> str:
        """The name under which later steps find the outcome."""
        return self.output or self.name


# As texts: mypy cannot see through a generic converter.
def _steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(steps)


@attrs.frozen
class Pipeline:
    """Fixed steps in order. No pipeline inside a pipeline."""

    steps: tuple[Step, ...] = attrs.field(converter=_steps)
    """The steps in the order in which they run."""


RuntimeMode: TypeAlias = ReAct | Pipeline | SingleShot

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
    max_tool_calls: int | None = None


@attrs.frozen
class ReAct:
    """Rounds of model and tools until the model asks for no more."""

    budget: Budget | None = None


@attrs.frozen
class SingleShot:
    """One request, no tools. ``retry`` replaces the agent's policy."""

    retry: RetryPolicy | None = None


@attrs.frozen
class Step:
    """One step of a pipeline. ``{input}`` and ``{steps.NAME}`` in the prompt are filled in; NAME is output or name.

    ``tools``: names it may use; None means those of the profile. ``retries``: how often a failed step is tried again.
    """

    name: str
    prompt: str
    tools: tuple[str, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(texts))
    mode: ReAct | SingleShot = attrs.field(factory=ReAct)
    budget: Budget | None = None
    retries: int = 0
    output: str | None = None

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


RuntimeMode: TypeAlias = ReAct | Pipeline | SingleShot

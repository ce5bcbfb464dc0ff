"""Skills: prompts that the user triggers by ``/name`` (semantics 11)."""

from __future__ import annotations

import attrs


@attrs.frozen
class SkillDefinition:
    """A prompt the user can trigger. ``allow_implicit_invocation``: listed for the model to suggest, never triggered by it."""

    name: str
    display_name: str
    description: str
    prompt: str
    required_tools: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    allow_implicit_invocation: bool = False

"""Which injected cancel is behind a `trio.Cancelled`: told by its reason, or, for actions, by what they changed.

Remembers what was fired and what the world looked like then. Never fires, and never decides where something arrived.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import trio

from . import hooks

Task = trio.lowlevel.Task


@attrs.define(eq=False)
class Deliveries:
    """The cancels that are under way in one run."""

    _reasons: dict[str, int] = attrs.field(factory=dict)
    _actions: list[int] = attrs.field(factory=list)
    _deadlines: dict[trio.CancelScope, float] = attrs.field(factory=dict)
    """Of every scope that somebody was in when the last action was called."""

    def expect_reason(self, number: int, reason: str) -> None:
        """Injection ``number`` cancels a scope with ``reason``."""
        self._reasons[reason] = number

    def expect_any(self, number: int, tasks: Iterable[Task]) -> None:
        """Injection ``number`` is about to call something that may cancel any of ``tasks`` in any way."""
        self._deadlines = {scope: scope.deadline for task in tasks for scope in hooks.scopes_around(task)}
        self._actions.append(number)

    def expect_none(self, number: int) -> None:
        """Injection ``number`` says that it changed nothing."""
        self._actions.remove(number)

    def behind(self, task: Task) -> int | None:
        """The injection that wakes ``task``, whose turn it is, with an exception; None if there is none."""
        if not self._reasons and not self._actions:
            return None
        error = hooks.thrown_into(task)
        if error is None:
            return None
        number = self._reasons.get(str(getattr(error, "reason", None)))
        if number is None and (isinstance(error, KeyboardInterrupt) or error.source == "KeyboardInterrupt"):
            number = self._reasons.get("ctrl-c")
        if number is None and self._actions and not self._was_due(task, error):
            number = self._actions[0]
        return number

    def _was_due(self, task: Task, error: trio.Cancelled | KeyboardInterrupt) -> bool:
        """Whether ``error`` is the end of a sleep or of a timeout that no action has moved."""
        moved = any(self._deadlines.get(s, s.deadline) != s.deadline for s in hooks.scopes_around(task))
        return isinstance(error, trio.Cancelled) and error.source == "deadline" and not moved

    def forget(self) -> None:
        """Let go of the program."""
        self._deadlines.clear()

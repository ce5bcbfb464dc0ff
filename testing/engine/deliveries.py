"""Which injected cancel is behind a `trio.Cancelled`: told by its reason, or by a deadline that came nearer.

Remembers what was fired and what the world looked like then. Never fires, and never decides where something arrived.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import trio

from ..process import trio_internals

Task = trio.lowlevel.Task


@attrs.define(eq=False)
class Deliveries:
    """The cancels that are under way in one run."""

    _reasons: dict[str, int] = attrs.field(factory=dict)
    _scopes: dict[trio.CancelScope, int] = attrs.field(factory=dict)
    _actions: list[int] = attrs.field(factory=list)
    _deadlines: dict[trio.CancelScope, float] = attrs.field(factory=dict)
    """Of every scope that somebody was in when the last injection was done."""

    def expect(
        self, number: int, reason: str | None, tasks: Iterable[Task], scope: trio.CancelScope | None = None
    ) -> None:
        """Injection ``number`` is about to cancel ``scope`` with ``reason``; None: in ways that nobody knows."""
        if scope is not None:
            self._scopes[scope] = number
        self._deadlines = {scope: scope.deadline for task in tasks for scope in trio_internals.scopes_around(task)}
        if reason is None:
            self._actions.append(number)
        else:
            self._reasons[reason] = number

    def expect_none(self, number: int) -> None:
        """Injection ``number`` says that it changed nothing."""
        self._actions.remove(number)

    def behind(self, task: Task) -> int | None:
        """The injection that wakes ``task``, whose turn it is, with an exception; None if there is none."""
        if not self._reasons and not self._actions:
            return None
        error = trio_internals.thrown_into(task)
        if error is None:
            return None
        number = self._reasons.get(str(getattr(error, "reason", None)))
        if number is None and (isinstance(error, KeyboardInterrupt) or error.source == "KeyboardInterrupt"):
            number = self._reasons.get("ctrl-c")
        if number is None and isinstance(error, trio.Cancelled) and self._scopes:
            # A sleep that was over anyway is woken by its own deadline; what wakes it then goes on to our scope.
            scope = trio_internals.caught_by(task)
            number = None if scope is None else self._scopes.get(scope)
        if number is None and isinstance(error, trio.Cancelled) and error.source == "deadline":
            return min([*self._actions, *self._reasons.values()]) if self._is_hurried(task) else None
        return self._actions[0] if number is None and self._actions else number

    def _is_hurried(self, task: Task) -> bool:
        """Whether ``task`` has less time than before; if not, a sleep or a timeout ends as it would have."""
        return any(s.deadline < self._deadlines.get(s, s.deadline) for s in trio_internals.scopes_around(task))

    def forget(self) -> None:
        """Let go of the program."""
        self._deadlines.clear()
        self._scopes.clear()

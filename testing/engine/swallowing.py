"""Find the `trio.Cancelled` that a program swallowed: delivered, not caught by its scope, and the task went on.

Follows each one from the step in which it is thrown until its scope has caught it, its task has ended with an error, or
something shows that it is gone. Clean-up that awaits once more is told from swallowing by ``__context__``: what is
raised while a `Cancelled` is being handled has that one as its context.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from ..process import trio_internals
from ..process.locations import Location, caught_at

Task = trio.lowlevel.Task


@attrs.frozen(eq=False)
class Thrown:
    """A `trio.Cancelled` on its way."""

    error: trio.Cancelled
    scope: trio.CancelScope
    siblings: int
    """Errors that the nursery of the task had collected when it was thrown."""


@attrs.define(eq=False)
class Swallowing:
    """The cancels on their way in one run."""

    report: Callable[[Task, Location], None]
    """Told the task, and the outermost place that the lost exception had reached."""
    thrown: dict[Task, list[Thrown]] = attrs.field(factory=dict)
    """For each task, those that no scope has caught yet."""
    _again: dict[Task, Thrown] = attrs.field(factory=dict)
    """Those whose scope has just thrown another one into the same task: handled at that moment, or lost."""

    def before(self, task: Task) -> None:
        """``task`` is about to be woken."""
        error = trio_internals.thrown_into(task)
        if error is None or not isinstance(error, trio.Cancelled):
            return
        scope = trio_internals.caught_by(task)
        if scope is not None:
            thrown = self.thrown.setdefault(task, [])
            earlier = next((t for t in thrown if t.scope is scope), None)
            if earlier is not None:
                thrown.remove(earlier)
                self._again[task] = earlier
            thrown.append(Thrown(error, scope, trio_internals.errors_of_children(task)))

    def after(self, task: Task, *, finished: bool) -> None:
        """``task`` has been suspended again, or has ended."""
        thrown = self.thrown.get(task)
        if not thrown:
            return
        if (earlier := self._again.pop(task, None)) is not None and not _handled(thrown[-1].error, earlier.error):
            self.report(task, caught_at(earlier.error))
        if finished:
            failed = trio_internals.errors_of_children(task) > thrown[-1].siblings
            self.over(task, failed=failed)
        else:
            self.thrown[task] = [t for t in thrown if not trio_internals.has_exited(t.scope)]
            self._report_lost(task, [t for t in thrown if trio_internals.has_exited(t.scope)])

    def over(self, task: Task, *, failed: bool) -> None:
        """Nothing more can become of what was thrown into ``task``."""
        thrown = self.thrown.pop(task, [])
        if (earlier := self._again.pop(task, None)) is not None and not _handled(thrown[-1].error, earlier.error):
            self.report(task, caught_at(earlier.error))
        if not failed:
            self._report_lost(task, thrown)

    def _report_lost(self, task: Task, thrown: list[Thrown]) -> None:
        for lost in thrown:
            if not lost.scope.cancelled_caught:
                self.report(task, caught_at(lost.error))

    def forget(self) -> None:
        """Let go of the program."""
        self.thrown.clear()
        self._again.clear()


def _handled(error: BaseException, wanted: BaseException) -> bool:
    """Whether ``wanted`` was being handled when ``error`` was raised, by itself, in a group or as a cause."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error.__context__]
    while left:
        found = left.pop()
        if found is wanted:
            return True
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            left += [found.__context__, *(found.exceptions if isinstance(found, BaseExceptionGroup) else ())]
    return False

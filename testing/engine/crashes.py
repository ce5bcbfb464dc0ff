"""What a crash leaves behind: every state that something durable may be in when the process dies.

A `DurableLog` is the smallest honest disk: what was appended after the last `sync` may survive in part. Anything else
durable is copied as it is, or lists its own states in ``crash_states()``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import attrs

T = TypeVar("T")


class Crashed(BaseException):
    """Raised by every port after the crash: the process is dead, its clean-up has no effect on the world."""


@attrs.define
class DurableLog(Generic[T]):
    """A log on a simulated disk. Entries after the last `sync` may be lost in a crash, from the end."""

    entries: list[T] = attrs.field(factory=list)
    """What was appended, in order."""
    synced: int = 0
    """How many of them are safe."""

    def append(self, entry: T) -> None:
        """Write an entry, not yet safe."""
        self.entries.append(entry)

    def sync(self) -> None:
        """Make everything written so far safe."""
        self.synced = len(self.entries)

    def __iter__(self) -> Iterator[T]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def crash_states(self) -> list[DurableLog[T]]:
        """Every prefix that holds at least what was synced; all of it first."""
        return [
            DurableLog(copy.deepcopy(self.entries[:kept]), kept)
            for kept in range(len(self.entries), self.synced - 1, -1)
        ]


def states_of(durables: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Possible states of the world after a crash: one in which all was written, then each loss by itself."""
    each = {name: _states(thing) for name, thing in durables.items()}
    combined = [dict.fromkeys(each, 0)]
    combined += [{**combined[0], name: number} for name, states in each.items() for number in range(1, len(states))]
    return [{name: copy.deepcopy(each[name][number]) for name, number in picks.items()} for picks in combined]


def _states(thing: Any) -> list[Any]:
    listed = getattr(thing, "crash_states", None)
    return list(listed()) if listed is not None else [copy.deepcopy(thing)]

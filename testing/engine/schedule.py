"""Every decision of a run as a number, 0 being the dull one: who runs next, how late a port answers, whether it fails.

A `Choices` answers decisions from a source (all zero, a seed, a recorded list) and notes those that were not zero, so
that any run can be repeated from its deviations alone. Knows nothing of Trio but the order of a list.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Protocol

import attrs

_CALM = (0.0, 0.4, 0.8)
"""How likely a decision that is not about order stays 0: some runs are stormy, some nearly quiet."""


def derive(seed: int, *what: object) -> int:
    """A seed of its own for each purpose and number, so that no two campaigns or points share one."""
    digest = hashlib.blake2b(repr((seed, *what)).encode(), digest_size=5).digest()
    return int.from_bytes(digest, "big")


class Source(Protocol):
    """Where decisions come from."""

    def pick(self, number: int, options: int, keys: list[int] | None) -> int:
        """Decide: an index below ``options``. ``keys`` are the tasks to choose from, or None for other decisions."""


@attrs.frozen
class Plain:
    """Every decision is 0: tasks run in the order in which they were spawned, ports answer at once."""

    def pick(self, number: int, options: int, keys: list[int] | None) -> int:
        """Choose the first."""
        return 0


@attrs.frozen
class Recorded:
    """The deviations of an earlier run, then what another source says."""

    deviations: Mapping[int, int]
    then: Source = attrs.field(factory=lambda: Plain())
    _last: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_last", max(self.deviations))

    def pick(self, number: int, options: int, keys: list[int] | None) -> int:
        """Repeat what was chosen, as far as it fits."""
        if number > self._last:
            return self.then.pick(number, options, keys)
        # The program may have changed since the token was made: an option that is gone must not end the replay, and
        # whether it still shows the failure is seen at its end.
        return min(self.deviations.get(number, 0), options - 1)


@attrs.define
class Walk:
    """Uniformly random, up to decision ``limit``; decisions that are not about order stay 0 more often or less."""

    seed: int
    limit: int | None = None
    _random: random.Random = attrs.field(init=False)
    _calm: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._calm = self._random.choice(_CALM)

    def pick(self, number: int, options: int, keys: list[int] | None) -> int:
        """Throw the rng."""
        value = self._random.randrange(options)
        # Late answers and the like are rarer in some runs than in others: where all are late, few orders of tasks are
        # seen.
        if keys is None and self._random.random() < self._calm:
            value = 0
        return 0 if self.limit is not None and number >= self.limit else value


@attrs.define
class PartialOrder:
    """Partial-order sampling: the next event of each task has a random rank; the highest runs, and gets a new one.

    A task of low rank stays behind through many events of the others, which uniform choices hardly ever do.
    """

    seed: int
    limit: int | None = None
    _random: random.Random = attrs.field(init=False)
    _ranks: dict[int, float] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def pick(self, number: int, options: int, keys: list[int] | None) -> int:
        """Take the runnable task whose next event has the highest rank."""
        if self.limit is not None and number >= self.limit:
            return 0
        if keys is None:
            return self._random.randrange(options)
        for key in keys:
            if key not in self._ranks:
                self._ranks[key] = self._random.random()
        best = max(keys, key=self._ranks.__getitem__)
        # Its next event gets a rank of its own: with one for the whole task, this would be priorities without a change.
        del self._ranks[best]
        return keys.index(best)


@attrs.define
class Priorities:
    """Priority based (PCT): each task has a random rank; at ``depth`` - 1 random moments the first loses its rank.

    A bug that needs ``depth`` orderings is found with a probability of at least 1 / (tasks * steps ** (depth - 1)).
    """

    seed: int
    depth: int
    length: int
    limit: int | None = None
    _random: random.Random = attrs.field(init=False)
    _ranks: dict[int, float] = attrs.field(init=False, factory=dict)
    _changes: set[int] = attrs.field(init=False)
    _calm: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._calm = self._random.choice(_CALM)
        self._changes = {self._random.randrange(max(1, self.length)) for _ in range(self.depth - 1)}

    def pick(self, number: int, options: int, keys: list[int] | None) -> int:
        """Take the runnable task of the highest rank."""
        if keys is None:
            value = self._random.randrange(options)
            return value if self._random.random() >= self._calm and self._within(number) else 0
        for key in keys:
            if key not in self._ranks:
                self._ranks[key] = self._random.random()
        best = max(keys, key=self._ranks.__getitem__)
        if number in self._changes:
            # Below every task that kept its rank, and in random order among those that lost theirs.
            self._ranks[best] = -self._random.random()
            best = max(keys, key=self._ranks.__getitem__)
        return keys.index(best) if self._within(number) else 0

    def _within(self, number: int) -> bool:
        return self.limit is None or number < self.limit


@attrs.define
class Choices:
    """The decisions of one run: answered by ``source``, counted, and noted when not 0."""

    source: Source
    noting: bool = False
    """Whether the number of options of every decision is noted: what a search needs to know what else there was."""
    count: int = 0
    deviations: dict[int, int] = attrs.field(factory=dict)
    options: list[int] = attrs.field(factory=list)
    chosen: dict[int, tuple[int, int | None]] = attrs.field(factory=dict)
    """For each deviation: how many options there were, and the task that was chosen."""

    def choose(self, options: int, keys: list[int] | None = None) -> int:
        """Decide between ``options`` possibilities."""
        number = self.count
        self.count += 1
        if self.noting:
            self.options.append(options)
        if type(self.source) is Plain:
            return 0
        value = self.source.pick(number, options, keys)
        if value:
            self.deviations[number] = value
            self.chosen[number] = (options, None if keys is None else keys[value])
        return value

    def arrange(self, keys: list[int]) -> list[int]:
        """A permutation: the positions of ``keys`` in the order in which they shall come."""
        if type(self.source) is Plain:
            self.count += len(keys) - 1
            if self.noting:
                self.options.extend(range(len(keys), 1, -1))
            return list(range(len(keys)))
        # One decision for each place, not one for the whole permutation: shrinking can then put single tasks back.
        left = list(range(len(keys)))
        order = []
        while len(left) > 1:
            order.append(left.pop(self.choose(len(left), [keys[i] for i in left])))
        return order + left

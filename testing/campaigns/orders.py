"""Which order to try next: every one with few deviations from the plain order, or one at random.

An order is a list of decisions, each 0 in the plain order. `Frontier` goes through them by the number of deviations
(delay-bounded search), each number completely before the next, and knows when none is left. `Sampler` draws orders by a
strategy, and estimates how much it has not seen. Neither runs anything.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence

import attrs

from ..engine.attempt import Order
from ..engine.schedule import derive
from ..report.seen import Place, Seen

Deviations = tuple[tuple[int, int], ...]


@attrs.define(eq=False)
class Frontier:
    """The orders with at most ``bound`` deviations (None: with any number) that have not been tried yet."""

    bound: int | None = None
    _levels: list[deque[Iterator[Deviations]]] = attrs.field(factory=list)

    def expand(self, deviations: Deviations, options: Sequence[int]) -> None:
        """The order with ``deviations`` was tried, and had so many options at each decision: what else was there?"""
        if self.bound is not None and len(deviations) >= self.bound:
            return
        first = deviations[-1][0] + 1 if deviations else 0
        later = (
            (*deviations, (number, value))
            for number in range(first, len(options))
            for value in range(1, options[number])
        )
        level = len(deviations)
        while len(self._levels) <= level:
            self._levels.append(deque())
        self._levels[level].append(later)

    def next(self, most: int | None = None) -> Deviations | None:
        """An order not tried yet, with as few deviations as there are left; None: every one was.

        ``most``: None also where the next one would have more deviations than that.
        """
        for level in self._levels[:most]:
            while level:
                found = next(level[0], None)
                if found is not None:
                    return found
                level.popleft()
        return None


@attrs.define(eq=False)
class Sampler:
    """Orders at random, by several strategies in turn."""

    strategies: Sequence[str]
    seed: int
    length: int
    """Decisions of a plain run."""
    _number: int = 0
    _seen: Counter[bytes] = attrs.field(factory=Counter)
    _places: set[Place] = attrs.field(factory=set)
    _seeds: list[Deviations] = attrs.field(factory=list)

    def next(self) -> Order:
        """The next order."""
        strategy = self.strategies[self._number % len(self.strategies)]
        seed = derive(self.seed, "order", self._number)
        self._number += 1
        if strategy != "guided":
            return Order(strategy, seed, length=self.length)
        if not self._seeds:
            return Order("walk", seed, length=self.length)
        rng = random.Random(seed)
        chosen = rng.choice(self._seeds)
        return Order("walk", seed, length=self.length, deviations=chosen[: rng.randint(1, len(chosen))])

    def take(self, seen: Seen) -> None:
        """One was run. If it led a task to a place right after a task never seen before it there, it is a seed."""
        self._seen[seen.trace] += 1
        if not self._places.issuperset(seen.places):
            self._places.update(seen.places)
            if seen.deviations:
                self._seeds.append(seen.deviations)

    @property
    def unseen(self) -> float | None:
        """Probability that the next order is new: the share of those seen exactly once (Good and Turing)."""
        drawn = sum(self._seen.values())
        return sum(count == 1 for count in self._seen.values()) / drawn if drawn else None

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

from ..engine.attempt import Order, Run
from ..engine.schedule import derive

Deviations = tuple[tuple[int, int], ...]
_LONGEST_SEED = 12
"""Deviations of a seed that are kept: as many as fit into a token."""


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

    def next(self) -> Deviations | None:
        """An order not tried yet, with as few deviations as there are left; None: every one was."""
        for level in self._levels:
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
    _seen: Counter[object] = attrs.field(factory=Counter)
    _places: set[tuple[str, int, str]] = attrs.field(factory=set)
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

    def take(self, run: Run, trace: object) -> None:
        """``run`` was made. One that led a task to a place right after a task never seen before it there is a seed."""
        self._seen[trace] += 1
        names = [task.name for task in run.tasks]
        places = {
            (names[step.task], id(step.location), names[before.task])
            for before, step in zip(run.steps, run.steps[1:], strict=False)
        }
        if not places <= self._places:
            self._places |= places
            kept = tuple(run.deviations.items())[:_LONGEST_SEED]
            if kept:
                self._seeds.append(kept)

    @property
    def unseen(self) -> float | None:
        """Probability that the next order is new: the share of those seen exactly once (Good and Turing)."""
        drawn = sum(self._seen.values())
        return sum(count == 1 for count in self._seen.values()) / drawn if drawn else None

"""When to stop trying what keeps failing, and when to try again (semantics 9). Counts; knows no clock.

if breaker.allows():
    breaker.succeeded() if await summarise() else breaker.failed()
"""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class CircuitBreaker:
    """After ``limit`` failures in a row the next ``pause`` occasions are skipped, then one is tried again.

    If that one fails too, the pause doubles, up to ``longest_pause``; a success ends it. So there is neither a loop of
    failures nor a latch that stays open.
    """

    limit: int = 3
    pause: int = 4
    longest_pause: int = 64
    _failures: int = attrs.field(default=0, init=False)
    _to_skip: int = attrs.field(default=0, init=False)

    def allows(self) -> bool:
        """Whether to try on this occasion. Ask once per occasion: the asking is what is counted."""
        if self._to_skip:
            self._to_skip -= 1
            return False
        return True

    def failed(self) -> None:
        """The occasion that was allowed failed."""
        self._failures += 1
        if self._failures >= self.limit:
            # Bounded before shifting: after years of failures the shift itself would be the problem.
            doublings = min(self._failures - self.limit, self.longest_pause.bit_length())
            self._to_skip = min(self.pause << doublings, self.longest_pause)

    def succeeded(self) -> None:
        """The occasion that was allowed succeeded."""
        self._failures = self._to_skip = 0

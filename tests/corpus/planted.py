"""What a planted bug is: a small program that passes an ordinary run, how its bug is looked for, and its mended twin.

    @planted(by_sweep(cancel="job"), "deadlock", "yy1-a5.job", at="await trio.sleep(1)")
    async def lock_leaked(sim): ...

    @mended(lock_leaked)
    async def lock_given_back(sim): ...

The first line of each docstring says what is wrong and what mends it. Looks at nothing by itself: the tests and the
table do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
from youyou.testing import Failure, Report, Simulation, explore, sweep
from youyou.testing.report.tokens import bare

Scenario = Callable[[Simulation], Awaitable[None]]


@attrs.frozen
class Look:
    """One way to look for bugs: the kit's function and its options."""

    engine: Callable[..., Report]
    options: dict[str, Any]

    def __call__(self, scenario: Scenario, **more: Any) -> Report:
        """Look at ``scenario``."""
        return self.engine(scenario, **self.options, **more)

    def __str__(self) -> str:
        words = [f"{name}={_word(value)}" for name, value in self.options.items()]
        return f"{self.engine.__name__}({', '.join(words)})"


def _word(value: object) -> str:
    name = getattr(value, "__name__", None)
    return repr(value) if name is None else "..." if name == "<lambda>" else str(name)


def by_sweep(**options: Any) -> Look:
    """Look with `sweep`."""
    return Look(sweep, options)


def by_exploring(**options: Any) -> Look:
    """Look with `explore`."""
    return Look(explore, options)


@attrs.define(eq=False)
class Planted:
    """One entry of the corpus."""

    bug: Scenario
    look: Look
    finds: str
    """The kind of failure that is reported."""
    token: str
    """Replays the smallest case: a token of the first format, without the fingerprint of the program."""
    at: str
    """The source line at which the injection arrives; empty where none arrives."""
    twin: Scenario | None = None

    @property
    def name(self) -> str:
        """The bug in two or three words."""
        return self.bug.__name__.replace("_", " ")

    def __str__(self) -> str:
        return self.bug.__name__


@attrs.frozen
class Finding:
    """What came of looking at one entry."""

    entry: Planted
    bug: Report
    twin: Report

    @property
    def token(self) -> str:
        """Of the smallest case, in the first format."""
        return "yy1" + bare(self.smallest.token).removeprefix("yy2")

    @property
    def smallest(self) -> Failure:
        """The smallest case of the bug."""
        return self.bug.failures[0]


CORPUS: dict[str, Planted] = {}


def planted(look: Look, finds: str, token: str, *, at: str = "") -> Callable[[Scenario], Scenario]:
    """Enter a program with a bug."""

    def enter(bug: Scenario) -> Scenario:
        CORPUS[bug.__name__] = Planted(bug, look, finds, token, at)
        return bug

    return enter


def mended(bug: Scenario) -> Callable[[Scenario], Scenario]:
    """Enter the same program without the bug."""

    def enter(twin: Scenario) -> Scenario:
        CORPUS[bug.__name__].twin = twin
        return twin

    return enter


def look_at(entry: Planted) -> Finding:
    """Look for the bug until it is found, and everywhere in its twin."""
    assert entry.twin is not None, f"{entry.name} has no mended twin"
    return Finding(entry, entry.look(entry.bug, stop_at_first=True), entry.look(entry.twin))

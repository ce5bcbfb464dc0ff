"""How much to try, by one word: while one writes, in CI, at night.

settings = profile("ci")
examine(scenario, schedules=settings.schedules, budget=settings.budget)
"""

from __future__ import annotations

import os

import attrs


@attrs.frozen
class Settings:
    """How much is tried; each option of a command stands above it."""

    schedules: int | None
    """Orders to explore; None: until nothing new comes."""
    budget: float
    """Seconds of real time for each report."""
    test_budget: float
    """Seconds of real time for the sweep of one test of a suite."""
    workers: int | None
    """Processes that do the runs; None: the one that asks."""


PROFILES = {
    "quick": Settings(50, 10.0, 1.0, None),
    "ci": Settings(1_000, 120.0, 5.0, None),
    "nightly": Settings(None, 3_600.0, 60.0, os.cpu_count() or 1),
}
"""By name."""


def profile(name: str) -> Settings:
    """The settings of that name.

    Raises:
        ValueError: there are none.
    """
    if name not in PROFILES:
        raise ValueError(f"there is no profile {name!r}; choose from {', '.join(PROFILES)}")
    return PROFILES[name]


def seconds_of(text: str) -> float:
    """``90``, ``90s``, ``15m`` or ``1h`` in seconds.

    Raises:
        ValueError: it is something else.
    """
    units = {"s": 1, "m": 60, "h": 3_600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        seconds = float(number) * units[unit]
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{text!r} is not a time; write seconds, or 90s, 15m, 1h")
    return seconds

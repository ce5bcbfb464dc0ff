"""Find a scenario by its name and try everything on it that needs no further words: for the command line.

reports = examine(load_scenario("shop.scenarios:checkout"), schedules=500, progress=print)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from ..engine.faults import Mode
from ..engine.simulation import Scenario
from ..report.report import Report
from .campaign import Progress
from .exploration import explore
from .replays import replay
from .sweeps import sweep

_FAULTS: tuple[Mode, ...] = ("raise_before", "raise_after", "cut", "dies")


def load_scenario(name: str) -> Scenario:
    """The scenario that ``module:function`` or ``path/to/file.py:function`` names.

    Raises:
        ValueError: there is no such module or function, in words for the person who typed it.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ValueError(f"{name!r} is not 'module:function', for example 'shop.scenarios:checkout'")
    try:
        found: Callable[..., object] = getattr(_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot find {name!r}: {error}") from error
    if not callable(found):
        raise ValueError(f"{name!r} is not an async function that takes the simulation")
    return found  # type: ignore[return-value]  # what it returns shows only when it is called


def examine(
    scenario: Scenario,
    *,
    schedules: int = 200,
    cancel: str | None = "root",
    seed: int = 0,
    token: str | None = None,
    progress: Progress | None = None,
) -> tuple[Report, ...]:
    """A cancel at every step, a fault at every port call, and many orders of tasks; or only ``token`` again."""
    if token is not None:
        return (replay(scenario, token),)
    swept = sweep(scenario, cancel=cancel, faults=_FAULTS, seed=seed, progress=progress)
    if swept.baseline.violations:
        return (swept,)
    return swept, explore(scenario, schedules=schedules, seed=seed, progress=progress)


def _module(name: str) -> object:
    if name.endswith(".py"):
        path = Path(name).resolve()
        sys.path.insert(0, str(path.parent))
        name = path.stem
    elif "" not in sys.path:
        sys.path.insert(0, "")
    return importlib.import_module(name)

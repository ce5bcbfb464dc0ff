"""Find a scenario by its name and try everything on it that needs no further words: for the command line.

reports = examine(load_scenario("shop.scenarios:checkout"), schedules=500, progress=print)
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import attrs

from ..engine.faults import Mode
from ..engine.simulation import Scenario
from ..report.report import Report
from .campaign import Progress
from .exploration import explore
from .replays import replay
from .sweeps import sweep
from .targets import SWEPT, as_scenario

_FAULTS: tuple[Mode, ...] = ("raise_before", "raise_after", "cut", "dies", "slow", "cancel_after")


def load_scenario(name: str) -> Scenario:
    """The scenario that ``module:function``, ``path/to/file.py:function`` or ``...:Class.method`` names.

    Raises:
        ValueError: there is no such module or function, in words for the person who typed it.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ValueError(f"{name!r} is not 'module:function', for example 'shop.scenarios:checkout'")
    try:
        found: Any = _module(module)
        for part in function.split("."):
            # A method of a test class wants an instance, which pytest would make without arguments as well.
            found = getattr(found() if isinstance(found, type) else found, part)
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"cannot find {name!r}: {error}") from error
    try:
        scenario = as_scenario(found)
    except TypeError as error:
        raise ValueError(f"{name!r}: {error}") from error
    _check_parameter(name, getattr(found, SWEPT, found))
    return scenario


def _check_parameter(name: str, found: Any) -> None:
    """A test's only parameter may be a fixture, which nobody fills here."""
    for parameter in list(inspect.signature(found).parameters.values())[:1]:
        annotated = "Simulation" in str(parameter.annotation)
        if parameter.name not in _SIMULATION and not annotated:
            raise ValueError(
                f"{name!r}: a scenario is 'async def name(sim)'; this takes {parameter.name!r}, and no fixtures are "
                "made here: write a scenario that makes what it needs"
            )


_SIMULATION = ("sim", "simulation", "s", "_")


def examine(
    scenario: Scenario,
    *,
    schedules: int = 200,
    cancel: str | None = "root",
    seed: int = 0,
    token: str | None = None,
    budget: float | None = None,
    progress: Progress | None = None,
) -> tuple[Report, ...]:
    """Everything that needs no further words: cancels, faults, Ctrl-C, orders, lateness; or only ``token`` again.

    The undisturbed run tells which scopes and actions the scenario names, and whether it has ports. Each report says in
    its ``mode`` and ``note`` what was tried. What a crash leaves behind is not tried: only the scenario's author knows
    what recovers.

    Args:
        schedules: how many orders to explore.
        cancel: what is cancelled at every step, beside all that the scenario names; None: nothing at all.
        budget: seconds of real time for each of the reports.
    """
    if token is not None:
        return (replay(scenario, token),)
    more: dict[str, Any] = {"seed": seed, "budget": budget, "progress": progress}
    first = sweep(scenario, cancel=cancel, faults=_FAULTS, **more)
    if first.note:
        # The undisturbed run fails, and so would all others.
        return (first,)
    named = [] if cancel is None else [name for name in ("ctrl-c", *first.baseline.targets) if name != cancel]
    swept = [_noted(sweep(scenario, cancel=name, **more), f"cancel={name!r}") for name in named]
    explored = [explore(scenario, schedules=schedules, **more)]
    if first.baseline.calls:
        late = explore(scenario, schedules=schedules, latency=True, **more)
        explored.append(_noted(late, "with late ports"))
    return (first, *swept, *explored)


def _noted(report: Report, words: str) -> Report:
    return attrs.evolve(report, note="; ".join(filter(None, [words, report.note])))


def _module(name: str) -> object:
    if name.endswith(".py"):
        path = Path(name).resolve()
        sys.path.insert(0, str(path.parent))
        name = path.stem
    elif "" not in sys.path:
        sys.path.insert(0, "")
    return importlib.import_module(name)

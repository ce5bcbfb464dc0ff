"""Try everything on a scenario that needs no further words: for the command line.

reports = examine(load_scenario("shop.scenarios:checkout"), schedules=500, progress=print)
"""

from __future__ import annotations

from typing import Any

import attrs

from ..engine.faults import Mode
from ..engine.simulation import Scenario
from ..report.report import Report
from .campaign import Progress
from .exploration import explore
from .replays import replay
from .sweeps import sweep
from .teamwork import Workers

_FAULTS: tuple[Mode, ...] = ("raise_before", "raise_after", "cut", "dies", "slow", "cancel_after")


def examine(
    scenario: Scenario | str,
    *,
    schedules: int | None = 200,
    cancel: str | None = "root",
    seed: int = 0,
    token: str | None = None,
    budget: float | None = None,
    until_quiet: bool = False,
    workers: Workers = None,
    progress: Progress | None = None,
) -> tuple[Report, ...]:
    """Everything that needs no further words: cancels, faults, Ctrl-C, orders, lateness; or only ``token`` again.

    The undisturbed run tells which scopes and actions the scenario names, and whether it has ports. Each report says in
    its ``mode`` and ``note`` what was tried. What a crash leaves behind is not tried: only the scenario's author knows
    what recovers.

    Args:
        schedules: how many orders to explore; None: 200, or as many as there are with ``until_quiet``.
        cancel: what is cancelled at every step, beside all that the scenario names; None: nothing at all.
        budget: seconds of real time for each of the reports.
        until_quiet: explore until nothing new comes.
        workers: how many processes do the runs, or an `Executor`, as for `sweep` and `explore`.
    """
    if token is not None:
        return (replay(scenario, token),)
    more: dict[str, Any] = {"seed": seed, "budget": budget, "progress": progress, "workers": workers}
    orders: dict[str, Any] = {**more, "schedules": schedules, "until_quiet": until_quiet}
    first = sweep(scenario, cancel=cancel, faults=_FAULTS, **more)
    if first.note:
        # The undisturbed run fails, and so would all others.
        return (first,)
    named = [] if cancel is None else [name for name in ("ctrl-c", *first.baseline.targets) if name != cancel]
    swept = [_noted(sweep(scenario, cancel=name, **more), f"cancel={name!r}") for name in named]
    explored = [explore(scenario, **orders)]
    if first.baseline.calls:
        late = explore(scenario, latency=True, **orders)
        explored.append(_noted(late, "with late ports"))
    return (first, *swept, *explored)


def _noted(report: Report, words: str) -> Report:
    return attrs.evolve(report, note="; ".join(filter(None, [words, report.note])))

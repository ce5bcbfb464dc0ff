"""Run one attempt again, in full detail.

report = replay(scenario, "yy1-a17.turn")
print(report.trace)
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ..engine.attempt import Limits
from ..engine.faults import Fault, PortCall
from ..engine.running import outside_trio
from ..engine.simulation import Scenario
from ..process.leaks import LeakWatch
from ..report.report import Report
from ..report.tokens import decode
from .campaign import Campaign
from .sweeps import Target


def replay(
    scenario: Scenario,
    token: str,
    *,
    cancel: Target = None,
    error: Callable[[Fault, PortCall], BaseException] | None = None,
    crash: Scenario | None = None,
    allow: tuple[type[BaseException], ...] = (),
    max_steps: int = 20_000,
    max_seconds: float = 7 * 86_400.0,
) -> Report:
    """Run the attempt that ``token`` names, once, recording everything; ``report.baseline`` is that run.

    Functions do not fit into a token: give ``cancel``, ``error`` and ``crash`` again if the sweep had them (semantics
    15).

    Raises:
        BadToken: the token cannot be read.
        ValueError: the token names something that was not given.
    """
    attempt = decode(token)
    target = cancel if callable(cancel) else None
    if target is None and any(i.what == "action" for i in attempt.injections):
        raise ValueError("this token calls the function that the sweep had as cancel=; give it to replay() as well")
    if attempt.chaos is not None:
        max_seconds = min(max_seconds, attempt.chaos.heal + attempt.chaos.finish)
    limits = Limits(max_steps, max_seconds, allow, target, error)

    def work() -> Report:
        with LeakWatch() as watch:
            campaign = Campaign(scenario, limits, watch, "replay", recover=crash)
            run = campaign.record(attempt)
            campaign.runs = 1
            campaign.take(run)
            report = campaign.report(run)
            return attrs.evolve(report, runs=1, recording=run.recording)

    return outside_trio(work)

"""Run one attempt again, in full detail.

report = replay(scenario, "yy1-a17.turn")
print(report.trace)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from ..engine.attempt import Limits, Run, Severity
from ..engine.faults import Fault, PortCall
from ..engine.running import outside_trio, prepared
from ..engine.simulation import Scenario
from ..report.report import Report
from ..report.tokens import decode, fingerprint, mark_of
from .campaign import Campaign
from .sweeps import Target
from .targets import as_scenario


def replay(
    scenario: Scenario | str,
    token: str,
    *,
    cancel: Target = None,
    error: Callable[[Fault, PortCall], BaseException] | None = None,
    crash: Scenario | None = None,
    allow: tuple[type[BaseException], ...] = (),
    allow_leaks: tuple[str, ...] = (),
    swallowed: Severity = "note",
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
    __tracebackhide__ = True
    chosen = as_scenario(scenario)
    attempt = decode(token)
    target = cancel if callable(cancel) else None
    if target is None and any(i.what == "action" for i in attempt.injections):
        raise ValueError("this token calls the function that the sweep had as cancel=; give it to replay() as well")
    if attempt.chaos is not None:
        max_seconds = min(max_seconds, attempt.chaos.heal + attempt.chaos.finish)
    limits = Limits(max_steps, max_seconds, allow, target, error, allow_leaks, swallowed)

    def work() -> Report:
        with prepared() as watch:
            campaign = Campaign(chosen, limits, watch, "replay", recover=crash)
            run = campaign.base = campaign.record(attempt)
            campaign.runs = 1
            campaign.take(run)
            campaign.missed = tuple(_not_carried_out(run, token))
            if mark_of(token) is None:
                campaign.note = "a token of the first format: it does not tell whether the program is still the same"
            return attrs.evolve(campaign.report(), runs=1, recording=run.recording)

    return outside_trio(work)


def _not_carried_out(run: Run, token: str) -> Iterator[str]:
    """What the token asks for and this run had no place for, in words."""
    first = run.crashed or run
    for number in sorted(first.not_reached):
        injection = first.attempt.injections[number]
        yield f"{injection} was not reached: the run has {len(first.steps)} steps and {len(first.calls)} port calls"
    for number, value in first.attempt.order.deviations:
        if number >= first.decisions:
            yield f"decision {number} was never asked for: the run has {first.decisions} decisions"
        elif first.deviations.get(number) != value:
            yield f"decision {number} has no choice {value} any more"
    wanted = mark_of(token)
    if wanted is not None and wanted != fingerprint(run):
        yield "the program takes another course than the one this token was made for"

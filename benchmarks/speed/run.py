"""All programs and workloads, interleaved: in each round each program runs each workload once, in its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ..environments import PACKAGES, Environment, ensure
from ..processes import Core, alone
from ..results import Results

OURS = ("youyou", "youyou new session")
OTHERS = ("strands", "autogen", "pydantic_ai", "openai_agents", "langgraph")
OURS_NEED = ("youyou", "trio", "attrs", "apsw")
FLOORS = ("limit", "bare 0", "bare 64", "generator")
WORKLOADS: dict[str, Sequence[str]] = {
    "W1": (*OURS, *FLOORS, *OTHERS),
    "W2": (*OURS, *FLOORS, *OTHERS),
}
"""Workload: the programs that run it."""
TRIES = 3
"""How often a measurement that others disturbed is taken again in its round."""


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    core: Core
    rounds: int
    seconds: float
    """Of each timed batch of W1, W2 and W7."""
    foreign: float
    """The share of the core that others may take of a measurement that counts."""


def run(workloads: Sequence[str], programs: Sequence[str], settings: Settings, results: Results) -> None:
    """Measure into ``results``. Says on standard error what it does."""
    environments: dict[str, Environment] = {}
    for program in sorted({one for workload in workloads for one in WORKLOADS[workload]} & set(programs)):
        try:
            environments[program] = ensure(program)
        except subprocess.CalledProcessError as error:
            for workload in workloads:
                results.failed.setdefault(workload, {})[program] = f"not installed: {error}"
    for number in range(settings.rounds):
        for workload in workloads:
            for program in WORKLOADS[workload]:
                if program in environments:
                    measure(workload, program, environments[program], settings, results, number)
        print(f"round {number + 1} of {settings.rounds}", file=sys.stderr, flush=True)
    results.about["versions"] = {
        name: found.versions[name]
        for program, found in environments.items()
        for name in (one.split("==")[0] for one in PACKAGES.get(program, OURS_NEED))
        if name in found.versions
    }


def measure(
    workload: str, program: str, environment: Environment, settings: Settings, results: Results, number: int
) -> None:
    """One round of one program."""
    command = [environment.python, "-m", "benchmarks.speed.worker", program, workload, str(settings.seconds)]
    for _ in range(TRIES):
        ran = alone(command, settings.core)
        if ran.printed is None:
            results.failed.setdefault(workload, {})[program] = ran.error
            return
        if ran.foreign <= settings.foreign:
            results.add(workload, program, ran.printed | {"round": number, "foreign": ran.foreign})
            return
    dropped = results.dropped.setdefault(workload, {})
    dropped[program] = dropped.get(program, 0) + 1

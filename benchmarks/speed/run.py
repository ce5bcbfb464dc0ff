"""All programs and workloads, interleaved: in each round each program runs each workload once, in its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..environments import Environment, ensure, tell
from ..processes import Core, alone
from ..results import Results

OURS = ("youyou", "youyou new session")
OTHERS = ("strands", "autogen", "pydantic_ai", "openai_agents", "langgraph")
FLOORS = ("limit", "bare 0", "bare 64", "generator")
LETTERS = "aé中"
ALL, ALONE, FLOOR = ("youyou", "bare 64", *OTHERS), ("youyou",), ("youyou", "bare 64")
WORKLOADS: dict[str, Sequence[str]] = {
    "W1": (*OURS, *FLOORS, *OTHERS),
    "W2": (*OURS, *FLOORS, *OTHERS),
    "W3:300": ALL,
    "W3:3000": FLOOR,
    "W4:200": ALL,
    "W4:1000": FLOOR,
    "W4:5000": FLOOR,
    "W4 idle:1000": FLOOR,
    "W5": ALL,
    "W5 import": ALONE,
    "W6:100": ALL,
    "W6 tools:30": ALONE,
    "W6 passes:30": ALONE,
    "W7:NORMAL": ALONE,
    "W7:FULL": ALONE,
    **{f"W7 load:{way}:{agents}": ALONE for way in ("NORMAL", "FULL") for agents in (1, 16, 64)},
    **{f"W7 rows:{way}:{batch}": ("bare apsw",) for way in ("NORMAL", "FULL") for batch in (1, 16, 64)},
    **{f"calls:{count}": ALONE for count in (1, 2, 8, 32, 64)},
    **{f"plugins:{count}": ALONE for count in (0, 1, 4, 16)},
    **{f"tools:{count}": ALONE for count in (10, 100, 1000)},
    **{f"text:{count}:{letter}": ALONE for letter in "aé中" for count in (1, 1000, 100000)},
    **{f"compaction:{messages}": ALONE for messages in (200, 1600, 8000)},
    **{f"resume:{events}": ALONE for events in (1000, 10000, 100000)},
    "pieces": ALONE,
}
"""Workload, and what it is measured at: the programs that run it."""
REPEATED = ("W1", "W2")
"""What is measured in every round, however few rounds the rest has."""
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
    rest: int
    """Rounds of everything but W1 and W2."""


def run(workloads: Sequence[str], programs: Sequence[str], settings: Settings, results: Results, file: Path) -> None:
    """Measure into ``results``, and save them after each round. Says on standard error what it does."""
    environments: dict[str, Environment] = {}
    for program in sorted({one for workload in workloads for one in WORKLOADS[workload]} & set(programs)):
        try:
            environments[program] = ensure(program)
        except subprocess.CalledProcessError as error:
            for workload in workloads:
                results.failed.setdefault(workload, {})[program] = f"not installed: {error}"
    tell(environments, results)
    for number in range(settings.rounds):
        for workload in workloads:
            if number >= settings.rest and workload not in REPEATED:
                continue
            for program in WORKLOADS[workload]:
                if program in environments:
                    measure(workload, program, environments[program], settings, results, number)
        results.save(file)
        print(f"round {number + 1} of {settings.rounds}", file=sys.stderr, flush=True)


def chosen(names: Sequence[str]) -> list[str]:
    """The workloads with these names: `W3` stands for all its sizes, `W7` for all that begins with it.

    Raises:
        ValueError: a name stands for nothing.
    """
    found: list[str] = []
    for name in names:
        some = [one for one in WORKLOADS if one == name or one.startswith((f"{name}:", f"{name} "))]
        if not some:
            raise ValueError(f"no workload {name}; there are {', '.join(WORKLOADS)}")
        found += [one for one in some if one not in found]
    return found


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
            whole = {"whole_s": ran.seconds} if workload == "W5" else {}
            results.add(workload, program, ran.printed | whole | {"round": number, "foreign": ran.foreign})
            return
    dropped = results.dropped.setdefault(workload, {})
    dropped[program] = dropped.get(program, 0) + 1

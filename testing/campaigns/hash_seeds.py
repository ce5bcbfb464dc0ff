"""Does a scenario take the same course in another process? The order of a set of strings differs there.

    problem = hash_seed_divergence("shop/scenarios.py:checkout")

Two runs in one process cannot show it: they share the seed of its hashes.
"""

from __future__ import annotations

import os
import subprocess
import sys

from ..engine.attempt import Attempt, Limits
from ..engine.running import prepared, run_attempt
from .targets import load_scenario

_PROGRAM = "import sys; from youyou.testing.campaigns.hash_seeds import main; main(sys.argv[1])"
_TIMEOUT = 300.0


def hash_seed_divergence(scenario: str, *, seeds: tuple[int, int] = (1, 2)) -> str | None:
    """Where the undisturbed run differs between two processes with these hash seeds, in words; None if it does not.

    Blocks until both processes have ended (semantics 15).

    Args:
        scenario: as for `load_scenario`; a function cannot be sent to another process.

    Raises:
        ValueError: there is no such scenario, or it cannot be run there.
    """
    load_scenario(scenario)
    first, second = (_course(scenario, seed) for seed in seeds)
    for number, (a, b) in enumerate(zip(first, second, strict=False), 1):
        if a != b:
            return f"under hash seeds {seeds[0]} and {seeds[1]} step {number} differs: {a}, then {b}; a set of strings?"
    if len(first) != len(second):
        return f"under hash seeds {seeds[0]} and {seeds[1]} it takes {len(first)} and {len(second)} steps"
    return None


def _course(scenario: str, seed: int) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", _PROGRAM, scenario]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT)
    if done.returncode:
        raise ValueError(f"{scenario!r} cannot be run in another process: {done.stderr.strip()[-300:]}")
    return done.stdout.splitlines()


def main(scenario: str) -> None:
    """Print the course of the undisturbed run: a line for each step, with the arguments of each task."""
    with prepared() as watch:
        run = run_attempt(load_scenario(scenario), Attempt(), Limits(), watch)
    for step in run.steps:
        task = run.tasks[step.task]
        print(f"{task.label}({task.arguments}) at {step.location} at {step.time:g} s")

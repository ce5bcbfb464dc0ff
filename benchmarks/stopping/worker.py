"""One runtime, stopped everywhere; prints JSON.

    python -m benchmarks.stopping.worker RUNTIME [--every N] [SCENARIO ...]

    python -m benchmarks.stopping.worker RUNTIME --one SCENARIO WAY AT

repeats one stop and prints what became of it, down to the next request: for anyone who wants to look into a figure that
is not zero. Runs in the environment of the runtime.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import sys
import warnings
from contextlib import redirect_stdout
from typing import Any

from . import kill
from .judge import summary
from .world import SCENARIOS


def ways(runtime: Any, scenario: str) -> list[str]:
    """The runtime's own, the first of them also twice and by the reader; the cancel of the task that reads; a kill."""
    more = [f"{runtime.WAYS[0]}, {how}" for how in ("twice", "by the reader")]
    killed = ["kill"] if runtime.DURABLE and scenario in kill.SCENARIOS else []
    return [*runtime.WAYS, *more, "task", *killed]


def sweep(runtime: Any, scenario: str, way: str, every: int) -> dict[str, Any]:
    """All stops of one scenario and way."""
    if way == "kill":
        steps = runtime.killed(runtime, scenario, 0)["steps"]
        rows = [runtime.killed(runtime, scenario, at) for at in range(1, steps + 1, every * kill.EVERY)]
        return {"runtime": runtime.NAME, "scenario": scenario, "way": way, **summary(rows)}
    window = 0.5 if scenario == "hang" else 60
    counted = runtime.run(runtime, scenario, way, 0, window)
    by_reader = way.endswith("by the reader")
    points = range(1, counted["events" if by_reader else "steps"] + 1, 1 if by_reader else every)
    rows = [runtime.run(runtime, scenario, way, -at if by_reader else at, window) for at in points]
    return {"runtime": runtime.NAME, "scenario": scenario, "way": way, **summary(rows)}


def load(name: str) -> Any:
    """The program of a runtime, with `run` of its loop."""
    runtime = importlib.import_module(f".with_{name}", __package__)
    if not hasattr(runtime, "run"):
        from . import asyncio_sweep

        runtime.run, runtime.killed = asyncio_sweep.run, asyncio_sweep.killed
    return runtime


def main() -> None:
    """Sweep, or repeat one stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runtime")
    parser.add_argument("scenarios", nargs="*", metavar="scenario")
    parser.add_argument("--every", type=int, default=1, help="stop at each n-th step only")
    parser.add_argument("--one", nargs=3, metavar=("SCENARIO", "WAY", "AT"))
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing):
        runtime = load(arguments.runtime)
        if arguments.one:
            scenario, way, at = arguments.one
            found: Any = (
                runtime.killed(runtime, scenario, int(at))
                if way == "kill"
                else runtime.run(runtime, scenario, way, int(at), 60)
            )
        else:
            found = []
            for scenario in arguments.scenarios or SCENARIOS:
                if why := runtime.WITHOUT.get(scenario):
                    found.append({"runtime": runtime.NAME, "scenario": scenario, "without": why})
                    continue
                found += [sweep(runtime, scenario, way, arguments.every) for way in ways(runtime, scenario)]
    json.dump(found, sys.stdout, indent=1 if arguments.one else None, ensure_ascii=False, default=str)
    print(flush=True)
    os._exit(0)  # not every runtime lets its threads end


if __name__ == "__main__":
    main()

"""One measurement in a process of its own: `python -m benchmarks.speed.worker PROGRAM WORKLOAD [SECONDS]`; prints JSON.

Runs in the environment of the runtime that it measures, which holds nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from contextlib import redirect_stdout
from typing import Any


def program(name: str) -> Any:
    """The module, or the floor, that goes by this name."""
    match name:
        case "generator" | "bare 0" | "bare 64":
            from .bare_trio import Bare

            return Bare({"generator": None, "bare 0": 0, "bare 64": 64}[name])
        case "limit":
            return importlib.import_module(".limit", __package__)
        case "youyou new session":
            from . import with_youyou

            return with_youyou.Anew
        case _:
            return importlib.import_module(f".with_{name}", __package__)


def figures(name: str, workload: str, seconds: float) -> dict[str, float]:
    """Of the workloads that all have, or of those that only one has."""
    from . import driver

    kind, _, size = workload.partition(":")
    if kind in driver.COMMON:
        return driver.measure(program(name), workload, seconds)
    if name == "bare apsw":
        from .ours import bare_apsw

        synchronous, _, batch = size.partition(":")  # of "W7 rows"
        return bare_apsw(synchronous, int(batch), seconds)
    if name.startswith("bare"):
        import trio

        from .bare_trio import idle

        return {"kib": trio.run(idle, int(size))}
    from . import ours

    return ours.measure(workload, seconds)


def waited(workload: str) -> dict[str, float]:
    """Seconds that this process was ready to run and had no core; nothing for one whose work is in its children."""
    if workload == "W5 import":
        return {}
    with open("/proc/self/schedstat") as line:
        return {"waited_s": int(line.read().split()[1]) / 1e9}


def main(name: str, workload: str, seconds: float = 0.3) -> None:
    """Measure and print. What the program itself prints goes nowhere."""
    logging.disable(logging.CRITICAL)
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing):
        found = figures(name, workload, seconds)
    print(json.dumps(found | waited(workload)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(float, sys.argv[3:]))

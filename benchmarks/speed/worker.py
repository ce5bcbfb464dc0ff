"""One measurement in a process of its own: `python -m benchmarks.speed.worker PROGRAM WORKLOAD [SECONDS]`; prints JSON.

Runs in the environment of the runtime that it measures, which holds nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
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


def main(name: str, workload: str, seconds: float = 0.3) -> None:
    """Measure and print. What the program itself prints goes nowhere."""
    from .driver import measure

    logging.disable(logging.CRITICAL)
    out, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115  # to the end of the process
    figures = measure(program(name), workload, seconds)
    print(json.dumps(figures), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(float, sys.argv[3:]))

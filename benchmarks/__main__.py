"""Measure youyou beside other runtimes and beside floors.

    python -m benchmarks                        everything, five rounds
    python -m benchmarks --quick                W1 and W2 in about a minute
    python -m benchmarks --only W1,W2           some workloads
    python -m benchmarks --programs youyou,limit    some programs

Tables go to standard output, and with the JSON and the charts into the folder that `--out` names. Linux only: it pins
processes to a core, at real-time priority where that is permitted.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .processes import ROOT, Core
from .results import Results
from .speed.run import WORKLOADS, Settings, run
from .tables import all_tables


def about(arguments: argparse.Namespace) -> dict[str, Any]:
    """Where and how a run was made."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    with open("/proc/cpuinfo") as lines:
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": model,
        "cores": os.cpu_count(),
        "rounds": arguments.rounds,
        "core": arguments.core,
        "foreign load": arguments.foreign_load,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    programs = sorted({program for names in WORKLOADS.values() for program in names})
    parser.add_argument("--quick", action="store_true", help="two short rounds of W1 and W2")
    parser.add_argument("--only", help=f"workloads, with commas between: {', '.join(WORKLOADS)}")
    parser.add_argument("--programs", help=f"programs, with commas between: {', '.join(programs)}")
    parser.add_argument("--rounds", type=int, help="default: 5; 2 with --quick")
    parser.add_argument("--core", type=int, default=0, help="the core to run on; default: 0")
    parser.add_argument("--no-realtime", action="store_true", help="at normal priority")
    parser.add_argument(
        "--foreign-load",
        type=float,
        default=0.05,
        help="drop a measurement during which others took more than this share of the core; 1 keeps all; default: 0.05",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "benchmarks", help="folder for what is written")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    workloads = arguments.only.split(",") if arguments.only else ["W1", "W2"] if arguments.quick else list(WORKLOADS)
    chosen = arguments.programs.split(",") if arguments.programs else programs
    for kind, given, known in (("workload", workloads, WORKLOADS), ("program", chosen, programs)):
        if unknown := sorted(set(given) - set(known)):
            parser.error(f"no {kind} {', '.join(unknown)}; there are {', '.join(known)}")
    core = Core(arguments.core, not arguments.no_realtime)
    settings = Settings(core, arguments.rounds, 0.2 if arguments.quick else 0.5, arguments.foreign_load)
    results = Results(about(arguments))
    run(workloads, chosen, settings, results)
    results.save(arguments.out / "results.json")
    for text in all_tables(results).values():
        print(text, end="\n\n")
    print(f"written: {arguments.out / 'results.json'}", file=sys.stderr)


if __name__ == "__main__":
    main()

"""Measure youyou beside other runtimes and beside floors: how fast, and what is left after a stop.

    python -m benchmarks                            both halves, five rounds: about an hour
    python -m benchmarks --quick                    W1 and W2 in about a minute
    python -m benchmarks --only W1,W2               some workloads of the first half
    python -m benchmarks --only stopping            the second half alone
    python -m benchmarks --programs youyou,limit    some programs
    python -m benchmarks --rest 1 --every 4         five rounds of W1 and W2, one of the rest, fewer stops
    python -m benchmarks --docs RESULTS.json ...    the tables and charts of docs/, from what runs have written

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

from . import chart
from .processes import ROOT, Core
from .results import Results
from .speed.run import WORKLOADS, Settings, chosen, run
from .stopping import run as stopping
from .stopping.run import RUNTIMES
from .tables import all_tables, put_into


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
        "rest": arguments.rest,
        "core": arguments.core,
        "foreign load": arguments.foreign_load,
    }


def write(results: Results, folder: Path) -> None:
    """The JSON, the tables and the charts of a run."""
    results.save(folder / "results.json")
    tables = all_tables(results)
    text = "".join(f"## {name}\n\n{one}\n\n" for name, one in tables.items())
    (folder / "tables.md").write_text(text)
    for name, picture in charts(results).items():
        (folder / f"{name}.svg").write_text(picture)
    print(text)
    for workload, why in results.failed.items():
        for program, reason in why.items():
            print(f"failed: {workload}, {program}: {reason}", file=sys.stderr)
    print(f"written: results.json, tables.md and charts in {folder}", file=sys.stderr)


def charts(results: Results) -> dict[str, str]:
    """Name: picture. Those for which there are figures."""
    made = {}
    if "W1" in results.speed or "W2" in results.speed:
        made["speed"] = chart.speed(results)
    if results.stopping:
        made["stopping"] = chart.stopping(results)
    return made


def write_docs(results: Results) -> None:
    """Replace the tables and charts of the documentation for which a run has figures."""
    tables = all_tables(results)
    for page in sorted((ROOT / "docs").glob("*.md")):
        if count := put_into(page, tables):
            print(f"{page.relative_to(ROOT)}: {count} places for tables")
    for name, picture in charts(results).items():
        (ROOT / "docs" / "images" / f"{name}.svg").write_text(picture)
        print(f"docs/images/{name}.svg")


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    programs = sorted({*(program for names in WORKLOADS.values() for program in names), *RUNTIMES})
    parser.add_argument("--quick", action="store_true", help="two short rounds of W1 and W2; or of what --only names")
    parser.add_argument("--only", help=f"workloads, with commas between: stopping, {', '.join(WORKLOADS)}")
    parser.add_argument("--programs", help=f"programs, with commas between: {', '.join(programs)}")
    parser.add_argument("--rounds", type=int, help="default: 5; 2 with --quick")
    parser.add_argument("--rest", type=int, help="rounds of all workloads but W1 and W2; default: as --rounds")
    parser.add_argument("--core", type=int, default=0, help="the core to run on; default: 0")
    parser.add_argument("--no-realtime", action="store_true", help="at normal priority")
    parser.add_argument(
        "--foreign-load",
        type=float,
        default=0.05,
        help="drop a measurement during which others took more than this share of the core; 1 keeps all; default: 0.05",
    )
    parser.add_argument("--every", type=int, help="stopping: at each n-th step only; default: 1; 10 with --quick")
    parser.add_argument(
        "--docs", type=Path, nargs="+", help="write the tables and charts of these runs into docs/, and measure nothing"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "benchmarks", help="folder for what is written")
    arguments = parser.parse_args()
    if arguments.docs:
        write_docs(Results.merged([Results.load(path) for path in arguments.docs]))
        return
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    arguments.rest = arguments.rounds if arguments.rest is None else arguments.rest
    everything = ["W1", "W2"] if arguments.quick else [*WORKLOADS, "stopping"]
    only = arguments.only.split(",") if arguments.only else everything
    wanted = arguments.programs.split(",") if arguments.programs else programs
    if unknown := sorted(set(wanted) - set(programs)):
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(programs)}")
    try:
        workloads = chosen([one for one in only if one != "stopping"])
    except ValueError as error:
        parser.error(str(error))
    core = Core(arguments.core, not arguments.no_realtime)
    settings = Settings(core, arguments.rounds, 0.2 if arguments.quick else 0.5, arguments.foreign_load, arguments.rest)
    results = Results(about(arguments))
    if workloads:
        run(workloads, wanted, settings, results, arguments.out / "results.json")
    if "stopping" in only:
        runtimes = [one for one in RUNTIMES if one in wanted]
        stopping.run(runtimes, arguments.every or (10 if arguments.quick else 1), results)
    write(results, arguments.out)


if __name__ == "__main__":
    main()

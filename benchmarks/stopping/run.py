"""All runtimes, stopped everywhere: as many at once as there are cores, since a virtual clock does not mind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ..environments import PACKAGES, ensure, tell
from ..processes import ROOT
from ..results import Results
from .world import SCENARIOS

RUNTIMES = ("youyou", *PACKAGES)
LIMIT = 3_600
"""Seconds for all stops of one runtime in one scenario."""


def run(runtimes: Sequence[str], every: int, results: Results) -> None:
    """Sweep into ``results``, one process a runtime and scenario. Says on standard error what it does."""
    environments = {}
    for runtime in runtimes:
        try:
            environments[runtime] = ensure(runtime)
        except subprocess.CalledProcessError as error:
            results.failed.setdefault("stopping", {})[runtime] = f"not installed: {error}"
    tell(environments, results)
    jobs = [(runtime, scenario) for runtime in environments for scenario in SCENARIOS]

    def sweep(job: tuple[str, str]) -> subprocess.CompletedProcess[str]:
        command = [environments[job[0]].python, "-m", "benchmarks.stopping.worker", *job, "--every", str(every)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
        print(f"stopped {job[0]} in {job[1]}", file=sys.stderr, flush=True)
        return done

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for (runtime, scenario), done in zip(jobs, threads.map(sweep, jobs), strict=True):
            if done.returncode:
                why = done.stderr.strip().rpartition("\n")[2]
                results.failed.setdefault("stopping", {})[f"{runtime}, {scenario}"] = why
            else:
                results.stopping += json.loads(done.stdout)

"""The same attempt is the same run in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "determinism.py"
SMALL = """
import runpy, sys
script = runpy.run_path(sys.argv[1], run_name="small")
script["digest"].__globals__["RUNS"] = int(sys.argv[2])
print(script["digest"]())
"""


def digest(seed: str, runs: int) -> str:
    """What a fresh process with this hash seed sees."""
    done = subprocess.run(
        [sys.executable, "-c", SMALL, str(SCRIPT), str(runs)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_two_processes_with_other_hash_seeds_see_the_same():
    """Every step, time, delivery and violation of a nasty scenario under fourteen kinds of attempt."""
    first = digest("0", 14)

    assert "14 runs" in first
    assert first == digest("random", 14)


@pytest.mark.long
def test_two_hundred_runs_are_the_same_under_four_hash_seeds():
    """The same for all attempts there are."""
    assert 1 == len({digest(seed, 200) for seed in ("0", "1", "2", "random")})

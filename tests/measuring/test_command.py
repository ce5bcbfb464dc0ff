"""The command itself, at its smallest, with real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.stopping.judge import FAULTS

ROOT = Path(__file__).resolve().parents[2]


def run(folder, *arguments):
    """What it writes."""
    command = [sys.executable, "-m", "benchmarks", "--quick", "--out", folder, *arguments]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300, capture_output=True)
    return json.loads((folder / "results.json").read_text())


@pytest.mark.long
def test_the_first_half_measures(tmp_path):
    """Two programs, one round."""
    found = run(tmp_path, "--rounds", "1", "--programs", "youyou,limit", "--no-realtime", "--foreign-load", "1")

    assert {} == found["failed"]
    assert {"W1": ["youyou", "limit"], "W2": ["youyou", "limit"]} == {w: list(ps) for w, ps in found["speed"].items()}


@pytest.mark.long
def test_the_second_half_stops_us_without_a_loss(tmp_path):
    """A few stops of each scenario and way: nothing is lost, refused or left running, however the stop came."""
    rows = run(tmp_path, "--only", "stopping", "--programs", "youyou", "--every", "25")["stopping"]
    counts = [
        (row["scenario"], row["way"], name)
        for row in rows
        for name in FAULTS
        if row["way"] != "kill" and row["counts"][name]
    ]

    assert [] == counts
    assert len(rows) > 40

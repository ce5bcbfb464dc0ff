"""Our own row of the comparison: nothing is lost, denied, done again or left, in every way to stop."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.processes import ROOT
from benchmarks.stopping.judge import FAULTS


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["text", "long", "hang", "writes", "retry"])
def test_our_row_is_zeros(scenario: str) -> None:
    """A sample of the stops, blocks that are left included; two messages of the user in a row are counted, too."""
    command = [sys.executable, "-m", "benchmarks.stopping.worker", "youyou", scenario, "--every", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    rows = [row for row in json.loads(done.stdout) if row["way"] != "kill"]

    assert {"task", "host", "scope", "cancel()", "cancel(after_batch=True)"} <= {row["way"] for row in rows}
    counted = [(row["way"], fault, row["counts"][fault]) for row in rows for fault in (*FAULTS, "two_users")]
    assert [] == [each for each in counted if each[2]]

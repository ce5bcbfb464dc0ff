"""Run a program alone on one core, and say how much others disturbed it.

Real-time priority keeps other processes off the core, which `nice` does not; where it is not permitted the program runs
without, and the foreign load tells what that costs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Core:
    """Where to run."""

    number: int
    realtime: bool = True

    def busy(self) -> tuple[int, int]:
        """Ticks since the start of the machine: all of them, and those in which the core worked or was taken away."""
        with open("/proc/stat") as lines:
            line = next(line for line in lines if line.startswith(f"cpu{self.number} "))
        ticks = [int(word) for word in line.split()[1:9]]
        return sum(ticks), sum(ticks) - ticks[3] - ticks[4]

    def take(self) -> None:
        """In the child, before it becomes the program."""
        os.sched_setaffinity(0, {self.number})
        if self.realtime:
            with suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


@dataclass(frozen=True)
class Ran:
    """What came of it."""

    printed: Any
    """The JSON that the program printed; None: it failed."""
    error: str
    """The end of what it wrote to standard error."""
    seconds: float
    """From start to end, the interpreter included."""
    foreign: float
    """The part of the time in which others had the core although the program wanted it, between 0 and 1."""


def alone(command: list[str], core: Core, limit: float = 600) -> Ran:
    """Run ``command`` in the checkout's folder, and end it if it takes longer than ``limit`` seconds."""
    whole, busy = core.busy()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # not pipes: nobody reads meanwhile
        started = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=core.take
        )
        try:
            late = child.wait(limit) < 0
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            late = True
        seconds = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        printed, said = out.read().decode(), err.read().decode(errors="replace")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    mine = (spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime) * TICKS
    whole, busy = core.busy()[0] - whole, core.busy()[1] - busy
    foreign = max(0.0, busy - mine) / max(1, whole)
    found = json.loads(printed) if printed and not late else None
    # Others may have used the core while the program slept. What it waited for tells more, but for its own threads.
    if found and (waited := found.pop("waited_s", None)) is not None:
        foreign = min(foreign, waited / seconds)
    error = f"ended after {seconds:.0f} s" if late else said.strip().rpartition("\n")[2]
    return Ran(found, error, seconds, foreign)

"""Kill and resume: the process ends at a step, without a word; another one resumes the session from its file.

Each run is two processes, forked from one that has imported the runtime: the first is killed, the second sends the
third message. Their clock is the real one. A runtime has `DURABLE`, and a `Session` that takes the folder of its file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from .judge import judge
from .world import World

SCENARIOS = ("text", "hang", "writes")
EVERY = 5
"""Of the steps at which the others stop: two processes for each take their time."""
WINDOW = 0.3
"""Seconds in which the tool that takes an hour is killed."""
Until = Callable[[World, Path], None]
"""Run the first two messages, or the third one, with a file in the folder."""


def killed(begin: Until, resume: Until, scenario: str, at: int, world_of: Callable[[str], World]) -> dict[str, Any]:
    """One run, killed after step ``at``; 0: to count the steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        note = folder / "world.json"

        def first() -> None:
            world = world_of(scenario)
            world.at = at

            def stop() -> bool:
                note.write_text(json.dumps({"seen": world.seen, "ran": world.ran, "steps": world.steps}))
                if at:
                    os._exit(9)
                return True

            world.stop = stop
            with suppress(BaseException):
                begin(world, folder)
            stop()

        def second() -> None:
            world = world_of(scenario)
            known = json.loads(note.read_text())
            world.seen, world.ran = known["seen"], [tuple(one) for one in known["ran"]]
            world.message = "third"
            out: dict[str, Any] = {"at": at, "end": "killed"}
            before = len(world.ran)
            try:
                resume(world, folder)
            except BaseException as error:
                out["next"] = f"{type(error).__name__}: {str(error)[:150]}"
            out["ran_then"] = before
            asked = world.requests["third"]
            out["request"] = asked[0] if asked else None
            row = judge(world, out)
            row["late_effect"] = False  # what ran once more is counted as that
            (folder / "row.json").write_text(json.dumps(row, default=str))

        apart(first)
        if not at:
            return json.loads(note.read_text())
        apart(second)
        return json.loads((folder / "row.json").read_text())


def apart(work: Callable[[], None]) -> None:
    """In a process of its own."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

"""What the model answers in each workload: the same for every runtime. Needs no package."""

from __future__ import annotations

from typing import Literal

WORD = "token "
DELTAS = {"chat": 200, "tools": 20, "many": 20, "long": 5, "short": 20, "hang": 5, "ending": 5}
"""Mode: deltas of the final answer."""
CALLS = {"tools": 8, "many": 8, "long": 1, "hang": 1, "ending": 8}
"""Mode: tool calls of the first answer; modes that are not here have one answer alone."""
TOOL = {"hang": "hang", "ending": "ending"}
"""Mode: the tool that is called; `noop` elsewhere."""
MODEL_WAIT = 0.05
"""Seconds that the model waits before each answer in mode `many`."""
DELTA_WAIT = 0.001
"""Seconds before each delta in mode `forever`, which never ends."""
TOOL_WAIT = 0.1
"""Seconds that a tool named `ending` takes; `hang` takes an hour."""


def answer(mode: str, after_tools: bool) -> tuple[Literal["calls", "text", "forever"], int]:
    """What the model says next, and how much of it."""
    if mode == "forever":
        return "forever", 0
    if mode in CALLS and not after_tools:
        return "calls", CALLS[mode]
    return "text", DELTAS[mode]


def expect(mode: str, seen: tuple[int, int]) -> None:
    """Refuse to measure a turn that did not say what it should.

    Raises:
        AssertionError: the deltas or the results that a reader counted are not those of the mode.
    """
    assert seen == (DELTAS[mode], CALLS.get(mode, 0)), (mode, seen)

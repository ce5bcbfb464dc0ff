"""What is the same for every runtime: the scripted model, the tools, and a note of all that happened.

A run has three messages. `first` is answered plainly. `second` runs a scenario and is stopped somewhere. `third` is
sent in the same session: what the model is sent then is what the stop left behind. Items of a request, whatever a
runtime calls them: ("user", text), ("assistant", text, [call ids]), ("result", call id, text). Needs no package.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

Item = tuple[Any, ...]
SCENARIOS = {
    "text": "20 deltas",
    "long": "two tools that end, beside one that takes a second",
    "hang": "two tools that end, beside one that takes an hour",
    "writes": "three tools, one after another, each with an effect outside",
    "retry": "the provider is busy at first, then 5 deltas",
    "threads": "three tools at once that block a thread, each with an effect outside",
}
"""Scenario: what happens in the second message."""
MUTATING = ("writes",)
"""Scenarios whose tools the runtime is told to run one after another, in the way that it documents."""
CALLS = {"long": ("read", "read", "slow"), "hang": ("read", "read", "slow"), "writes": ("write",) * 3}
CALLS["threads"] = ("block",) * 3
BLOCKED = 0.004
"""Seconds, of the real clock, that a tool blocks its thread before its effect, and again after it."""


class Busy(Exception):
    """The provider's error that may be tried again; each runtime has a class of its own for it."""


class World:
    """One run."""

    def __init__(self, scenario: str, sleep: Callable[[float], Awaitable[object]], now: Callable[[], float]) -> None:
        self.scenario, self.sleep, self.now = scenario, sleep, now
        self.message = "first"
        self.requests: dict[str, list[list[Item]]] = {"first": [], "second": [], "third": []}
        self.seen = ""
        """Text of the second answer that reached the reader."""
        self.ran: list[tuple[str, int]] = []
        """What a tool did, and which: start, effect, end, broken."""
        self.blocking = 0
        """Threads in a tool."""
        self.steps = self.events = 0
        self.at = self.again_at = 0
        """The step, or the reader's event, after which to stop; and to stop once more. 0: never."""
        self.counting = False
        self.stop: Callable[[], bool] = lambda: True
        """Stops the second message. False: there is nothing yet that could be stopped."""
        self.stopped_at: float | None = None
        self.cpu = 0.0

    async def model(self, request: list[Item]) -> AsyncIterator[Item]:
        """One answer: ("text", text) and ("call", id, tool, x), or Busy before anything."""
        asked = self.requests[self.message]
        asked.append(request)
        if self.message != "second":
            await self.sleep(0.001)
            yield ("text", f"answer to {self.message}")
            return
        first = len(asked) == 1
        if self.scenario == "retry" and first:
            await self.sleep(0.001)
            raise Busy("overloaded")
        if self.scenario in CALLS and first:
            for text in ("let me ", "look "):
                await self.sleep(0.001)
                yield ("text", text)
            await self.sleep(0.001)
            for x, tool in enumerate(CALLS[self.scenario]):
                yield ("call", f"call_{x}", tool, x)
            return
        for number in range(20 if self.scenario == "text" else 5):
            await self.sleep(0.001)
            yield ("text", f"w{number} ")

    async def tool(self, name: str, x: int) -> str:
        """A tool of the second message."""
        self.note("start", x)
        try:
            if name == "slow":
                await self.sleep(1.0 if self.scenario == "long" else 3600)
            elif name == "read":
                await self.sleep(0.002 * (x + 1))
            else:
                await self.sleep(0.002)
                self.note("effect", x)
                await self.sleep(0.002)
        except BaseException:
            self.note("broken", x)
            raise
        self.note("end", x)
        return f"{name} {x} done"

    def block(self, x: int) -> str:
        """The same in a thread, which nobody can stop."""
        self.blocking += 1
        try:
            self.note("start", x)
            time.sleep(BLOCKED * (x + 1))
            self.note("effect", x)
            time.sleep(BLOCKED)
            self.note("end", x)
            return f"block {x} done"
        finally:
            self.blocking -= 1

    def unfinished(self) -> int:
        """Tools that have begun and have not ended."""
        return sum(what == "start" for what, _ in self.ran) - sum(what in ("end", "broken") for what, _ in self.ran)

    def note(self, what: str, x: int) -> None:
        """Something happened to a tool."""
        self.ran.append((what, x))

    def step(self) -> None:
        """Called after every step of the loop while the second message runs."""
        if self.counting:
            self.steps += 1
            self.look(self.steps)

    def saw(self, text: str) -> None:
        """Called by the reader of the second message for each event; ``text`` is empty where it has none."""
        self.seen += text
        if self.counting:
            self.events += 1
            if self.at < 0:
                self.look(-self.events)

    def look(self, number: int) -> None:
        """Stop, if it is time: at a step where ``at`` is above 0, at an event of the reader where it is below."""
        due = self.at and (number >= self.at > 0 or number <= self.at < 0)
        if due and self.stopped_at is None:
            if self.stop():
                self.stopped_at, self.cpu = self.now(), time.perf_counter()
                self.counting = bool(self.again_at)
        elif self.again_at and number >= self.again_at > 0 and self.stopped_at is not None:
            self.stop()
            self.counting = False

"""A world for sweeps of the runtime: one agent, one storage, tools that count, and an oracle that judges at the end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import attrs
import pytest
import trio
import youyou
from stage import LoggedTool, Stage
from youyou.core.randomness import randomness
from youyou.testing import (
    AgentInvariants,
    InMemoryMemoryStorage,
    Report,
    Simulation,
    StrictProvider,
)
from youyou.testing.agents.scripted import say

CLOSING = 2.0
FINAL = (youyou.TurnStatus.COMPLETED, youyou.TurnStatus.FAILED, youyou.TurnStatus.CANCELLED)
TOO_LATE = (youyou.SessionClosed, youyou.AgentClosed)


@attrs.define(eq=False, slots=False, kw_only=True)
class World(Stage):
    """The stage of one simulated run. ``broken``: ports fail on purpose, so turns may end as failed."""

    sim: Simulation
    kind: str = "none"
    grace: float | None = None
    closing: float = CLOSING
    broken: bool = False
    memories: Any = attrs.Factory(InMemoryMemoryStorage)
    session_config: youyou.SessionConfig = attrs.Factory(youyou.SessionConfig)
    tokens: int = 100_000
    """The window of the model."""
    reads: bool = True
    failing: bool = False
    moved_on: bool = False
    lossy: bool = False
    unbounded: bool = False
    invariants: AgentInvariants = attrs.Factory(AgentInvariants)
    running: youyou.Agent | None = None
    opened: youyou.Session | None = None
    asking: youyou.RunningTurn | None = None

    def __attrs_post_init__(self) -> None:
        randomness.set(self.sim.random)
        grace = 5.0 if self.grace is None else self.grace
        self.configure(
            shutdown_grace_ms=int(grace * 1000), closing_ms=int(self.closing * 1000), retry=youyou.RetryPolicy()
        )
        self.ports = {"store": self.sim.port("store", self.store), "memories": self.sim.port("memory", self.memories)}
        self.sim.at_end(self.invariants.check)
        self.sim.at_end(lambda: not self.provider.violations, "every request is sendable")
        self.sim.at_end(self._runs_once, "no call runs twice")

    def _runs_once(self) -> bool:
        runs = Counter(id for tool in self.tools.values() for id in getattr(tool, "calls", ()))
        return max(runs.values(), default=0) <= 1

    def says(self, *rounds: Any) -> None:
        """What the model answers, round by round; after that it goes on forever."""
        models = [youyou.ModelInfo("scripted", "Scripted", self.tokens, youyou.ModelCapabilities())]
        self.provider = StrictProvider([*rounds, *[say("[]") for _ in range(30)]], models=models)
        if self.broken:
            self.ports["provider"] = self.sim.port("model", self.provider)
        # A stream whose opening failed after the fact cannot be closed by anybody.
        self.invariants.providers = () if self.broken else (self.provider,)
        self.invariants.stored = None if self.broken or self.lossy or self.closing < 1 else self.store.events

    def tool(self, name: str, *tags: str, **fields: Any) -> LoggedTool:
        """Register a tool that keeps a log and reports when it begins."""

        def begins(given: youyou.ToolInput) -> None:
            given.report({"half": True})

        return super().tool(name, *tags, begins=begins, **fields)

    def expose(self) -> None:
        """What a sweep may do to this world."""
        self.sim.action("close", self._close)
        self.sim.action("shutdown", self._shutdown)

    async def _close(self) -> None:
        if self.opened is not None:
            try:
                await self.opened.close(grace=self.grace)
            except youyou.StorageError:
                assert self.broken

    async def _shutdown(self) -> None:
        if self.running is not None:
            await self.running.shutdown(grace=self.grace)

    def _cancel_turn(self) -> bool:
        if self.asking is None or self.asking.status in FINAL:
            return False
        self.asking.cancel(grace=self.grace)
        return True

    async def open(self) -> bool:
        """Open a session. False: the agent is closing."""
        assert self.running is not None
        try:
            self.opened = await self.running.new_session(self.session_config)
            self.invariants.open(self.opened)
        except TOO_LATE:
            return False
        except youyou.PluginError:
            # A SessionStart hook that a shutdown cuts refuses the session.
            assert self.kind == "shutdown"
            return False
        return True

    async def send(self, text: str, *, queue: bool = False, output: Any = None) -> youyou.RunningTurn:
        """A turn that was accepted."""
        assert self.opened is not None
        self.asking = await self.opened.send_message(text, queue=queue, output=output)
        self.invariants.follow(self.asking, self.opened)
        return self.asking

    async def say(self, text: str = "go") -> youyou.TurnResult:
        """One turn, read to its end."""
        return await self.read(await self.send(text))

    async def say_all(self, *texts: str) -> None:
        """Several turns, one after the other."""
        for text in texts:
            await self.say(text)

    async def read(self, turn: youyou.RunningTurn, pause: float = 0) -> youyou.TurnResult:
        """Read a turn to its end."""
        assert self.opened is not None
        self.sim.action("turn", self._cancel_turn, done=lambda: turn.status in FINAL)
        if self.reads:
            async for _ in next(each for each in self.invariants.followed if each.turn is turn):
                await trio.sleep(pause)
        else:
            self.invariants.followed.clear()
        result = await turn.result()
        if not self.broken and not self.failing:
            assert result.status is not youyou.TurnStatus.FAILED, result.error
        return result

    async def run(self, talk: Callable[[], Awaitable[object]]) -> None:
        """An agent, a session, ``talk``, and then whatever must still work after what the sweep did."""
        if self.kind == "host":
            self.bounded()
            left: list[bool] = []
            # As an action, so that whatever is cancelled as a consequence counts as reached.
            with trio.CancelScope() as host:
                self.sim.action("host", partial(host.cancel, "the host is cancelled"), done=lambda: left)
                await self._with_agent(talk)
            left.append(True)
        else:
            await self._with_agent(talk)
        await self.resumes()

    async def _with_agent(self, talk: Callable[[], Awaitable[object]]) -> None:
        async with self.builder().build() as self.running:
            self.expose()
            if await self.open():
                await self._in_session(talk)
            if self.kind == "close" and not self.broken and await self.open():
                await self._in_session(self.say)

    async def _in_session(self, talk: Callable[[], Awaitable[object]]) -> None:
        assert self.opened is not None
        try:
            async with self.opened:
                await talk()
                if self.kind == "turn" and not self.moved_on:
                    await self.say("next")
        except (*TOO_LATE, youyou.StorageError) as error:
            assert self.kind in ("close", "shutdown") or self.broken or self.failing, error

    async def resumes(self) -> None:
        """What was stored can be opened again in a new agent, and goes on."""
        if self.opened is None or self.broken:
            return
        self.failing, self.reads, self.store.delay = True, True, 0.0
        await self.invariants.check()
        assert not self.provider.violations
        self.invariants.followed.clear()
        self.says()
        async with self.builder().build() as agent:
            try:
                session = await agent.resume_session(self.opened.id)
            except youyou.SessionNotFound:
                return
            self.invariants.open(session)
            async with session:
                turn = await session.send_message("still there?")
                async for _ in self.invariants.follow(turn, session):
                    pass
                assert (await turn.result()).status is youyou.TurnStatus.COMPLETED

    def bounded(self) -> None:
        """The host's cancellation ends within grace + closing (semantics 6.2)."""
        if self.unbounded:
            return
        grace = 5.0 if self.grace is None else self.grace
        self.sim.shutdown_within(math.nextafter(grace + self.closing, math.inf) + 1e-6)


@attrs.define(eq=False)
class Tally:
    """What all sweeps of a test run came to."""

    runs: int = 0
    failures: int = 0
    seen: set[str] = attrs.Factory(set)
    cancelled: set[str] = attrs.Factory(set)
    worst: float = 0.0

    def add(self, report: Report) -> None:
        """Count one report."""
        self.runs += report.runs
        self.failures += len(report.failures)
        self.seen |= {str(location) for _, location in report.coverage.seen}
        self.cancelled |= {str(location) for _, location in report.coverage.cancelled}
        self.worst = max(self.worst, report.worst_shutdown or 0.0)


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Counts over the whole test run; printed at its end."""
    tally = Tally()
    yield tally
    seen = {place for place in tally.seen | tally.cancelled if "/trio/" not in place}
    never = sorted(seen - tally.cancelled)
    lines = [
        f"sweeps of the runtime: {tally.runs} injected runs, {tally.failures} violations, "
        f"slowest shutdown {tally.worst:g} virtual seconds",
        f"{len(seen - set(never))} of {len(seen)} await locations were cancelled; never cancelled:",
        *[f"  {place}" for place in never],
    ]
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("", *lines, sep="\n")


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Makes the world of one simulated run."""
    return lambda sim, **options: World(sim=sim, **options)

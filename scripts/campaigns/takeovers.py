"""Two owners of one session: taken over, frozen, or with a clock that jumps, after every step of the first one's work.

    python scripts/campaigns/takeovers.py --runs 10000 --seed 1

In memory as scenarios of the test kit, so that a violation has a token to replay; on SQLite, whose thread no simulation
can hold, two agents with a connection each, disturbed after so many steps of Trio. Prints a line of figures; exits with
1 on any violation.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import trio
import youyou
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.adapters.sqlite import claims as sqlite_claims
from youyou.core.randomness import randomness
from youyou.testing import (
    InMemoryClaimedStorage,
    InMemorySessionStorage,
    Report,
    ScriptedProvider,
    Simulation,
    call,
    calls,
    say,
    sweep,
)

KINDS = ("takeover", "freeze", "clock jump")
TTL_MS = 3_000


@attrs.define(eq=False, slots=False)
class Line:
    """An owner's own line to the storage: it can freeze, before or after the effect, and counts refused appends."""

    storage: Any
    frozen: trio.Event | None = None
    refused: int = 0

    def __getattr__(self, name: str) -> Any:
        return partial(self._pass, getattr(self.storage, name))

    async def _pass(self, method: Callable[..., Awaitable[Any]], *args: Any, **named: Any) -> Any:
        await self._thaw()
        answer = await method(*args, **named)
        await self._thaw()
        return answer

    async def save_events(self, session_id: str, events: Sequence[youyou.SessionEvent]) -> None:
        try:
            await self._pass(self.storage.save_events, session_id, events)
        except youyou.AgentError:
            self.refused += 1
            raise

    async def _thaw(self) -> None:
        while self.frozen is not None and not self.frozen.is_set():
            await self.frozen.wait()


@attrs.define(eq=False)
class Owner:
    """One agent with a tool that pays, and what it was told."""

    name: str
    line: Line
    effects: list[str]
    works: float
    done: list[str] = attrs.Factory(list)
    """The texts of turns that were completed without an error."""
    lost: youyou.AgentError | None = None

    def agent(self, turns: int) -> Any:
        rounds: list[Any] = []
        for number in range(turns):
            key = f"{self.name}{number}"
            rounds += [calls(call("pay", {"key": key}, id=key)), say(f"paid {key}")]

        @youyou.tool(mutating=True)
        async def pay(key: str) -> str:
            self.effects.append(key)
            await trio.sleep(self.works)
            return "ok"

        config = youyou.AgentConfig("scripted", notices=youyou.Notices.english(), claim_ttl_ms=TTL_MS)
        builder = youyou.AgentBuilder(config).register_model_provider(ScriptedProvider(rounds)).register_tool(pay)
        return builder.register_session_storage(self.line).build()

    async def talk(self, session: youyou.Session, turns: int) -> None:
        """Turn after turn, until the session is lost."""
        for number in range(turns):
            try:
                result = await (await session.send_message(f"{self.name}{number}")).result()
            except youyou.AgentError as error:
                self.lost = error
                return
            if result.error is None:
                self.done.append(f"{self.name}{number}")
            elif self.lost is None:
                self.lost = result.error


@attrs.define(eq=False)
class Contest:
    """One run: the first owner works, and is disturbed when ``go`` is set."""

    kind: str
    lines: tuple[Line, Line]
    jump: Callable[[], None]
    """Makes the storage's clock jump past every claim."""
    events: Callable[[str], Awaitable[Sequence[youyou.SessionEvent]]]
    works: float = 0.2
    go: trio.Event = attrs.Factory(trio.Event)
    hit: bool = False

    async def run(self) -> None:
        """Raises AssertionError if a promise does not hold."""
        effects: list[str] = []
        first, second = (Owner(name, line, effects, self.works) for name, line in zip("ab", self.lines, strict=True))
        async with first.agent(2) as a, second.agent(1) as b:
            session = await a.new_session()
            finished = trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._disturb, b, second, session.id)
                await first.talk(session, 2)
                finished.set()
                self.go.set()
            try:
                await session.close()
            except youyou.AgentError as error:
                first.lost = error
            log = await self.events(session.id)
        self.hit = first.lost is not None
        self._judge(log, effects, first, second)

    async def _disturb(self, agent: youyou.Agent, second: Owner, session_id: str) -> None:
        await self.go.wait()
        thawed = trio.Event()
        if self.kind == "freeze":
            self.lines[0].frozen = thawed
        if self.kind != "takeover":
            self.jump()
        try:
            taken = await agent.resume_session(session_id, steal=self.kind == "takeover")
        except youyou.AgentError as error:
            # Nothing was stored yet, or the first owner has written once more, or has renewed its claim.
            assert error.retryable or error.code == "SESSION_NOT_FOUND", error
            thawed.set()
            return
        # The former owner wakes in the middle of what the newest one does.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._thaw_soon, thawed)
            await second.talk(taken, 1)
        assert second.lost is None, second.lost
        await taken.close()

    async def _thaw_soon(self, thawed: trio.Event) -> None:
        await trio.sleep(self.works / 2)
        thawed.set()

    def _judge(self, log: Sequence[youyou.SessionEvent], effects: list[str], first: Owner, second: Owner) -> None:
        assert [event.seq for event in log] == list(range(1, len(log) + 1)), "the log is gapless"
        said = [(event.seq, event.payload.text) for event in log if isinstance(event.payload, youyou.UserMessage)]
        for owner in (first, second):
            assert set(owner.done) <= {text for _, text in said}, "what was acknowledged is stored"
        facts = [(event.seq, event.payload) for event in log if isinstance(event.payload, youyou.Metadata)]
        opened = [(seq, fact.value["epoch"]) for seq, fact in facts if fact.key == "session_opened"]
        assert [epoch for _, epoch in opened] == sorted({epoch for _, epoch in opened}), "the epoch only grows"
        for seq, _ in opened:
            assert all(text.startswith("b") for at, text in said if at > seq), "nobody writes after the newest opener"
        started = {fact.value["call_id"] for _, fact in facts if fact.key == "tool_started"}
        assert max(Counter(effects).values(), default=0) <= 1, "no call is started twice"
        assert set(effects) <= started, "no call is started that is not stored"
        assert first.line.refused <= 1, "the loser ends within one append"


def in_memory(kind: str, claimed: bool, delay: float) -> Callable[[Simulation], Awaitable[None]]:
    """The scenario of the kit; the disturbance is its target ``disturb``."""

    async def two_owners(sim: Simulation) -> None:
        randomness.set(sim.random)
        store = InMemoryClaimedStorage(delay=delay) if claimed else InMemorySessionStorage(delay=delay)

        def jump() -> None:
            if isinstance(store, InMemoryClaimedStorage):
                for session_id, held in store._claims.items():
                    store._claims[session_id] = attrs.evolve(held, expires=0.0)

        async def events(session_id: str) -> Sequence[youyou.SessionEvent]:
            return store.events(session_id)

        contest = Contest(kind, (Line(store), Line(store)), jump, events)
        sim.action("disturb", contest.go.set)
        await contest.run()

    return two_owners


class After(trio.abc.Instrument):
    """Sets an event after so many steps of any task; counts them all."""

    def __init__(self, steps: int, event: trio.Event) -> None:
        self.steps, self.event, self.taken = steps, event, 0

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.taken += 1
        if self.taken == self.steps:
            self.event.set()


async def on_sqlite(kind: str, path: Path, steps: int) -> tuple[int, bool]:
    """One run; how many steps the whole had, and whether the first owner lost its session."""
    ahead = 0
    real = sqlite_claims._now_ms

    def jump() -> None:
        nonlocal ahead
        ahead = 10 * TTL_MS

    async with SQLiteSessionStorage(path) as one, SQLiteSessionStorage(path) as two:

        async def events(session_id: str) -> Sequence[youyou.SessionEvent]:
            return await two.load_session(session_id) or ()

        contest = Contest(kind, (Line(one), Line(two)), jump, events, works=0.0)
        after = After(steps, contest.go)
        trio.lowlevel.add_instrument(after)
        sqlite_claims._now_ms = lambda: real() + ahead
        try:
            with trio.fail_after(60):
                await contest.run()
        finally:
            sqlite_claims._now_ms = real
            trio.lowlevel.remove_instrument(after)
    return after.taken, contest.hit


def sweep_memory(runs: int, seed: int) -> tuple[int, int, list[Report]]:
    """Every step of each scenario, under as many orders as give so many runs. Injected runs, violations, reports."""
    worlds = [(kind, claimed, delay) for kind in KINDS for claimed in (True, False) for delay in (0.0, 0.01)]
    # Without claims nothing but the log decides, and a jump of a clock is an ordinary resume.
    worlds = [world for world in worlds if world[1] or world[0] != "clock jump"]
    share = max(1, runs // len(worlds))
    reports, injected = [], 0
    for world in worlds:
        scenario = in_memory(*world)
        points: Any = "every-step"
        report = sweep(scenario, cancel="disturb", points=share, seed=seed) if share < 150 else None
        rounds = 1
        if report is None:
            report = sweep(scenario, cancel="disturb", points=points, seed=seed)
            rounds = max(1, round(share / max(1, report.delivered)))
            if rounds > 1:
                report = sweep(scenario, cancel="disturb", points=points, seed=seed, schedules=rounds)
        reports.append(report)
        injected += report.delivered
    return injected, sum(not report.ok for report in reports), reports


def sweep_sqlite(runs: int, seed: int) -> tuple[int, int, int]:
    """Disturbed after every step in turn. Runs, runs that hit an owner at work, violations."""
    dice, done, hits, bad = random.Random(seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()
        whole = {kind: trio.run(on_sqlite, kind, Path(folder) / f"{next(numbers)}.db", 10**9)[0] for kind in KINDS}
        while done < runs:
            kind = KINDS[done % len(KINDS)]
            steps = dice.randrange(1, whole[kind])
            path = Path(folder) / f"{next(numbers)}.db"
            try:
                hits += trio.run(on_sqlite, kind, path, steps)[1]
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                bad += 1
                print(f"sqlite, {kind}, after {steps} steps: {error!r}", *getattr(error, "exceptions", ()), sep="\n  ")
            for file in Path(folder).glob(f"{path.name}*"):
                file.unlink()
            done += 1
    return done, hits, bad


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="injected runs in all (default: 10000)")
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one")
    arguments = parser.parse_args()
    logging.getLogger("youyou").setLevel(logging.CRITICAL)  # each lost session is told, and here they are meant to be
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    injected, failed, reports = sweep_memory(arguments.runs * 7 // 10, seed)
    for report in reports:
        if not report.ok:
            print(report)
    runs, hits, bad = sweep_sqlite(arguments.runs - injected if injected < arguments.runs else 1, seed)
    print(
        f"seed {seed}: in memory {injected} injected runs, {failed} scenarios with violations; "
        f"on SQLite {runs} runs, {hits} of them hit an owner at work, {bad} violations"
    )
    return 1 if failed or bad else 0


if __name__ == "__main__":
    sys.exit(main())

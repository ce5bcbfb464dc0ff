"""Processes that all want to open the same stored sessions at once: each session has exactly one winner.

    python scripts/campaigns/open_races.py --processes 8 --ids 1000 --seed 1
    python scripts/campaigns/open_races.py --sqlite --processes 8 --ids 1000

Starts a PostgreSQL of its own on the loopback, or has all processes open one SQLite file. Each has a session host, and
goes through the ids in an order of its own; what it won it keeps open until all are done. Prints a line of figures;
exits with 1 on any violation.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import trio
import youyou
from youyou.adapters.postgres import PostgresSessionStorage
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.hosting import SessionHost

HERE = Path(__file__).resolve().parent
SECONDS = 1_500.0


class Silent:
    """A model that is never asked."""

    id = "silent"

    def models(self) -> list[youyou.ModelInfo]:
        """One."""
        return [youyou.ModelInfo("m", "M", 100_000)]

    async def chat(self, request: youyou.ChatRequest) -> AsyncIterator[youyou.ChatEvent]:
        """Not here."""
        yield youyou.Done()


def storage_of(where: str) -> SQLiteSessionStorage | PostgresSessionStorage:
    """The storage in a file, or on a server."""
    return PostgresSessionStorage(where) if "://" in where else SQLiteSessionStorage(where)


async def take_part(dsn: str, folder: Path, name: str, count: int, seed: str) -> None:
    """Try to open every id, ten at a time; keep what was won until the others are done, too."""
    storage = storage_of(dsn)
    config = youyou.AgentConfig("m", claim_ttl_ms=600_000, address=name)
    ids = [f"s{number}" for number in range(count)]
    random.Random(seed).shuffle(ids)
    won: list[str] = []
    places = trio.CapacityLimiter(10)

    async def attempt(session_id: str) -> None:
        await places.acquire_on_behalf_of(session_id)
        try:
            async with host.open(session_id):
                won.append(session_id)
        except youyou.SessionTaken:
            pass
        finally:
            places.release_on_behalf_of(session_id)

    def make_builder() -> youyou.AgentBuilder[youyou.HasProvider]:
        return youyou.AgentBuilder(config).register_model_provider(Silent()).register_session_storage(storage)

    async with SessionHost(make_builder, max_open=count + 1, idle_ms=3_600_000) as host:
        (folder / f"{name}.ready").touch()
        while not (folder / "go").exists():  # noqa: ASYNC110  a signal between processes
            await trio.sleep(0.01)
        async with trio.open_nursery() as nursery:
            for session_id in ids:
                nursery.start_soon(attempt, session_id)
        (folder / f"{name}.won").write_text("\n".join(won))
        while not (folder / "end").exists():  # noqa: ASYNC110  as above
            await trio.sleep(0.05)


async def store(dsn: str, count: int) -> None:
    """The sessions that all want."""
    from youyou.messages.records import utc_now

    async with storage_of(dsn) as storage:
        for number in range(count):
            event = youyou.SessionEvent(1, utc_now(), youyou.Metadata("session_config", {}))
            await storage.save_events(f"s{number}", [event])


def wait_for(started: list[subprocess.Popen[bytes]], folder: Path, pattern: str) -> None:
    """Until each process has such a file."""
    end = time.monotonic() + SECONDS
    while len(list(folder.glob(pattern))) < len(started):
        if time.monotonic() > end or any(process.poll() is not None for process in started):
            raise RuntimeError(f"a process ended, or took too long, before it had its {pattern}")
        time.sleep(0.05)


def race(processes: int, count: int, seed: int, sqlite: bool) -> bool:
    """One race of all."""
    sys.path.insert(0, str(HERE.parents[1] / "tests" / "adapters" / "postgres"))
    from server import running_server  # type: ignore[import-not-found]  # a file of the tests

    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory())
        folder = Path(temporary)
        where = str(folder / "sessions.db") if sqlite else stack.enter_context(running_server()).dsn
        trio.run(store, where, count)
        started = []
        try:
            for number in range(processes):
                words = [where, temporary, f"p{number}", str(count), f"{seed} {number}"]
                started.append(subprocess.Popen([sys.executable, __file__, "--take-part", *words]))
            wait_for(started, folder, "*.ready")
            (folder / "go").touch()
            wait_for(started, folder, "*.won")
            (folder / "end").touch()
            codes = [process.wait(SECONDS) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        wins = {path.stem: path.read_text().split() for path in folder.glob("*.won")}
    winners = Counter(session_id for won in wins.values() for session_id in won)
    fine = len(winners) == count and set(winners.values()) == {1} and not any(codes)
    share = sorted(map(len, wins.values()))
    most = max(winners.values(), default=0)
    print(f"seed {seed}: {processes} processes, {count} ids, {len(winners)} won, {most} winner each at most, {share}")
    return fine


if __name__ == "__main__":
    if sys.argv[1:2] == ["--take-part"]:
        trio.run(take_part, sys.argv[2], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]), sys.argv[6])
        sys.exit()
    parser = argparse.ArgumentParser(description="Have processes race for the same sessions.")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--ids", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--sqlite", action="store_true", help="one SQLite file in place of a PostgreSQL server")
    asked = parser.parse_args()
    sys.exit(not race(asked.processes, asked.ids, asked.seed, asked.sqlite))

"""How group commit lets the throughput of storage grow with load (semantics 7).

python benchmarks/recorder_throughput.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from youyou.actors.recorder.recorder import Recorder
from youyou.actors.shared.lifetime import Lifetime
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.messages.history import ToolResult
from youyou.messages.hook_payloads import utc_now
from youyou.messages.records import SessionEvent

EVENTS = 1_500
LOADS = (1, 8, 64)


class Counting(SQLiteSessionStorage):
    """Counts its writes."""

    writes = 0

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        """One more write."""
        self.writes += 1
        await super().save_events(session_id, events)


async def measure(path: Path, synchronous: str, waiting: int) -> tuple[float, int]:
    """Seconds and writes for all events, when so many tasks each wait for the acknowledgement of each of theirs."""
    async with Counting(path, synchronous=synchronous) as storage, trio.open_nursery() as nursery:
        recorder = Recorder(Lifetime(5.0, 2.0), storage, 30.0)
        log = recorder.log_of("s")
        nursery.start_soon(recorder.run)
        numbers = iter(range(1, EVENTS + 1))

        async def post() -> None:
            for number in numbers:
                event = SessionEvent(number, utc_now(), ToolResult(f"c{number}", "a result of a line or so"))
                await recorder.flush(log, recorder.post(log, [event]))

        await storage.load_session("s")
        started = time.perf_counter()
        async with trio.open_nursery() as tasks:
            for _ in range(waiting):
                tasks.start_soon(post)
        taken = time.perf_counter() - started
        recorder.close()
    return taken, storage.writes


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        for synchronous in ("NORMAL", "FULL"):
            rates = []
            for waiting in LOADS:
                path = Path(folder) / f"{synchronous}{waiting}.db"
                taken, writes = trio.run(measure, path, synchronous, waiting)
                rates.append(EVENTS / taken)
                print(
                    f"synchronous={synchronous}, {waiting} waiting at once: {EVENTS / taken:.0f} events/s "
                    f"in {writes} writes ({EVENTS / writes:.1f} events a write)"
                )
            print(f"ratio, {LOADS[-1]} to {LOADS[0]}: {rates[-1] / rates[0]:.1f}")


if __name__ == "__main__":
    main()

"""Do all runs come out the same in every process, hash seed, Python and Trio?

    python benchmarks/determinism.py digest                          # one process: prints the digest of 200 runs
    python benchmarks/determinism.py matrix DIR PYTHON [PYTHON...]   # makes environments in DIR and compares
    RUNS=20 python benchmarks/determinism.py ...                     # a tenth of it

The digest covers every step of every run: task, place, virtual time, what arrived where, and what went wrong.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRIOS = ("trio==0.32.0", "trio")
SEEDS = ("0", "1", "2", "random")
_LINE = re.compile(r"(?<=contextlib)\.py:\d+")
RUNS = int(os.environ.get("RUNS", "200"))


def attempts() -> Iterator[object]:
    """Cancels, faults, random and priority orders, unfair ones, latency, chaos and Ctrl-C."""
    from youyou.testing import Attempt, Chaos
    from youyou.testing.engine.attempt import Injection, Order
    from youyou.testing.engine.faults import MODES

    for number in range(RUNS):
        order = Order(("plain", "walk", "pct2", "pct3")[number % 4], number)
        match number % 7:
            case 0 | 1:
                yield Attempt((Injection("cancel", 3 + number),), order, number)
            case 2:
                yield Attempt((Injection("cancel", 1 + number, "ctrl-c", "before"),), order)
            case 3:
                yield Attempt((Injection("fault", 1 + number // 7, MODES[number % len(MODES)]),), order)
            case 4:
                yield Attempt((), order, fairness="none")
            case 5:
                yield Attempt((), order, latency=True)
            case _:
                yield Attempt((), order, chaos=Chaos(heal=5))


async def nasty(sim) -> None:  # type: ignore[no-untyped-def]  # the package is imported in the environments only
    """Equal deadlines, locks, a limiter, channels, sets of strings, threads that call back, sockets, files."""
    import trio

    disk, _ = sim.disk(), sim.network()

    class Port:
        async def ask(self, what: str) -> str:
            await trio.sleep(len(what) / 10)
            return what

        async def count(self) -> AsyncIterator[int]:
            for number in range(3):
                await trio.lowlevel.checkpoint()
                yield number

    port, lock, limiter = sim.port("port", Port()), trio.Lock(), trio.CapacityLimiter(2)
    send, receive = trio.open_memory_channel[str](1)
    names = {f"name{number}" for number in range(6)}

    async def part(name: str, number: int, out: trio.MemorySendChannel[str]) -> None:
        try:
            with out, trio.move_on_after(1):
                async with limiter:
                    await trio.sleep(0.3)
                async with lock:
                    await out.send(await port.ask(name[:number]))
                await trio.to_thread.run_sync(len, name)
                await trio.sleep(sim.random.choice([0.5, 1, 2]))
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 0.5):
                await trio.sleep(0.1 * number)

    async def worker(name: str, out: trio.MemorySendChannel[str]) -> None:
        with out:
            async with trio.open_nursery() as nursery:
                for number in range(3):
                    nursery.start_soon(part, name, number, out.clone())

    async def reader() -> None:
        with receive:
            async for what in receive:
                async with aclosing(port.count()) as numbers:
                    async for _ in numbers:
                        sim.note(what)

    async def echo(stream: trio.SocketStream) -> None:
        async with stream:
            async for data in stream:
                await stream.send_all(data[::-1])

    async def journal(line: str) -> None:
        async with await trio.open_file(disk.path / "journal", "a") as file:
            await file.write(line)
            await file.flush()
            await trio.to_thread.run_sync(os.fsync, file.fileno())

    async def client(number: int) -> None:
        async with await trio.open_tcp_stream("localhost", 80) as stream:
            for length in range(1, 3):
                await stream.send_all(b"ab" * number * length)
                answer = await stream.receive_some(number + 1)
                await trio.to_thread.run_sync(trio.from_thread.run, journal, f"{number} {answer!r}\n")

    async def clients() -> None:
        async with trio.open_nursery() as serving:
            await serving.start(trio.serve_tcp, echo, 80)
            async with trio.open_nursery() as asking:
                for number in range(1, 4):
                    asking.start_soon(client, number)
            serving.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader)
        nursery.start_soon(clients)
        with send:
            for name in sorted(names):
                nursery.start_soon(worker, name, send.clone())


def digest() -> str:
    """One hash over everything that was seen in all runs."""
    from youyou.testing.engine.attempt import Limits
    from youyou.testing.engine.running import run_attempt
    from youyou.testing.process.leaks import LeakWatch

    found, steps, kinds = hashlib.sha256(), 0, set()
    with LeakWatch() as watch:
        for attempt in attempts():
            run = run_attempt(nasty, attempt, Limits(max_steps=5000), watch)  # type: ignore[arg-type]  # see above
            steps += len(run.steps)
            kinds |= {v.kind for v in run.violations}
            for step in run.steps:
                found.update(f"{run.label(step.task)} {step.location} {step.time:.9f}\n".encode())
            for delivery in run.deliveries:
                found.update(f"{delivery.step} {delivery.task} {delivery.location}\n".encode())
            seen = [run.notes, [str(c) for c in run.calls], run.deviations, run.seconds, run.shutdown]
            # The lines of the standard library move from one Python to the next.
            wrong = [(v.kind, [_LINE.sub(".py", leaf) for leaf in v.leaves], v.step) for v in run.violations]
            found.update(repr([*seen, wrong]).encode())
    return f"{found.hexdigest()[:16]} {RUNS} runs {steps} steps violations {sorted(kinds)}"


def environment(base: Path, python: str, wanted: str) -> Path:
    """The interpreter of an environment with that Trio and this package."""
    name = f"{Path(python).parent.parent.name}-{wanted.replace('=', '') if '=' in wanted else 'newest'}"
    home = base / name
    if not (home / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", home], check=True)
        pip = [home / "bin" / "python", "-m", "pip", "install", "-q"]
        subprocess.run([*pip, wanted, "-e", ROOT], check=True)
    return home / "bin" / "python"


def matrix(base: Path, pythons: list[str]) -> int:
    """Compare all combinations; the number of different digests."""
    digests = {}
    for python in pythons:
        for wanted in TRIOS:
            interpreter = environment(base, python, wanted)
            for seed in SEEDS:
                done = subprocess.run(
                    [interpreter, __file__, "digest"],
                    env={**os.environ, "PYTHONHASHSEED": seed},
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                digests[interpreter.parent.parent.name, seed] = done.stdout.strip()
                print(f"{interpreter.parent.parent.name:24} hash seed {seed:7} {done.stdout.strip()}", flush=True)
    print(f"{len(digests)} combinations, {len(set(digests.values()))} different digests")
    return len(set(digests.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["matrix"]:
        sys.exit(matrix(Path(sys.argv[2]), sys.argv[3:]) != 1)
    print(digest())

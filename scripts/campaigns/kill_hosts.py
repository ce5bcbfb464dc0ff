"""Kill, freeze and drain the processes of a service over one PostgreSQL, and judge what is stored.

    python scripts/campaigns/kill_hosts.py --kills 200 --freezes 50 --seed 1

Starts a server of its own on the loopback. Processes are killed (SIGKILL) or frozen for longer than their claims last
(SIGSTOP, then SIGCONT) at random moments under load. Afterwards: every acknowledged turn is stored with its end, no
tool call was started twice, each log is without a gap, `(turn_id, sequence)` is unique, epochs grow, and every process
that was asked to drain did. Prints a line of figures; exits with 1 on any violation.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import trio
import youyou
from youyou.adapters.postgres import PostgresSessionStorage

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "adapters" / "postgres"))
from server import running_server  # type: ignore[import-not-found]  # noqa: E402  a file of the tests

START_SECONDS = 120.0


def lines(path: Path) -> list[list[str]]:
    """The lines of a file of notes."""
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


class Service:
    """Some processes over one database."""

    def __init__(self, dsn: str, folder: Path, sessions: list[str], rng: random.Random) -> None:
        self.dsn, self.folder, self.sessions, self.rng = dsn, folder, sessions, rng
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.started = 0

    def start(self) -> None:
        """One more process, and wait until it works."""
        self.started += 1
        name = f"p{self.started}"
        words = [self.dsn, str(self.folder), name, str(self.rng.random()), ",".join(self.sessions)]
        with (self.folder / "output").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [sys.executable, str(HERE / "host_worker.py"), *words], stdout=output, stderr=output
            )
        end = time.monotonic() + START_SECONDS
        while [name] not in lines(self.folder / "ready"):
            if time.monotonic() > end or self.processes[name].poll() is not None:
                raise RuntimeError(f"{name} did not start: {(self.folder / 'output').read_text()[-2000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL one, at random; another takes its place."""
        name = self.rng.choice([*self.processes])
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        self.start()

    def freeze(self, seconds: float) -> None:
        """Stop one for longer than its claims last, then let it go on."""
        process = self.processes[self.rng.choice([*self.processes])]
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def drain(self) -> list[str]:
        """SIGTERM all; the names of those that did not end well."""
        for process in self.processes.values():
            process.terminate()
        bad = []
        for name, process in self.processes.items():
            try:
                if process.wait(60) != 0:
                    bad.append(name)
            except subprocess.TimeoutExpired:
                process.kill()
                bad.append(name)
        return bad

    def end(self) -> None:
        """Nothing is left."""
        for process in self.processes.values():
            process.kill()
            process.wait()


async def new_sessions(dsn: str, count: int) -> list[str]:
    """So many stored sessions."""
    ids = [f"session-{number}" for number in range(count)]
    async with PostgresSessionStorage(dsn) as storage:
        for session_id in ids:
            event = youyou.SessionEvent(1, youyou.messages.records.utc_now(), youyou.Metadata("session_config", {}))
            await storage.save_events(session_id, [event])
    return ids


async def judge(dsn: str, folder: Path, sessions: list[str]) -> list[str]:
    """What is wrong with what is stored."""
    wrong = []
    starts = Counter(call for (call,) in lines(folder / "starts"))
    wrong += [f"{call} was started {n} times" for call, n in starts.items() if n > 1]
    acknowledged = lines(folder / "acknowledged")
    marks: Counter[tuple[str, int]] = Counter()
    async with PostgresSessionStorage(dsn) as storage:
        for session_id in sessions:
            events = await storage.load_session(session_id) or ()
            if [event.seq for event in events] != [*range(1, len(events) + 1)]:
                wrong.append(f"{session_id} has a gap")
            ended, said, sequence = set(), set(), 0
            epochs = []
            for event in events:
                match event.payload:
                    case youyou.Metadata("turn_ended", value):
                        ended.add(value["turn_id"])
                        marks[value["turn_id"], value["sequence"]] += 1
                        if value["sequence"] <= sequence:
                            wrong.append(f"{session_id}: numbering went back at event {event.seq}")
                        sequence = value["sequence"]
                    case youyou.Metadata("session_opened", value):
                        epochs.append(value["epoch"])
                    case youyou.UserMessage(content):
                        said.add(youyou.messages.content.text_of(content))
            if epochs != sorted(set(epochs)):
                wrong.append(f"{session_id}: epochs do not grow: {epochs}")
            for where, text, turn_id in acknowledged:
                if where == session_id and (turn_id not in ended or text not in said):
                    wrong.append(f"{session_id}: turn {text} was acknowledged and is not stored")
    return [*wrong, *(f"{mark} stands twice" for mark, n in marks.items() if n > 1)]


def campaign(kills: int, freezes: int, processes: int, count: int, seed: int) -> list[str]:
    """All of it; what is wrong."""
    rng = random.Random(f"kill_hosts {seed}")
    with running_server() as server, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sessions = trio.run(new_sessions, server.dsn, count)
        service = Service(server.dsn, folder, sessions, rng)
        try:
            for _ in range(processes):
                service.start()
            for blow in rng.sample(["kill"] * kills + ["freeze"] * freezes, kills + freezes):
                time.sleep(rng.random() * 0.5)
                service.kill() if blow == "kill" else service.freeze(1.2 + rng.random())
            time.sleep(3)
            undrained = service.drain()
        finally:
            service.end()
        wrong = trio.run(judge, server.dsn, folder, sessions)
        wrong += [f"{name} did not drain" for name in undrained]
        figures = {name: len(lines(folder / name)) for name in ("acknowledged", "starts", "errors", "drained")}
        told = Counter(" ".join(words[1:2]) for words in lines(folder / "errors"))
        print(f"seed {seed}: {kills} kills, {freezes} freezes, {figures}, errors {dict(told)}, {len(wrong)} violations")
        if undrained:
            print((folder / "output").read_text()[-3000:])
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill and freeze the processes of a service over PostgreSQL.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--freezes", type=int, default=50)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    asked = parser.parse_args()
    problems = campaign(asked.kills, asked.freezes, asked.processes, asked.sessions, asked.seed)
    print("\n".join(problems))
    sys.exit(bool(problems))

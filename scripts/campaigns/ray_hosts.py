"""Kill and freeze hosts that Ray placed, measure the takeover and what the way through Ray costs, and judge the logs.

    python scripts/campaigns/ray_hosts.py --kills 20 --freezes 5 --sessions 2000 --seed 1
    python scripts/campaigns/ray_hosts.py --nodes 2 --kills 5       # two nodes: kill one, freeze one, kill the head

Starts a PostgreSQL server and a Ray of its own, on the loopback. Prints figures; exits with 1 on any violation: a turn
that was acknowledged and is not stored, a tool call that was started twice, a log with a gap, an event that is missing
or comes twice, a host that woke up and wrote.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import trio
import youyou

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "adapters" / "postgres"))
sys.path.insert(0, str(HERE))
os.environ.setdefault("PYTHONPATH", str(HERE))

import ray_app  # type: ignore[import-not-found]  # noqa: E402  beside this file; the hosts import it, too
from server import running_server  # type: ignore[import-not-found]  # noqa: E402  a file of the tests
from youyou.adapters.postgres import PostgresSessionStorage  # noqa: E402
from youyou.adapters.ray import Cluster, RemoteSession, RemoteTurn  # noqa: E402
from youyou.adapters.ray.engine import require_ray, result_of  # noqa: E402
from youyou.messages.content import text_of  # noqa: E402

SECONDS = 120.0


def median(values: list[float]) -> str:
    """Median and maximum, in seconds."""
    return f"{statistics.median(values):.3f} s (max {max(values):.3f})" if values else "none"


async def pid_of(session: RemoteSession) -> int:
    """The process that has the session."""
    return int(await result_of(session._host.actor.pid.remote()))


async def said_in(session: RemoteSession, text: str) -> str:
    """One turn, to its end."""
    result = await (await session.send_message(text)).result()
    return result.text


async def read(turn: RemoteTurn, seen: list[int]) -> None:
    """The numbers of its events, until it is over or its host is lost."""
    with contextlib.suppress(youyou.HostLost):
        async for event in turn:
            seen.append(event.sequence)  # noqa: PERF401  those before the host was lost count


async def open_again(cluster: Cluster, session_id: str) -> RemoteSession:
    """On whatever host there is, as soon as there is one."""
    while True:
        try:
            return await cluster.resume_session(session_id)
        except (youyou.HostLost, youyou.SessionTaken):
            await trio.sleep(0.02)


async def judge(dsn: str, notes: Path, acknowledged: list[tuple[str, str]]) -> list[str]:
    """What is wrong with what is stored."""
    wrong = []
    starts = Counter(notes.read_text().split() if notes.exists() else ())  # noqa: ASYNC240  nothing else runs
    wrong += [f"{call} was started {n} times" for call, n in starts.items() if n > 1]
    async with PostgresSessionStorage(dsn) as storage:
        for session_id in sorted({session_id for session_id, _ in acknowledged}):
            events = await storage.load_session(session_id) or ()
            if [event.seq for event in events] != [*range(1, len(events) + 1)]:
                wrong.append(f"{session_id} has a gap")
            said = {text_of(e.payload.content) for e in events if isinstance(e.payload, youyou.UserMessage)}
            lost = {text for where, text in acknowledged if where == session_id} - said
            wrong += [f"{session_id}: {text!r} was acknowledged and is not stored" for text in lost]
    return wrong


async def blows(dsn: str, notes: Path, kills: int, freezes: int, rng: random.Random) -> list[str]:
    """Strike hosts in mid-stream and in mid-tool; what is wrong."""
    wrong: list[str] = []
    acknowledged: list[tuple[str, str]] = []
    noticed, opened, done = [], [], {"kill": list[float](), "freeze": list[float]()}
    frozen: list[int] = []
    options: dict[str, Any] = {"hosts": 2, "spares": 1, "patience_ms": 1_000}
    async with Cluster(ray_app.make_builder, storage=PostgresSessionStorage(dsn), **options) as cluster:
        for number, blow in enumerate(rng.sample(["kill"] * kills + ["freeze"] * freezes, kills + freezes)):
            session = await cluster.new_session()
            text = f"say 3 {number}"
            await said_in(session, text)
            acknowledged.append((session.id, text))
            doing = f"tool {notes} 30 {number}" if rng.random() < 0.5 else "slow 100000"
            turn = await session.send_message(doing)
            pid = await pid_of(session)
            seen: list[int] = []
            async with trio.open_nursery() as reading:
                reading.start_soon(read, turn, seen)
                await trio.sleep(0.2 + rng.random() / 2)
                struck = trio.current_time()
                os.kill(pid, signal.SIGKILL if blow == "kill" else signal.SIGSTOP)
                if blow == "freeze":
                    frozen.append(pid)
            if blow == "kill":
                noticed.append(trio.current_time() - struck)
            again = await open_again(cluster, session.id)
            if blow == "kill":
                opened.append(trio.current_time() - struck)
            await said_in(again, f"say 1 {number}")
            acknowledged.append((session.id, f"say 1 {number}"))
            done[blow].append(trio.current_time() - struck)
            if seen != [*range(seen[0], seen[0] + len(seen))]:
                wrong.append(f"{session.id}: events {seen[:3]}... have a gap or come twice")
            if blow == "freeze":
                os.kill(frozen.pop(), signal.SIGCONT)
                await trio.sleep(ray_app.TTL_MS / 3_000 + 1)
                await said_in(again, f"say 1 after {number}")
                acknowledged.append((session.id, f"say 1 after {number}"))
            await again.close()
    print(f"{kills} kills: noticed {median(noticed)}, opened {median(opened)}, next turn done {median(done['kill'])}")
    print(f"{freezes} freezes, claims of {ray_app.TTL_MS} ms: next turn done {median(done['freeze'])}")
    return wrong + await judge(dsn, notes, acknowledged)


async def costs(dsn: str, sessions: int) -> None:
    """What the way through Ray costs, beside a bare call and a turn in this process."""
    ray = require_ray()
    async with Cluster(ray_app.make_builder, storage=PostgresSessionStorage(dsn), hosts=1, spares=0) as cluster:
        session = await cluster.new_session()
        await said_in(session, "say 10")

        @ray.remote(num_cpus=0)
        class Bare:
            async def call(self) -> int:
                return 1

        bare = Bare.remote()
        await result_of(bare.call.remote())
        calls, firsts, cancels = [], [], []
        for _ in range(50):
            begun = time.perf_counter()
            await result_of(bare.call.remote())
            calls.append(time.perf_counter() - begun)
            turn = await session.send_message("slow 100000")
            begun = time.perf_counter()
            await turn.cancel()
            cancels.append(time.perf_counter() - begun)
            await turn.result()
            turn = await session.send_message("say 1")
            begun = time.perf_counter()
            await anext(turn)
            firsts.append(time.perf_counter() - begun)
            await turn.result()
        call = statistics.median(calls)
        print(f"bare call {call * 1e3:.2f} ms; first event {statistics.median(firsts) / call:.1f}x", end="; ")
        print(f"cancel {statistics.median(cancels) / call:.1f}x")
        remote = []
        for _ in range(5):
            begun = time.perf_counter()
            count = 0
            async for _ in await session.send_message("say 20000"):
                count += 1
            remote.append((time.perf_counter() - begun) / count)
        async with ray_app.make_builder().build() as agent, await agent.new_session() as local_session:
            local = []
            for _ in range(5):
                begun = time.perf_counter()
                count = 0
                async for _ in await local_session.send_message("say 20000"):
                    count += 1
                local.append((time.perf_counter() - begun) / count)
        ratio = statistics.median(remote) / statistics.median(local)
        print(f"an event {statistics.median(remote) * 1e6:.1f} us, {ratio:.1f}x of one in this process")
        pid = await pid_of(session)

        def memory() -> int:
            return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096

        before = memory()
        for _ in range(sessions):
            await said_in(await cluster.new_session(), "say 1")
        held = (await cluster.statistics())[session.host].open
        print(f"{held} sessions on a host, {(memory() - before) / max(1, sessions) / 1024:.0f} KiB each")


async def two_nodes(dsn: str, notes: Path, rounds: int) -> list[str]:
    """A node is killed, a node is frozen and woken, the head is killed: sessions of the living go on."""
    from ray.cluster_utils import Cluster as Nodes

    wrong: list[str] = []
    acknowledged: list[tuple[str, str]] = []
    took: dict[str, list[float]] = {"kill": [], "freeze": []}
    ray = require_ray()
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    ray.init(address=nodes.address, log_to_driver=False, logging_level="error")
    try:
        for number in range(rounds):
            for how in ("kill", "freeze"):
                second = nodes.add_node(num_cpus=1)
                options: dict[str, Any] = {"hosts": 4, "spares": 0, "patience_ms": 1_000}
                async with Cluster(ray_app.make_builder, storage=PostgresSessionStorage(dsn), **options) as cluster:
                    there = None
                    sessions = [await cluster.new_session() for _ in range(8)]
                    for session in sessions:
                        node = await result_of(session._host.actor.node.remote())
                        if node == second.node_id:
                            there = session
                    if there is None:
                        wrong.append(f"round {number}: no host on the second node")
                        continue
                    here = next(s for s in sessions if s.host != there.host)
                    await said_in(there, "say 1")
                    acknowledged.append((there.id, "say 1"))
                    turn = await there.send_message("slow 100000")
                    seen: list[int] = []
                    victims = [p.process.pid for ps in second.all_processes.values() for p in ps]
                    victims += [await pid_of(there)]
                    async with trio.open_nursery() as reading:
                        reading.start_soon(read, turn, seen)
                        await trio.sleep(0.5)
                        struck = trio.current_time()
                        for pid in victims:
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                        await said_in(here, "say 1")
                        acknowledged.append((here.id, "say 1"))
                    again = await open_again(cluster, there.id)
                    await said_in(again, "say 2")
                    acknowledged.append((there.id, "say 2"))
                    took[how].append(trio.current_time() - struck)
                    if how == "freeze":
                        for pid in victims:
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(pid, signal.SIGCONT)
                        await trio.sleep(ray_app.TTL_MS / 1_000)
                        await said_in(again, "say 3")
                        acknowledged.append((there.id, "say 3"))
                nodes.remove_node(second, allow_graceful=False)
        async with Cluster(ray_app.make_builder, storage=PostgresSessionStorage(dsn), hosts=1, spares=0) as cluster:
            session = await cluster.new_session()
            await said_in(session, "say 1")
            nodes.head_node.kill_gcs_server()
            await said_in(session, "say 4")
            acknowledged += [(session.id, "say 1"), (session.id, "say 4")]
            print("head killed: the session of a living host goes on")
    finally:
        ray.shutdown()
        nodes.shutdown()
    for how, times in took.items():
        print(f"node {how}, claims of {ray_app.TTL_MS} ms: next turn done {median(times)}")
    return wrong + await judge(dsn, notes, acknowledged)


async def campaign(asked: argparse.Namespace, dsn: str, folder: Path) -> list[str]:
    """All of it; what is wrong."""
    if asked.nodes == 2:
        return await two_nodes(dsn, folder / "notes", asked.kills)
    rng = random.Random(f"ray_hosts {asked.seed}")
    wrong = await blows(dsn, folder / "notes", asked.kills, asked.freezes, rng)
    if asked.sessions:
        await costs(dsn, asked.sessions)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill and freeze hosts that Ray placed.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--freezes", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=2_000, help="for the memory of one; 0: measure no costs")
    parser.add_argument("--nodes", type=int, default=1, choices=(1, 2))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    given = parser.parse_args()
    with running_server() as server, tempfile.TemporaryDirectory() as temporary:
        problems = trio.run(campaign, given, server.dsn, Path(temporary))
    print(f"seed {given.seed}: {len(problems)} violations")
    print("\n".join(problems))
    sys.exit(bool(problems))

"""Real processes on one file: they do not disturb each other, and one that is killed loses nothing it acknowledged."""

import random
import subprocess
import sys
import time

import apsw
import pytest
from youyou.adapters.sqlite import SQLiteMemoryStorage, SQLiteSessionStorage
from youyou.messages.history import UserMessage
from youyou.messages.records import SessionEvent
from youyou.testing.agents.conformance_support import moment

pytestmark = pytest.mark.long  # several processes for each test

WRITER = """
import sys, trio
from youyou.adapters.sqlite import SQLiteMemoryStorage, SQLiteSessionStorage
from youyou.messages.history import UserMessage
from youyou.messages.records import Memory, SessionEvent
from youyou.testing.agents.conformance_support import moment

path, name, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])

async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    async with SQLiteSessionStorage(path) as sessions, SQLiteMemoryStorage(path) as memories:
        for start in range(1, 3 * batches, 3):
            batch = [SessionEvent(n, moment(n), UserMessage(f"{name} {n}")) for n in range(start, start + 3)]
            await sessions.save_events(name, batch)
            await memories.save(Memory(f"{name}{start}", "n", f"apple {name}"))
            found = await sessions.load_session(name)
            assert found[-3:] == tuple(batch), found
            await sessions.list_sessions()

trio.run(main)
"""

SAVER = """
import sys, trio
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.messages.history import UserMessage
from youyou.messages.records import SessionEvent
from youyou.testing.agents.conformance_support import moment

async def main():
    async with SQLiteSessionStorage(sys.argv[1]) as storage:
        stored = len(await storage.load_session("s") or ())
        while True:
            size = 1 + stored % 5
            numbers = range(stored + 1, stored + size + 1)
            batch = [SessionEvent(n, moment(n), UserMessage(f"{n} " * 200)) for n in numbers]
            await storage.save_events("s", batch)
            stored += size
            print(stored, flush=True)

trio.run(main)
"""


def _start(program, *arguments):
    command = [sys.executable, "-W", "error", "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _is_sound(path):
    db = apsw.Connection(str(path))
    try:
        return db.pragma("integrity_check") == "ok"
    finally:
        db.close()


async def test_processes_that_write_one_file_at_once_lose_nothing(tmp_path):
    """Three processes create the file and write sessions and memories at the same moment: none fails, all is there."""
    path, batches = tmp_path / "chat.db", 25
    writers = {name: _start(WRITER, path, name, batches) for name in ("a", "b", "c")}
    for process in writers.values():
        assert process.stdout.readline() == "ready\n"
    for process in writers.values():
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = {name: (process.communicate(timeout=60), process.returncode) for name, process in writers.items()}
    assert dict.fromkeys(writers, (("", ""), 0)) == ends

    async with SQLiteSessionStorage(path) as sessions, SQLiteMemoryStorage(path) as memories:
        for name in writers:
            expected = tuple(SessionEvent(n, moment(n), UserMessage(f"{name} {n}")) for n in range(1, 3 * batches + 1))
            assert expected == await sessions.load_session(name)
        assert len(await memories.search("n", "apple", 1000)) == 3 * batches
    assert _is_sound(path)


def _acknowledged(path, rng):
    """Run a saver, kill it at a random instant, and return the last number that it acknowledged."""
    process = _start(SAVER, path)
    try:
        last = int(process.stdout.readline())
        for _ in range(rng.randrange(12)):
            last = int(process.stdout.readline())
        time.sleep(rng.random() * 0.003)
        process.kill()
        rest = process.stdout.read().split("\n")[:-1]  # a line without its end was not wholly said
        return int(rest[-1]) if rest else last
    finally:
        process.kill()
        process.communicate()


async def _survives_kills(path, kills):
    rng = random.Random(11)
    for _ in range(kills):
        acknowledged = _acknowledged(path, rng)
        async with SQLiteSessionStorage(path) as storage:
            events = await storage.load_session("s")
        expected = tuple(SessionEvent(n, moment(n), UserMessage(f"{n} " * 200)) for n in range(1, len(events) + 1))
        assert expected == events
        assert acknowledged <= len(events) <= acknowledged + 5
        assert len(events) in _ends_of_batches(len(events))
    assert _is_sound(path)


def _ends_of_batches(upto):
    ends, stored = set(), 0
    while stored < upto:
        stored += 1 + stored % 5
        ends.add(stored)
    return ends


async def test_a_killed_process_loses_nothing_it_acknowledged(tmp_path):
    """Killed at five random instants: all acknowledged events are there, in order, and only whole batches beyond."""
    await _survives_kills(tmp_path / "chat.db", 5)


@pytest.mark.long
async def test_fifty_kills_lose_nothing_acknowledged(tmp_path):
    """The same for fifty kills of one file."""
    await _survives_kills(tmp_path / "chat.db", 50)

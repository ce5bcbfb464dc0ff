"""A real process, killed with signal 9 at any instant: what it was promised is there, and nothing is done twice (7)."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
import trio
from youyou import AgentBuilder, AgentConfig, Metadata, ModelInfo, Notices, Tool, ToolCall, ToolResult
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.testing import StrictProvider
from youyou.testing.agents.scripted import say

PATIENCE = 30.0
PATIENCE_OF_SERVER = 60.0
"""Seconds after which a process that tells nothing has failed, for example because it could not start."""


@attrs.define(eq=False)
class Killed:
    """What a killed process had been told: events by session, in order, and turns that had ended."""

    events: list[tuple[str, int, str]]
    turns: list[str]

    @property
    def session(self) -> str | None:
        """The session it had open, if it came so far."""
        return self.events[0][0] if self.events else None


@attrs.define(eq=False)
class Prey:
    """Processes to kill, one after another, on one database."""

    folder: Path
    server: subprocess.Popen[str]
    kills: int = 0

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.folder / "chat.db"

    def marks(self) -> list[str]:
        """What the mutating tool did, in the world outside."""
        marks = self.folder / "marks"
        return marks.read_text().split() if marks.exists() else []

    def _answer(self) -> str:
        """The next line of the server, which writes one at a time."""
        ready, _, _ = select.select([self.server.stdout], [], [], PATIENCE_OF_SERVER)
        assert ready, "the server does not answer"
        return self.server.stdout.readline().strip()

    def kill(self, session: str | None, slow: float, when) -> Killed:
        """Start a process, wait for ``when`` (reads lines from what it gets), kill it."""
        self.kills += 1
        fifo = self.folder / f"told{self.kills}"
        os.mkfifo(fifo)
        told = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        order = [fifo, self.database, self.folder / "marks", slow, *([session] if session else [])]
        self.server.stdin.write(" ".join(map(str, order)) + "\n")
        self.server.stdin.flush()
        pid = int(self._answer())
        try:
            seen = when(told)
        finally:
            # Whatever went wrong: the server waits for this process, and the next test for the server.
            os.kill(pid, signal.SIGKILL)
            gone = self._answer()
        assert "gone" == gone
        with open(told, "rb") as rest:
            os.set_blocking(told, True)
            lines = [json.loads(line) for line in (seen + rest.read()).splitlines()]
        events = [(line["session"], line["event"], line["kind"]) for line in lines if "event" in line]
        return Killed(events, [line["turn"] for line in lines if "turn" in line])


@pytest.fixture(scope="module")
def server():
    """Forks processes to kill, so that none of them pays for the imports."""
    program = Path(__file__).with_name("kill_nine.py")
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as server:
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture
def prey(server, tmp_path):
    """Processes on a database of their own."""
    return Prey(tmp_path, server)


def told_of(kind, then=0.0):
    """The moment when an event of this kind is told, or so many seconds after it."""

    def wait(told):
        seen = b""
        last = time.monotonic() + PATIENCE
        while kind not in seen:
            assert time.monotonic() < last, f"the process never told of {kind!r}; it told: {seen!r}"
            time.sleep(0.001)
            with suppress(BlockingIOError):
                seen += os.read(told, 65_536)
        time.sleep(then)
        return seen

    return wait


def begun(then):
    """So many seconds after the start, perhaps before there is anything."""

    def wait(_):
        time.sleep(then)
        return b""

    return wait


def agent_on(database, provider):
    """An agent that knows the tools, and would mark what it ran."""

    async def charge(_):
        raise AssertionError("run again")

    builder = AgentBuilder(AgentConfig("scripted", notices=Notices.english())).register_model_provider(provider)
    for name in ("fast", "slow", "charge"):
        builder.register_tool(Tool(name, "Once.", {"type": "object"}, charge, mutating=True))
    return builder.register_session_storage(SQLiteSessionStorage(database)).build()


async def goes_on(prey, killed):
    """The promises: everything acknowledged is there, in order; it resumes; no effect came twice or unannounced."""
    async with SQLiteSessionStorage(prey.database) as storage:
        log = await storage.load_session(killed.session)
    assert list(range(1, len(log) + 1)) == [event.seq for event in log]
    told = [(seq, kind) for _, seq, kind in killed.events]
    assert told == sorted(told)
    stored = [(event.seq, type(event.payload).__name__) for event in log]
    assert told == [pair for pair in stored if told[0][0] <= pair[0] <= told[-1][0]]
    payloads = [event.payload for event in log]
    facts = [payload for payload in payloads if isinstance(payload, Metadata)]
    ended = {fact.value["turn_id"] for fact in facts if fact.key == "turn_ended"}
    assert set(killed.turns) <= ended

    marks = Counter(prey.marks())
    started = {fact.value["call_id"] for fact in facts if fact.key == "tool_started"}
    results = {payload.call_id: payload for payload in payloads if isinstance(payload, ToolResult)}
    called = [payload.call_id for payload in payloads if isinstance(payload, ToolCall)]
    assert max(marks.values(), default=0) <= 1
    assert {key for key in marks if key in called} <= started
    charged = {call_id for call_id, result in results.items() if "-" in call_id and not result.is_error}
    assert charged <= set(marks)
    await _resume(prey, killed, called, started, results)
    assert marks == Counter(prey.marks())
    return called, started, results


async def _resume(prey, killed, called, started, results):
    provider = StrictProvider([say("hello")], models=[ModelInfo("scripted", "S", 1_000_000)])
    async with agent_on(prey.database, provider) as agent, await agent.resume_session(killed.session) as session:
        for message in session.history:
            if isinstance(message, ToolResult):
                was = results.get(message.call_id)
                expected = was.outcome if was else "unknown" if message.call_id in started else "skipped"
                assert expected == message.outcome
        result = await (await session.send_message("and now?")).result()
    assert ("completed", "hello", []) == (result.status, result.text, provider.violations)
    async with SQLiteSessionStorage(prey.database) as storage:
        log = await storage.load_session(killed.session)
    answers = Counter(event.payload.call_id for event in log if isinstance(event.payload, ToolResult))
    assert Counter(called) == answers


def hunt(prey, kills, seed, early=0.0):
    """Kill so many processes at random instants, of new sessions and of ones that were killed before.

    ``early``: the share of those that may be killed while they are still opening.
    """
    dice = random.Random(seed)
    sessions, reached = [], Counter()
    for _ in range(kills):
        session = dice.choice(sessions[-3:]) if sessions and dice.random() < 0.6 else None
        moment = dice.uniform(0, 0.2)
        when = begun(moment) if dice.random() < early else told_of(b"event", moment)
        killed = prey.kill(session, 0.02, when)
        if killed.session is None:
            continue
        called, started, results = trio.run(goes_on, prey, killed)
        sessions.append(killed.session)
        reached["between calls and results"] += len(called) > len(results)
        reached["between start and result"] += len(started - set(results)) > 0
        reached["in a session"] += 1
    return reached


def test_five_killed_processes_lose_nothing(prey):
    """A short hunt."""
    assert 5 == hunt(prey, 5, 1)["in a session"]


@pytest.mark.long
def test_two_hundred_killed_processes_lose_nothing(prey):
    """A long one; it must have struck at the instants that matter."""
    reached = hunt(prey, 200, 2, early=0.2)

    assert reached["in a session"] >= 150
    assert reached["between start and result"] >= 20
    assert "ok" == trio.run(_soundness, prey.database)


async def _soundness(database):
    async with SQLiteSessionStorage(database) as storage:
        return await storage._file.run(lambda db: db.pragma("integrity_check"))


def test_a_fast_result_survives_and_a_slow_tool_is_unknown(prey):
    """Killed while the slow one of two tools runs: the fast one's result is there, the other's outcome is unknown."""
    killed = prey.kill(None, 60.0, told_of(b"ToolResult"))

    called, started, results = trio.run(goes_on, prey, killed)

    assert 2 == len(called)
    assert set(called) == started
    assert [called[0]] == list(results)
    assert "ok" == results[called[0]].outcome

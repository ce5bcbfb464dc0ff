"""A person at a real pseudo-terminal, and what is left in the database after that person went away."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs
import pyte
import pytest
import trio
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.core.config import Notices
from youyou.core.history.sendability import sendability_problem
from youyou.core.resume import resume
from youyou.messages.records import Metadata, SessionEvent

PATIENCE = 60.0
# The child makes the pseudo-terminal its own, so that closing it is felt as SIGHUP.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class _Screen(pyte.HistoryScreen):  # type: ignore[misc]  # pyte has no annotations
    """A screen that answers when it is asked where its cursor is, as terminals do."""

    answer: Callable[[bytes], object] = staticmethod(lambda data: None)

    def write_process_input(self, data: str) -> None:
        self.answer(data.encode())


@attrs.define(eq=False)
class Person:
    """Types into ``python -m youyou`` and reads its screen. Waits for what is seen, never for time to pass."""

    process: subprocess.Popen[bytes]
    fd: int
    screen: _Screen
    stream: Any
    raw: str = ""
    """All that the process has sent."""

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        os.write(self.fd, text.encode() + b"\r")

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self.fd, key)

    def ctrl_c(self) -> None:
        """Press Ctrl-C."""
        self.press(b"\x03")

    @property
    def seen(self) -> str:
        """Everything on the screen, with what has scrolled away above it."""
        above = ["".join(line[x].data for x in range(self.screen.columns)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self.screen.display])

    def sees(self, pattern: str, times: int = 1) -> str:
        """Wait until ``pattern`` (a regular expression) stands on the screen, so many times; the last match."""
        end = time.monotonic() + PATIENCE
        while len(found := re.findall(pattern, self.seen)) < times:
            if time.monotonic() > end or not self._read(end):
                raise AssertionError(f"never saw {pattern!r} {times} times; the screen:\n{self.seen}")
        return str(found[-1])

    def _read(self, end: float) -> bool:
        """Take in what is new. False: there will be no more."""
        ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
        if ready:
            try:
                data = os.read(self.fd, 65_536)
            except OSError:
                return False
            self.raw += data.decode("utf-8", "replace")
            self.stream.feed(data)
            return bool(data)
        return True

    def leaves(self) -> int:
        """Wait for the process to end, reading all the while; its exit code."""
        end = time.monotonic() + PATIENCE
        while self._read(end) and time.monotonic() < end:
            pass
        return self.process.wait(max(1.0, end - time.monotonic()))

    def hang_up(self) -> int:
        """Close the terminal's window; the exit code."""
        os.close(self.fd)
        self.fd = -1
        return self.process.wait(PATIENCE)


def environment(home: Path) -> dict[str, str]:
    """What a process of the command line gets to see; warnings are errors there too."""
    own = ("OPENAI", "ANTHROPIC", "YOUYOU", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return kept | {"YOUYOU_HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The directory in which this test's processes keep their files."""
    return tmp_path / "home"


@pytest.fixture
def person(home: Path) -> Iterator[Callable[..., Person]]:
    """Sit down at a terminal: ``person("chat", "--model", "scripted")``."""
    people: list[Person] = []

    def sit_down(*arguments: str, command: Sequence[str] | None = None, **variables: str) -> Person:
        people.append(_sit_down(command or [sys.executable, "-m", "youyou", *arguments], home, variables))
        return people[-1]

    yield sit_down
    for each in people:
        if each.fd >= 0:
            os.close(each.fd)
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()


def _sit_down(command: Sequence[str], home: Path, variables: Mapping[str, str] = MappingProxyType({})) -> Person:
    fd, slave = pty.openpty()
    os.set_inheritable(slave, True)
    screen = _Screen(100, 40, history=2_000)
    screen.answer = lambda data: os.write(fd, data)
    subprocess.run(["stty", "rows", "40", "cols", "100"], stdin=slave, check=True)
    process = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, shutil.which(command[0]) or command[0], *command[1:]],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(home) | dict(variables),
        start_new_session=True,
    )
    os.close(slave)
    return Person(process, fd, screen, pyte.ByteStream(screen))


def run(home: Path, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start ``python -m youyou`` without a terminal."""
    return subprocess.Popen([sys.executable, "-m", "youyou", *arguments], env=environment(home), **options)


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start the command line with pipes: ``start("chat", "-p", "hello", stdout=PIPE)``."""
    started: list[subprocess.Popen[bytes]] = []

    def start_one(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        started.append(run(home, *arguments, **options))
        return started[-1]

    yield start_one
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@attrs.frozen
class Stored:
    """The newest session as it stands in the database."""

    session_id: str
    events: tuple[SessionEvent, ...]

    @property
    def kinds(self) -> list[str]:
        """Class names of the messages, in order."""
        return [type(e.payload).__name__ for e in self.events if not isinstance(e.payload, Metadata)]

    def noted(self, key: str) -> list[Any]:
        """The values noted under this key."""
        return [e.payload.value for e in self.events if isinstance(e.payload, Metadata) and e.payload.key == key]

    @property
    def problem(self) -> str | None:
        """Why the history cannot be sent as it would be resumed; None if it can."""
        return sendability_problem(resume(self.events, Notices()).history)


@pytest.fixture
def stored(home: Path) -> Callable[[], Stored]:
    """Read the newest session; every checksum is checked on the way."""

    async def load() -> Stored:
        async with SQLiteSessionStorage(home / "sessions.db") as storage:
            (newest, *_) = (await storage.list_sessions()).sessions
            return Stored(newest.session_id, tuple(await storage.load_session(newest.session_id) or ()))

    return lambda: trio.run(load)

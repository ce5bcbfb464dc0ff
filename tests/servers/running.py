"""Model servers that are not ours, as processes on the loopback: started within a bound, ended with the test.

They are installed by ``scripts/servers`` into ``build/servers``, which asks npm and pip; where one is missing its tests
are skipped by name. Each has a folder, and a process group, of its own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

INSTALLED = Path(__file__).parents[2] / "build" / "servers"
ESTABLISHED = "01"


@attrs.frozen
class Running:
    """A server that listens."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://127.0.0.1:{self.port}"

    def connections(self) -> int:
        """How many connections it has open."""
        return connections(self.port)


def installed(path: str) -> str:
    """The program at ``path`` below the installed servers, or a skip that says how to get it."""
    program = INSTALLED / path
    if not program.exists():
        pytest.skip(f"{path} is missing: scripts/servers installs the servers that these tests talk to")
    return str(program)


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, folder: Path, *, seconds: float, **env: str) -> Iterator[Running]:
    """Run ``command`` until the block is left; it is given ``seconds`` to listen on ``port``."""
    log = folder / f"{Path(command[0]).name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=os.environ | env,
            start_new_session=True,
        )
    try:
        _wait(process, port, log, seconds)
        yield Running(port, log)
    finally:
        # The group: some servers are a launcher and a child.
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


def _wait(process: subprocess.Popen[bytes], port: int, log: Path, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(
        f"{process.args!r} does not listen after {seconds} s: {log.read_text('utf-8', 'replace')[-2000:]}"
    )


def connections(port: int) -> int:
    """How many established connections end at ``port`` of this machine, as the kernel lists them."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("this system does not list its connections in /proc/net/tcp")
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return sum(int(row[1].partition(":")[2], 16) == port and row[3] == ESTABLISHED for row in rows)

"""A PostgreSQL server of our own: a data folder in /tmp, a free port on the loopback, ended with the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

SECONDS = 60.0
"""How long the server may take to start."""


def binary(name: str) -> str | None:
    """The path of one of PostgreSQL's programs; Debian keeps them out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def unprivileged() -> dict[str, Any]:
    """For ``subprocess``: PostgreSQL refuses to run as root."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "env": {**os.environ, "HOME": "/tmp"}}
    raise RuntimeError("there is no unprivileged user to run PostgreSQL as")


@attrs.define(eq=False)
class Server:
    """A server that can be stopped and started again."""

    folder: Path
    port: int
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """Where it is."""
        return f"postgresql://youyou@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [binary("postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            # The machine does not die in these tests; what dies is the server.
            "fsync": "off",
            "log_min_messages": "panic",
        }
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options], stdout=log, stderr=log, cwd=self.folder, **unprivileged()
            )
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            answer = subprocess.run(
                [binary("pg_isready") or "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
            )
            if answer.returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT: at once, as in a crash. SIGINT: cut connections, then end. Waits for it."""
        if self.process is not None:
            self.process.send_signal(how)
            try:
                self.process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(SECONDS)
            self.process = None


@contextmanager
def running_server(*options: str) -> Iterator[Server]:
    """A new server for the length of a block."""
    folder = Path(tempfile.mkdtemp(prefix="youyou-postgres-", dir="/tmp"))
    server = Server(folder, free_port(), options)
    try:
        user = unprivileged()
        if user:
            os.chown(folder, user["user"], user["group"])
        command = [binary("initdb"), "-D", str(folder / "data"), "-U", "youyou", "-A", "trust", "-N", "-E", "UTF8"]
        subprocess.run([*command, "--locale=C.UTF-8"], check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

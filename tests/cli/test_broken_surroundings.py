"""What a computer does to a command: a home that cannot be written, output that goes nowhere, a full disk. One line on
stderr says what it was, and the exit code is 1; a traceback is for our own mistakes only."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest
from youyou.cli import main

pytestmark = pytest.mark.long  # a process for each test

ASK = ("chat", "--model", "scripted", "-p", "hello")
PRINTING = [ASK, (*ASK, "--json"), ("models",), ("profiles",), ("--help",), ("--version",)]


def one_line(process: Any) -> str:
    """What stderr says, once the process has ended with exit code 1; it is one line and not a traceback."""
    err = process.communicate(timeout=60)[1].decode()
    assert (1, 1) == (process.returncode, err.count("\n")), err
    assert err.startswith("youyou: ")
    return str(err)


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_output_on_a_full_disk_is_one_line(start: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    """/dev/full takes nothing: the system's own words are said, whichever way the command prints."""
    with open("/dev/full", "wb") as full:
        process = start(*arguments, stdout=full, stderr=PIPE)

    assert "cannot write to standard output: No space left on device" in one_line(process)


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_closed_standard_output_is_one_line(start: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    """A descriptor that was closed before the start (``>&-``) is told, and never becomes some other file's."""
    process = start(*arguments, stderr=PIPE, preexec_fn=lambda: os.close(1))

    assert "cannot write to standard output: Bad file descriptor" in one_line(process)


def test_all_three_streams_closed_end_with_1(start: Callable[..., Any]) -> None:
    """Nobody can be told anything; the database stays a database all the same."""
    process = start(*ASK, preexec_fn=lambda: os.closerange(0, 3))

    assert 1 == process.wait(60)


@pytest.mark.parametrize("stream", [0, 2])
def test_a_closed_stream_that_is_not_needed_is_no_error(start: Callable[..., Any], stream: int) -> None:
    """A turn that asks nothing and complains of nothing does not miss stdin or stderr."""
    process = start(*ASK, stdout=PIPE, preexec_fn=lambda: os.close(stream))

    assert (0, True) == (process.wait(60), b"scripted model" in process.stdout.read())


def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path, home: Path) -> None:
    """The line names the directory, the reason, and the variable that chooses another."""
    (tmp_path / "file").write_text("")
    where = tmp_path / "file" / "below"
    process = _with_environment(home, ASK, YOUYOU_HOME=str(where))

    line = one_line(process)
    assert (str(where) in line, "Not a directory" in line, "YOUYOU_HOME" in line) == (True, True, True)


@pytest.mark.parametrize("action", ["list", "show"])
def test_reading_makes_no_directory(
    action: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any
) -> None:
    """Nothing was ever stored where there is no directory, whether it could be made or not."""
    for where in (tmp_path / "new" / "home", Path("/proc/youyou")):
        monkeypatch.setenv("YOUYOU_HOME", str(where))

        assert (action == "show") == main(["sessions", action])

        assert "no session was ever stored here" in capfd.readouterr().err
        assert not where.parent.exists() or where.parent == Path("/proc")


def test_a_read_only_home_is_one_line(home: Path) -> None:
    """/proc takes no directories, no matter who asks."""
    assert "/proc/youyou" in one_line(_with_environment(home, ASK, YOUYOU_HOME="/proc/youyou"))


def test_a_database_that_may_not_grow_is_one_line(start: Callable[..., Any]) -> None:
    """The system refuses to let the file grow: the turn fails in words, the answer so far is on stdout."""
    process = start(
        *ASK, stdout=DEVNULL, stderr=PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))
    )

    assert "STORAGE_ERROR" in one_line(process)


@pytest.mark.long
def test_an_input_history_that_cannot_be_written_does_not_end_the_chat(person: Any, home: Path) -> None:
    """The line is answered; that it will not be remembered is said once."""
    (home / "input_history").mkdir(parents=True)
    me = person("chat", "--model", "scripted")
    me.sees(r"\n idle")
    me.type("good morning")
    me.sees("You said: good morning")
    me.type("good night")
    me.sees("You said: good night")

    assert 1 == me.seen.count("typed lines are not kept")
    me.type("/quit")
    assert 0 == me.leaves()


def _with_environment(home: Path, arguments: tuple[str, ...], **variables: str) -> subprocess.Popen[bytes]:
    own = ("OPENAI", "ANTHROPIC", "YOUYOU", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    command = [sys.executable, "-m", "youyou", *arguments]
    return subprocess.Popen(command, env=kept | variables, stdout=DEVNULL, stderr=PIPE)

"""``youyou chat -p`` in processes of its own: pipes, signals, exit codes."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

ASK = ("chat", "--model", "scripted", "-p")


def test_a_pipe_closed_early_ends_quietly_and_leaves_a_whole_record(
    start: Callable[..., Any], stored: Callable[[], Any]
) -> None:
    """When the reader of --json goes away after one line: exit code 141, nothing on stderr, the turn has its end."""
    process = start(*ASK, "tell me a story", "--json", stdout=PIPE, stderr=PIPE)
    first = json.loads(process.stdout.readline())
    process.stdout.close()

    assert (141, b"") == (process.wait(60), process.stderr.read())
    assert "TextDelta" == first["payload"]["type"]
    assert ["cancelled"] == [value["status"] for value in stored().noted("turn_ended")]
    assert stored().problem is None


@pytest.mark.long
def test_ctrl_c_stops_the_one_turn_softly_and_ends_with_130(
    start: Callable[..., Any], stored: Callable[[], Any]
) -> None:
    """SIGINT while tools run one after the other: the running one finishes, the others are skipped."""
    process = start(*ASK, "note: one; two; three", "--json", stdout=PIPE)
    process.stdout.readline()

    process.send_signal(signal.SIGINT)

    events = [json.loads(line)["payload"] for line in process.stdout]
    assert 130 == process.wait(60)
    assert ["ToolCallEnd", "TurnCancelled"] == [event["type"] for event in events]
    assert (True, 2) == (events[0]["success"], len(events[1]["skipped"]))
    assert 3 == stored().kinds.count("ToolResult")


@pytest.mark.long
def test_a_second_ctrl_c_cuts_the_running_tool(start: Callable[..., Any], stored: Callable[[], Any]) -> None:
    """The second SIGINT cuts the tool that the first one let run; the turn's end says so."""
    process = start(*ASK, "wait 500", "--json", stdout=PIPE)
    kinds = [json.loads(process.stdout.readline())["payload"]["type"] for _ in range(2)]

    process.send_signal(signal.SIGINT)
    # Two signals sent at once may arrive as one; the tool's progress of the next second comes after the first.
    process.stdout.readline()
    process.send_signal(signal.SIGINT)

    assert ["ToolCallStart", "ToolProgress"] == kinds

    over = json.loads(process.stdout.read().splitlines()[-1])["payload"]
    assert 130 == process.wait(60)
    assert ("TurnCancelled", "cancelled", 1) == (over["type"], over["reason"], len(over["interrupted"]))
    assert stored().problem is None


@pytest.mark.long
def test_sigterm_is_heard_while_nobody_reads_the_output(start: Callable[..., Any], stored: Callable[[], Any]) -> None:
    """A reader that stalls with a full pipe does not keep SIGTERM from ending the command."""
    process = start(*ASK, "tell me a story", "--json", stdout=PIPE, stderr=DEVNULL)
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    _wait_until_full(process.stdout.fileno())

    process.terminate()

    assert 143 == process.wait(15)
    assert stored().problem is None


def _wait_until_full(fd: int) -> None:
    """Until the pipe has content that grows no more for half a second: twenty words."""
    end = time.monotonic() + 60
    seen, since = 0, time.monotonic()
    while time.monotonic() - since < 0.5 or seen < 3_000:
        assert time.monotonic() < end
        now = int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.01)


@pytest.mark.long
def test_the_prompt_may_come_from_a_pipe(start: Callable[..., Any]) -> None:
    """-p - reads the text from stdin; the answer goes to stdout and what the tools did to stderr."""
    process = start(*ASK, "-", stdin=PIPE, stdout=PIPE, stderr=PIPE)

    out, err = process.communicate(b"what is 6 * 7?", 60)

    assert (0, "Here is what came back:\n\n- 6 * 7 = 42\n") == (process.returncode, out.decode())
    assert err.decode().startswith("youyou: calculator: 6 * 7 = 42  (")


@pytest.mark.long
def test_chat_without_a_terminal_names_the_way_out(start: Callable[..., Any]) -> None:
    """Exit code 2 and the option to use instead."""
    process = start("chat", "--model", "scripted", stdin=DEVNULL, stdout=PIPE, stderr=PIPE)

    _, err = process.communicate(timeout=60)

    assert 2 == process.returncode
    assert b"youyou chat -p" in err


def test_help_imports_nothing_that_it_does_not_need() -> None:
    """Neither an SDK, nor the terminal's packages, nor the database are imported before they are used."""
    heavy = ["rich", "prompt_toolkit", "openai", "anthropic", "apsw", "xllamacpp"]
    code = f"import sys; from youyou.cli import main; main(['--help']); print([n for n in {heavy} if n in sys.modules])"

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout

    assert b"exit codes:" in out
    assert "[]" == out.decode().splitlines()[-1]


@pytest.mark.long
def test_help_into_a_closed_pipe_is_quiet(start: Callable[..., Any]) -> None:
    """Whatever prints: when the reader goes away, the exit code is 141 and stderr is empty."""
    read, write = os.pipe()
    os.close(read)
    process = start("--help", stdout=write, stderr=PIPE)
    os.close(write)

    assert (141, b"") == (process.wait(60), process.stderr.read())


@pytest.mark.long
def test_the_demo_on_the_embedded_model_keeps_its_promises_in_two_minutes(start: Callable[..., Any]) -> None:
    """The first command of the README: a real model in the process, tools, cancels and a resume, in time."""
    began = time.monotonic()
    process = start("demo", stdout=PIPE)

    out = process.communicate(timeout=180)[0].decode()

    assert 0 == process.returncode, out
    assert "all of it held" in out
    assert time.monotonic() - began < 120

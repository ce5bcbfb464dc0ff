"""Everything that the command line writes, through one cleaner.

A terminal is sent no control characters but those of a line of text. What cannot be written is an `OutputFailed`, whose
text says why, never a traceback; a reader who went away ends the command as SIGPIPE would. An async command writes with
`Output`, whose writes wait in a thread: a reader who stalls holds up no signal, no turn and no cancel.

    put("to stdout\n")          # sync
    say("to stderr\n")          # sync, never raises
    await Output(stops).write("hello\n")
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TextIO

import attrs
import trio

from .signals import SIGPIPE, Stops

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NAMES = {1: "standard output", 2: "standard error"}


class OutputFailed(Exception):
    """What was to be written could not be: the text says why."""

    def __init__(self, fd: int, error: OSError) -> None:
        super().__init__(f"cannot write to {_NAMES[fd]}: {error.strerror}")


def printable(text: str) -> str:
    """``text`` without what would move a terminal's cursor, change its title or reverse its writing direction."""
    return _CONTROL.sub("", text.replace("\r\n", "\n")).encode("utf-8", "replace").decode()


def occupy_standard_streams() -> None:
    """Make sure that descriptors 0, 1 and 2 are open, and that no file that is opened later becomes one of them.

    A stream that was closed before the start (``>&-``) would lend its number to the next file, a database perhaps, and
    what is printed would go there. Each is opened the wrong way round, so that using it fails and is told.
    """
    for fd, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is given out: this one, since those below it are open.
            os.open(os.devnull, mode)
            os.set_inheritable(fd, True)
    for name, fd, how in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, how, encoding="utf-8", closefd=False))  # noqa: SIM115  kept for the process


def put(text: str) -> None:
    """Write to stdout, now. Blocking: for commands without an event loop.

    Raises:
        OutputFailed: it cannot be written.
        BrokenPipeError: the reader went away.
    """
    try:
        _write_stream(sys.stdout, text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(1, error) from error


def say(text: str) -> None:
    """Write to stderr, now. A stderr that cannot be written leaves nobody to tell, so the error is ignored."""
    with suppress(OSError):
        _write_stream(sys.stderr, printable(text))


def _write_stream(stream: TextIO, text: str) -> None:
    if stream.isatty():
        text = printable(text)
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


@attrs.define(eq=False)
class Output:
    """Where a command without a screen of its own writes."""

    _stops: Stops

    async def write(self, text: str) -> None:
        """Write to stdout.

        Cancellation: a checkpoint; part of the text may have been written, or may be later.

        Raises:
            OutputFailed: it cannot be written.
        """
        await self._send(1, text)

    async def tell(self, text: str) -> None:
        """Write to stderr. Cancellation: as for `write`. A stderr that cannot be written is ignored."""
        with suppress(OutputFailed):
            await self._send(2, text)

    async def _send(self, fd: int, text: str) -> None:
        if os.isatty(fd):
            text = printable(text)
        try:
            await trio.to_thread.run_sync(_write_all, fd, text.encode("utf-8", "replace"), abandon_on_cancel=True)
        except BrokenPipeError:
            self._stops.stop(SIGPIPE)
            await trio.lowlevel.checkpoint()
        except OSError as error:
            raise OutputFailed(fd, error) from error


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]

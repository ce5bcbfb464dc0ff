"""Text to stdout and stderr that never holds up a signal, a turn or a cancel.

A write waits in a thread, so that a reader who stalls stops nothing but the writing; a reader who went away ends the
command as SIGPIPE would. A terminal is sent no control characters but those of a line of text.

    out = Output(stops)
    await out.write("hello\n")
    await out.tell("on stderr\n")
"""

from __future__ import annotations

import os
import re
import sys

import attrs
import trio

from .signals import SIGPIPE, Stops

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """``text`` without what would move a terminal's cursor, change its title or turn its writing round."""
    return _CONTROL.sub("", text.replace("\r\n", "\n")).encode("utf-8", "replace").decode()


@attrs.define(eq=False)
class Output:
    """Where a command without a screen of its own writes."""

    _stops: Stops

    async def write(self, text: str) -> None:
        """Write to stdout.

        Cancellation: a checkpoint; part of the text may have been written, or may be later.
        """
        await self._send(1, text)

    async def tell(self, text: str) -> None:
        """Write to stderr. Cancellation: as for `write`."""
        await self._send(2, text)

    async def _send(self, fd: int, text: str) -> None:
        if os.isatty(fd):
            text = printable(text)
        try:
            await trio.to_thread.run_sync(_write_all, fd, text.encode("utf-8", "replace"), abandon_on_cancel=True)
        except BrokenPipeError:
            self._stops.stop(SIGPIPE)
            await trio.lowlevel.checkpoint()


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def flush() -> None:
    """Send what Python's own buffers hold, before anything is written past them."""
    sys.stdout.flush()
    sys.stderr.flush()

"""How a command ends: its exit code, and what a person reads when something went wrong. Never a traceback for an error
that has words of its own.

    return guarded(command, arguments)      # 0, or the code that stands in EXIT_CODES
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import TypeVar

from ...adapters.extras import import_extra
from ...messages.errors import AgentCrashed, AgentError, InvalidConfig
from .output import OutputFailed, occupy_standard_streams, say

A = TypeVar("A")

OK = 0
ERROR = 1
USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

_SIGNALS = """\
  129  the terminal was closed (SIGHUP)
  130  Ctrl-C (SIGINT) stopped a turn without a terminal, or the command
  141  the reader of the output went away (SIGPIPE); nothing is said about it
  143  SIGTERM
"""

EXIT_CODES = f"""\
exit codes:
  0    all went well, or you left the conversation
  1    an error, a failed turn, or a failure that 'explore' found
  2    the command was not understood
{_SIGNALS}\
In every case the database holds all that was said, and the session can be resumed."""

_FAILURES = {"chat": "an error, or a failed turn", "demo": "an error, or a promise that did not hold"}
_FAILURES["explore"] = "an error, or a failure that was found"


def exit_codes(command: str) -> str:
    """The exit codes of one command, for its own help."""
    if command == "youyou":
        return EXIT_CODES
    failed = _FAILURES.get(command, "an error")
    return f"exit codes:\n  0    all went well\n  1    {failed}\n  2    the command was not understood\n{_SIGNALS}"


class UsageError(Exception):
    """What was typed cannot be done. The text says what to type instead."""


class CommandError(Exception):
    """The command failed. The text is all that a person has to know."""


def guarded(command: Callable[[A], int], arguments: A) -> int:
    """Run ``command``; turn what it raises into words on stderr and an exit code."""
    occupy_standard_streams()
    return _flushed(_outcome(command, arguments))


def _outcome(command: Callable[[A], int], arguments: A) -> int:
    try:
        return _code_of(command, arguments)
    except UsageError as error:
        return _complain(error, USAGE)
    except (AgentError, CommandError, OutputFailed) as error:
        if isinstance(error, AgentCrashed):
            return _own_fault(error)
        return _complain(error, ERROR)
    except ModuleNotFoundError as error:
        return _complain(error, ERROR) if "pip install" in str(error) else _own_fault(error)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _complain(CommandError(f"{where}{error.strerror or error}"), ERROR)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _own_fault(error)


def _own_fault(error: Exception) -> int:
    """A traceback is for the person who fixes this program."""
    say("".join(traceback.format_exception(error)))
    return ERROR


def _code_of(command: Callable[[A], int], arguments: A) -> int:
    try:
        return command(arguments)
    except SystemExit as leaving:
        # The parser leaves in this way, after it has printed its help or what was wrong.
        return leaving.code if isinstance(leaving.code, int) else OK


def _flushed(code: int) -> int:
    """``code``, once what was printed is out; what cannot be written is let go, so that Python's end is quiet."""
    for stream, fd in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError as error:
            if fd == 1 and not isinstance(error, BrokenPipeError) and code == OK:
                say(f"youyou: {OutputFailed(fd, error)}\n")
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), fd)
            code = code or (BROKEN_PIPE if isinstance(error, BrokenPipeError) else ERROR)
    return code


def require(package: str, extra: str) -> None:
    """Raise `CommandError`, with what to do about it, unless ``package`` can be imported."""
    try:
        import_extra(package, extra)
    except InvalidConfig as error:
        raise CommandError(error.message) from error


def _complain(error: Exception, code: int) -> int:
    notes = "".join(f"\n  also: {note}" for note in getattr(error, "__notes__", ()))
    say(f"youyou: {error}{notes}\n")
    return code

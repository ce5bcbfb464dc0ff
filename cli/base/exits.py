"""How a command ends: its exit code, and what a person reads when something went wrong. Never a traceback for an error
that has words of its own.

    return guarded(command, arguments)      # 0, or the code that stands in EXIT_CODES
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from ...messages.errors import AgentCrashed, AgentError

A = TypeVar("A")

OK = 0
ERROR = 1
USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

EXIT_CODES = """\
exit codes:
  0    all went well, or you left the conversation
  1    an error, a failed turn, or a failure that 'explore' found
  2    the command was not understood
  129  the terminal was closed (SIGHUP)
  130  Ctrl-C (SIGINT) stopped a turn without a terminal, or the command
  141  whoever read the output went away (SIGPIPE); nothing is said about it
  143  SIGTERM
In every case the database holds all that was said, and the session can be resumed."""


class UsageError(Exception):
    """What was typed cannot be done. The text says what to type instead."""


class CommandError(Exception):
    """The command failed. The text is all that a person has to know."""


def guarded(command: Callable[[A], int], arguments: A) -> int:
    """Run ``command``; turn what it raises into words on stderr and an exit code."""
    try:
        return _flushed(_code_of(command, arguments))
    except UsageError as error:
        return _say(error, USAGE)
    except AgentCrashed as error:
        traceback.print_exception(error)
        return ERROR
    except (AgentError, CommandError) as error:
        return _say(error, ERROR)
    except ModuleNotFoundError as error:
        if "pip install" not in str(error):
            raise
        return _say(error, ERROR)
    except BrokenPipeError:
        return _flushed(BROKEN_PIPE)
    except KeyboardInterrupt:
        return INTERRUPTED


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
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), fd)
            code = code or (BROKEN_PIPE if isinstance(error, BrokenPipeError) else ERROR)
    return code


def require(package: str, extra: str) -> None:
    """Raise `CommandError` with the command to run unless ``package`` can be imported."""
    try:
        import_module(package)
    except ImportError as error:
        raise CommandError(f"the package {package!r} is missing; run: pip install 'youyou[{extra}]'") from error


def _say(error: Exception, code: int) -> int:
    notes = "".join(f"\n  also: {note}" for note in getattr(error, "__notes__", ()))
    print(f"youyou: {error}{notes}", file=sys.stderr)
    return code

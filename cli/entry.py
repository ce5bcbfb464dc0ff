"""The entry point. The commands are in the folders beside this file."""

from __future__ import annotations

from collections.abc import Sequence

from .base.exits import guarded
from .parser import build_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: ``main(["chat", "-p", "hello"])``; the exit code.

    Reads ``sys.argv`` when ``argv`` is None. ``youyou --help`` lists the commands and the exit codes.
    """
    return guarded(_run, argv)


def _run(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    code: int = arguments.run(arguments)
    return code

"""The command line: ``youyou`` and ``python -m youyou``. Only the entry; the commands live in `youyou.commands`."""

from __future__ import annotations

from collections.abc import Sequence

from .commands.exits import guarded
from .commands.parser import build_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the arguments say; the exit code. ``youyou --help`` tells the commands and the codes."""
    return guarded(_run, argv)


def _run(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    code: int = arguments.run(arguments)
    return code

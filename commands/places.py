"""Where the command line keeps its files: one directory of the user's, or the one that ``YOUYOU_HOME`` names."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_dir() -> Path:
    """The directory, made if need be and readable by its owner only."""
    chosen = os.environ.get("YOUYOU_HOME")
    where = Path(chosen) if chosen else _base() / "youyou"
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    return where


def _base() -> Path:
    name = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_DATA_HOME"
    given = os.environ.get(name)
    return Path(given) if given else Path.home() / ".local" / "share"


def database(given: str | None) -> str:
    """The database to use: ``given``, or the one in the user's directory."""
    return given if given is not None else str(data_dir() / "sessions.db")


def input_history() -> str:
    """What was typed in earlier conversations."""
    return str(data_dir() / "input_history")

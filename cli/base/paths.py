"""Where the command line keeps its files: the user's data directory, or the directory that ``YOUYOU_HOME`` names."""

from __future__ import annotations

import os
from pathlib import Path

from .exits import CommandError, require


def data_dir() -> Path:
    """The directory, made if need be and readable by its owner only.

    Raises:
        CommandError: it cannot be made.
    """
    where = _chosen_dir()
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"cannot make the directory {where}: {error.strerror}; set YOUYOU_HOME to a directory that you may write to"
        ) from error
    return where


def _chosen_dir() -> Path:
    chosen = os.environ.get("YOUYOU_HOME")
    return Path(chosen).absolute() if chosen else _user_data()


def _user_data() -> Path:
    require("platformdirs", "cli")
    from platformdirs import user_data_path

    return user_data_path("youyou", appauthor=False)


def database(given: str | None, *, make_directory: bool = True) -> str:
    """The database to use, as an absolute path: ``given``, or the one in the user's directory."""
    if given == ":memory:":
        return given
    if given is not None:
        return os.path.abspath(given)
    return str((data_dir() if make_directory else _chosen_dir()) / "sessions.db")


def input_history() -> str:
    """The file with the lines that were typed in earlier conversations."""
    return str(data_dir() / "input_history")

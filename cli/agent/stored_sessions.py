"""The database of sessions: opening it, and finding the one that a person means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.ports.protocols import SessionStorage
from ...messages.records import SessionSummary
from ..base import paths
from ..base.exits import CommandError, UsageError

if TYPE_CHECKING:
    from ...adapters.sqlite import SQLiteSessionStorage

SHORTEST_PREFIX = 4
"""Characters of an id that name a session to delete."""
NEWEST = ""
"""The query for the newest session: ``--resume`` without an id."""


def open_storage(db: str | None) -> SQLiteSessionStorage:
    """The session storage in the file ``db``, or in the usual one.

    Raises:
        ModuleNotFoundError: apsw is not installed.
    """
    from ...adapters.sqlite import SQLiteSessionStorage

    return SQLiteSessionStorage(paths.database(db))


async def find_session(storage: SessionStorage, query: str) -> SessionSummary:
    """The one session that ``query`` names: the beginning of its id, or a part of its title; the newest for `NEWEST`.

    Raises:
        CommandError: there is none, or more than one.
    """
    found = await (storage.find_session(query) if query != NEWEST else _newest(storage))
    by_id = [each for each in found if each.session_id.startswith(query)]
    return _only(by_id or list(found), query)


def _only(found: Sequence[SessionSummary], query: str) -> SessionSummary:
    match found:
        case []:
            raise CommandError("there is no such session; 'youyou sessions list' shows those that there are")
        case [one]:
            return one
        case several:
            lines = "\n".join(f"  {summary_line(each)}" for each in several[:8])
            raise CommandError(f"{len(several)} sessions fit {query!r}; give more of the id:\n{lines}")


async def find_by_id(storage: SessionStorage, prefix: str) -> SessionSummary:
    """The session with this id, or the only one whose id begins so. For what cannot be taken back: no titles.

    Raises:
        UsageError: ``prefix`` is not a whole id and shorter than four characters.
        CommandError: there is none, or more than one.
    """
    found = await storage.find_session(prefix) if prefix else ()
    if whole := [each for each in found if each.session_id == prefix]:
        return whole[0]
    if len(prefix) < SHORTEST_PREFIX:
        raise UsageError(f"{prefix!r} is too short; give at least {SHORTEST_PREFIX} characters of a session's id")
    return _only([each for each in found if each.session_id.startswith(prefix)], prefix)


async def _newest(storage: SessionStorage) -> Sequence[SessionSummary]:
    page = await storage.list_sessions(limit=20)
    return [each for each in page.sessions if each.message_count > 0][:1]


def summary_line(summary: SessionSummary) -> str:
    """A session on one line."""
    when = f"{summary.updated_at.astimezone():%Y-%m-%d %H:%M}"
    title = " ".join(summary.title.split())
    return f"{summary.session_id[:12]}  {when}  {summary.message_count:4} messages  {title}"


def database_missing(db: str | None) -> bool:
    """Whether nothing was ever stored there; reading would make an empty file."""
    return not os.path.exists(paths.database(db, make_directory=False))

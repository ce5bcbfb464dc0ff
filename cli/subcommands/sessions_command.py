"""``youyou sessions list | show | delete``: what is stored, without an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ...messages.codec import to_json
from ...messages.records import Metadata, SessionSummary
from ..agent.stored_sessions import NEWEST, database_missing, find_session, open_storage, summary_line
from ..base import wording
from ..base.exits import OK, CommandError
from ..base.output import Output
from ..base.signals import Stops

if TYPE_CHECKING:
    from ...adapters.sqlite import SQLiteSessionStorage


@asynccontextmanager
async def _stored(db: str | None) -> AsyncIterator[SQLiteSessionStorage]:
    if database_missing(db):
        raise CommandError("no session was ever stored here; 'youyou chat' begins one")
    async with open_storage(db) as storage:
        yield storage


async def list_sessions(db: str | None, limit: int, as_json: bool, stops: Stops) -> int:
    """Print the newest sessions, one a line."""
    out = Output(stops)
    if database_missing(db):
        await out.tell("no session was ever stored here; 'youyou chat' begins one\n")
        return OK
    async with _stored(db) as storage:
        for summary in await _newest(storage, limit):
            await out.write((to_json(summary) if as_json else summary_line(summary)) + "\n")
    return OK


async def _newest(storage: SQLiteSessionStorage, limit: int) -> Sequence[SessionSummary]:
    page = await storage.list_sessions(limit=limit)
    return page.sessions


async def show_session(db: str | None, query: str | None, as_json: bool, stops: Stops) -> int:
    """Print one session's messages; with ``as_json`` everything that is stored of it."""
    out = Output(stops)
    async with _stored(db) as storage:
        found = await find_session(storage, query or NEWEST)
        events = await storage.load_session(found.session_id) or ()
    if not as_json:
        await out.write(f"{summary_line(found)}\n\n")
    for event in events:
        if as_json:
            await out.write(to_json(event) + "\n")
        elif not isinstance(event.payload, Metadata):
            who, what = wording.message_text(event.payload)
            await out.write(f"{who:>14}  {what.rstrip().replace(chr(10), chr(10) + ' ' * 16)}\n")
    return OK


async def delete_sessions(db: str | None, queries: Sequence[str], stops: Stops) -> int:
    """Delete the sessions that these beginnings of ids name; none if one of them is unclear."""
    out = Output(stops)
    async with _stored(db) as storage:
        found = [await find_session(storage, query) for query in queries]
        for summary in dict.fromkeys(found):
            await storage.delete_session(summary.session_id)
            await out.write(f"deleted {summary_line(summary)}\n")
    return OK

"""``youyou sessions``: what is stored, without an agent."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import trio

from ...core.randomness import new_id
from ...messages.codec import to_json
from ...messages.errors import SessionTaken
from ...messages.history import Message
from ...messages.records import Metadata, SessionEvent, SessionSummary
from ..agent.stored_sessions import (
    NEWEST,
    database_missing,
    find_by_id,
    find_session,
    open_storage,
    summary_line,
)
from ..base import wording
from ..base.exits import INTERRUPTED, OK, CommandError, UsageError
from ..base.output import Output
from ..base.signals import Stops

if TYPE_CHECKING:
    from ...adapters.sqlite import SQLiteSessionStorage

_CLAIM_MS = 15_000
_NOTHING = "no session was ever stored here; 'youyou chat' begins one"


@asynccontextmanager
async def _stored(db: str | None) -> AsyncIterator[SQLiteSessionStorage]:
    if database_missing(db):
        raise CommandError(_NOTHING)
    async with open_storage(db) as storage:
        yield storage


@asynccontextmanager
async def _claimed(storage: SQLiteSessionStorage, session_id: str, *, steal: bool = False) -> AsyncIterator[None]:
    """Within the block nobody else may open the session; `SessionTaken` where somebody has it open."""
    owner = new_id()
    try:
        claim = await storage.claim(session_id, owner=owner, address="youyou sessions", ttl_ms=_CLAIM_MS, steal=steal)
    except SessionTaken as error:
        raise CommandError(
            f"session {session_id[:12]} is open elsewhere ({error.address or error.owner}); close it there first"
        ) from error
    try:
        yield
    finally:
        with trio.move_on_after(1, shield=True):
            await storage.release(session_id, owner=owner, epoch=claim.epoch)


async def list_sessions(db: str | None, limit: int, as_json: bool, stops: Stops) -> int:
    """Print the newest sessions, one a line."""
    out = Output(stops)
    if database_missing(db):
        await out.tell(f"{_NOTHING}\n")
        return OK
    async with _stored(db) as storage:
        page = await storage.list_sessions(limit=limit)
        for summary in page.sessions:
            await out.write((to_json(summary) if as_json else summary_line(summary)) + "\n")
    return OK


async def show_session(db: str | None, query: str | None, as_json: bool, stops: Stops) -> int:
    """Print one session's messages; with ``as_json`` everything that is stored of it."""
    out = Output(stops)
    async with _stored(db) as storage:
        found, events = await _read(storage, query or NEWEST)
    if as_json:
        await _write_json(out, events)
        return OK
    await out.write(f"{summary_line(found)}\n\n")
    for message in _messages(events):
        who, what = wording.message_text(message)
        await out.write(f"{who:>14}  {what.rstrip().replace(chr(10), chr(10) + ' ' * 16)}\n")
    return OK


async def export_session(db: str | None, query: str | None, as_json: bool, stops: Stops) -> int:
    """Print one session as a Markdown document; with ``as_json`` everything that is stored of it."""
    out = Output(stops)
    async with _stored(db) as storage:
        found, events = await _read(storage, query or NEWEST)
    if as_json:
        await _write_json(out, events)
        return OK
    await out.write(f"# {' '.join(found.title.split()) or found.session_id}\n\n")
    await out.write(f"Session `{found.session_id}`, last changed {found.updated_at.astimezone():%Y-%m-%d %H:%M %Z}.\n")
    for message in _messages(events):
        who, what = wording.message_text(message)
        # What was called and what came back is quoted as it is; what was said is Markdown already.
        text = what if who.split()[0] in ("you", "model") else _fenced(what)
        await out.write(f"\n## {who}\n\n{text.rstrip()}\n")
    return OK


def _fenced(text: str) -> str:
    """A code block that no line of ``text`` can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.rstrip()}\n{fence}"


async def search_sessions(db: str | None, words: str, limit: int, as_json: bool, stops: Stops) -> int:
    """Print the sessions in whose title or messages ``words`` stand, the newest first, with the first such place."""
    if not words.strip():
        raise UsageError("nothing to search for; give a word or a few")
    out = Output(stops)
    wanted, left, cursor = words.casefold(), limit, None
    async with _stored(db) as storage:
        while left:
            page = await storage.list_sessions(cursor)
            for summary in page.sessions:
                place = await _place(storage, summary, wanted)
                if place is not None and left:
                    left -= 1
                    await out.write(to_json(summary) + "\n" if as_json else f"{summary_line(summary)}\n{place}")
            cursor = page.next_cursor
            if cursor is None:
                return OK
    return OK


async def _place(storage: SQLiteSessionStorage, summary: SessionSummary, wanted: str) -> str | None:
    """A line with the first message that holds what is wanted; "" for the title alone; None: it is not there."""
    for message in _messages(await storage.load_session(summary.session_id) or ()):
        who, what = wording.message_text(message)
        at = what.casefold().find(wanted)
        if at >= 0:
            return f"{who:>14}  {wording.shorten(what[max(0, at - 30) :], 80)}\n"
    return "" if wanted in summary.title.casefold() else None


async def rename_session(db: str | None, query: str, title: str, stops: Stops) -> int:
    """Give a session another title."""
    if not title.strip():
        raise UsageError("a title must have at least one character that shows")
    async with _stored(db) as storage:
        found, events = await _read(storage, query)
        async with _claimed(storage, found.session_id):
            named = SessionEvent(events[-1].seq + 1, datetime.now(UTC), Metadata("title", title))
            await storage.save_events(found.session_id, [named])
    await Output(stops).write(f"{found.session_id[:12]} is now {' '.join(title.split())}\n")
    return OK


async def delete_sessions(db: str | None, prefixes: Sequence[str], yes: bool, steal: bool, stops: Stops) -> int:
    """Delete the sessions with these ids for good; none of them if one is unclear, or if the answer is not yes.

    One that is open elsewhere is left alone, unless ``steal``: then it ends there with `SESSION_TAKEN`.
    """
    out = Output(stops)
    async with _stored(db) as storage:
        found = list(dict.fromkeys([await find_by_id(storage, prefix) for prefix in prefixes]))
        if not yes and not await _agreed(out, found):
            await out.tell("nothing was deleted\n")
            return INTERRUPTED
        for summary in found:
            async with _claimed(storage, summary.session_id, steal=steal):
                await storage.delete_session(summary.session_id)
            await out.write(f"deleted {summary_line(summary)}\n")
    return OK


async def _agreed(out: Output, found: Sequence[SessionSummary]) -> bool:
    if not os.isatty(0):
        raise UsageError("stdin is not a terminal, so nobody can be asked; say --yes")
    for summary in found:
        await out.tell(f"  {summary_line(summary)}\n")
    await out.tell(f"delete {'this session' if len(found) == 1 else f'these {len(found)} sessions'} for good? [y/N] ")
    answer = await trio.to_thread.run_sync(os.read, 0, 1024, abandon_on_cancel=True)
    return answer.decode("utf-8", "replace").strip().lower() in ("y", "yes")


async def _read(storage: SQLiteSessionStorage, query: str) -> tuple[SessionSummary, Sequence[SessionEvent]]:
    found = await find_session(storage, query)
    events = await storage.load_session(found.session_id)
    if not events:
        raise CommandError(f"session {found.session_id} was deleted in this moment")
    return found, events


def _messages(events: Sequence[SessionEvent]) -> list[Message]:
    return [event.payload for event in events if not isinstance(event.payload, Metadata)]


async def _write_json(out: Output, events: Sequence[SessionEvent]) -> None:
    for event in events:
        await out.write(to_json(event) + "\n")

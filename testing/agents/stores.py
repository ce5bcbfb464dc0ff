"""Storages that live in memory: for tests, simulations and programs that need nothing to last (semantics 7, 12).

They keep the contract of the ports to the letter, are deterministic, and every call is a checkpoint. ``delay`` is how
many seconds of Trio's clock a call takes before it has its effect, which is one synchronous step: a call that raises
`trio.Cancelled` did not happen.

    storage = InMemorySessionStorage(delay=1.0)
    await storage.save_events("s1", [SessionEvent(1, now, UserMessage("hi"))])
    storage.events("s1")                                        # what is there, without a checkpoint
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil, inf

import attrs
import trio

from ...core.memory.search_terms import fold, index_terms, is_prefix, search_terms
from ...core.ports.appending import new_events
from ...core.ports.protocols import SessionClaim
from ...messages.errors import SessionTaken, StorageError
from ...messages.history import Message
from ...messages.records import Memory, Metadata, SessionEvent, SessionPage, SessionSummary


async def _pass(delay: float) -> None:
    await trio.lowlevel.checkpoint()
    if delay:
        await trio.sleep(delay)


def _summary(session_id: str, events: Sequence[SessionEvent]) -> SessionSummary:
    titles = [e.payload.value for e in events if isinstance(e.payload, Metadata) and e.payload.key == "title"]
    moments = [event.timestamp for event in events]
    count = sum(isinstance(event.payload, Message) for event in events)
    return SessionSummary(session_id, str(titles[-1]) if titles else "", min(moments), max(moments), count)


def _position(summary: SessionSummary) -> tuple[datetime, str]:
    return summary.updated_at, summary.session_id


def _parse_cursor(cursor: str) -> tuple[datetime, str]:
    moment, _, session_id = cursor.partition(" ")
    try:
        return datetime.fromisoformat(moment), session_id
    except ValueError:
        raise StorageError(f"{cursor!r} is not a cursor: pass the next_cursor of a page, or None to begin") from None


@attrs.define(eq=False)
class InMemorySessionStorage:
    """Keeps sessions in a dict.

    Cancellation: every coroutine is a checkpoint; if `trio.Cancelled` comes out, it did not happen.

    Args:
        delay: seconds that each call takes.
    """

    delay: float = 0.0
    """Seconds that each call takes."""
    _sessions: dict[str, list[SessionEvent]] = attrs.field(factory=dict, init=False)

    def events(self, session_id: str) -> tuple[SessionEvent, ...]:
        """The events of a session in order, none for an unknown one. Not a checkpoint."""
        return tuple(self._sessions.get(session_id, ()))

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        """Append one batch, all or nothing. An event that is stored already is ignored (semantics 7).

        Raises:
            SessionTaken: another event has one of the numbers: the session has another writer.
            SessionNotFound: the session is not stored, and the batch does not begin it.
            StorageError: the numbers leave a gap.
        """
        # Taken before the wait: the caller owns the sequence and may go on filling it.
        batch = tuple(events)
        await _pass(self.delay)
        new = new_events(session_id, self._sessions.get(session_id, ()), batch)
        if new:
            self._sessions.setdefault(session_id, []).extend(new)

    async def load_session(self, session_id: str) -> Sequence[SessionEvent] | None:
        """All events in order, or None when there is no such session."""
        await _pass(self.delay)
        return self.events(session_id) if session_id in self._sessions else None

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """A page of summaries, the most recently updated first. ``limit`` below 1 counts as 1.

        Raises:
            StorageError: ``cursor`` is not one that a page gave.
        """
        await _pass(self.delay)
        found = self._summaries()
        if cursor is not None:
            after = _parse_cursor(cursor)
            found = [summary for summary in found if _position(summary) < after]
        page, rest = found[: max(1, limit)], found[max(1, limit) :]
        return SessionPage(page, f"{page[-1].updated_at.isoformat()} {page[-1].session_id}" if rest else None)

    async def find_session(self, query: str) -> Sequence[SessionSummary]:
        """Sessions whose id starts with ``query`` or whose title contains it, whatever its case."""
        await _pass(self.delay)
        wanted = fold(query)
        return tuple(s for s in self._summaries() if s.session_id.startswith(query) or wanted in fold(s.title))

    async def delete_session(self, session_id: str) -> None:
        """Forget a session. Unknown ids are not an error."""
        await _pass(self.delay)
        self._sessions.pop(session_id, None)

    def _summaries(self) -> list[SessionSummary]:
        found = [_summary(session_id, self.events(session_id)) for session_id in self._sessions]
        return sorted(found, key=_position, reverse=True)


def _newness(memory: Memory) -> tuple[datetime, str]:
    return memory.updated_at, memory.id


def _relevance(memory: Memory, query: str) -> int:
    """How many terms of ``query`` the memory holds. A query of nothing but signs is looked for as it is."""
    wanted = set(search_terms(query))
    if not wanted:
        return int(query.strip() in memory.content)
    held = set(index_terms(" ".join((memory.content, *memory.tags))))
    return sum(_holds(held, term) for term in wanted)


def _holds(held: set[str], term: str) -> bool:
    return term in held or (is_prefix(term) and any(longer.startswith(term) for longer in held))


@attrs.frozen
class _Held:
    """A claim. ``expires`` is by Trio's clock."""

    owner: str
    address: str
    epoch: int
    expires: float


@attrs.define(eq=False)
class InMemoryClaimedStorage(InMemorySessionStorage):
    """The same, and says who may open a session: a `SessionClaims` by Trio's clock.

    Cancellation: as of `InMemorySessionStorage`.
    """

    _claims: dict[str, _Held] = attrs.field(factory=dict, init=False)

    def holder(self, session_id: str) -> str | None:
        """The owner whose claim on the session counts now. Not a checkpoint."""
        held = self._claims.get(session_id)
        return held.owner if held is not None and held.expires > trio.current_time() else None

    async def claim(
        self, session_id: str, *, owner: str, address: str, ttl_ms: int, steal: bool = False
    ) -> SessionClaim:
        """Give the session to ``owner``.

        Raises:
            SessionTaken: another owner has it, its claim has not run out, and ``steal`` is False.
        """
        await _pass(self.delay)
        now = trio.current_time()
        held = self._claims.get(session_id, _Held("", "", 0, now))
        if held.owner != owner and held.expires > now and not steal:
            raise SessionTaken.held(session_id, held.owner, held.address, ceil((held.expires - now) * 1000))
        self._claims[session_id] = _Held(owner, address, held.epoch + 1, now + ttl_ms / 1000)
        return SessionClaim(held.epoch + 1, datetime.now(UTC) + timedelta(milliseconds=ttl_ms))

    async def renew(self, owner: str, epochs: Mapping[str, int], ttl_ms: int) -> Sequence[str]:
        """Prolong the claims of ``owner``; the ids of those that it no longer has."""
        await _pass(self.delay)
        kept = [s for s, epoch in epochs.items() if self._has(s, owner, epoch)]
        for session_id in kept:
            expires = trio.current_time() + ttl_ms / 1000
            self._claims[session_id] = attrs.evolve(self._claims[session_id], expires=expires)
        return tuple(session_id for session_id in epochs if session_id not in kept)

    async def release(self, session_id: str, *, owner: str, epoch: int | None = None) -> None:
        """End a claim, under this epoch or any. One that is not held is not an error."""
        await _pass(self.delay)
        if self._has(session_id, owner, epoch):
            self._claims[session_id] = attrs.evolve(self._claims[session_id], expires=-inf)

    def _has(self, session_id: str, owner: str, epoch: int | None) -> bool:
        held = self._claims.get(session_id)
        return held is not None and held.owner == owner and epoch in (None, held.epoch)


@attrs.define(eq=False)
class InMemoryMemoryStorage:
    """Keeps memories in a dict, keyed by ``(namespace, id)``.

    Cancellation: every coroutine is a checkpoint; if `trio.Cancelled` comes out, it did not happen.

    Args:
        delay: seconds that each call takes.
    """

    delay: float = 0.0
    """Seconds that each call takes."""
    _memories: dict[tuple[str, str], Memory] = attrs.field(factory=dict, init=False)

    def memories(self, namespace: str) -> tuple[Memory, ...]:
        """The memories of a namespace, the newest first. Not a checkpoint."""
        held = [memory for memory in self._memories.values() if memory.namespace == namespace]
        return tuple(sorted(held, key=_newness, reverse=True))

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        """Those that share most terms with ``query`` first, the newer before the older, at most ``limit``."""
        await _pass(self.delay)
        found = self.memories(namespace)
        if query.strip():
            ranked = [(_relevance(memory, query), memory) for memory in found]
            ranked.sort(key=lambda pair: pair[0], reverse=True)
            found = tuple(memory for relevance, memory in ranked if relevance)
        return found[: max(0, limit)]

    async def save(self, memory: Memory) -> None:
        """Insert or update. Same content: only ``updated_at`` changes. ``created_at`` is kept."""
        await _pass(self.delay)
        key = memory.namespace, memory.id
        known = self._memories.get(key)
        if known is None:
            self._memories[key] = memory
        elif known.content == memory.content:
            self._memories[key] = attrs.evolve(known, updated_at=memory.updated_at)
        else:
            self._memories[key] = attrs.evolve(memory, created_at=known.created_at)

    async def delete(self, namespace: str, id: str) -> None:
        """Forget a memory. Unknown ids are not an error."""
        await _pass(self.delay)
        self._memories.pop((namespace, id), None)

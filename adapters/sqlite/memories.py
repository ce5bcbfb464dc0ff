"""Memories as rows, and their search by full-text rank (semantics 12).

Functions of a connection, run in its thread. The index holds the terms of `core.search_terms`, so that Chinese,
Japanese and Korean are found by any two characters, and a query is the words of it, never a query language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import attrs
import msgspec

from ...core.memory.search_terms import index_terms, is_prefix, search_terms
from ...messages.records import Memory
from .checks import checksum, from_micros, to_micros
from .errors import Refused
from .transaction import transaction

if TYPE_CHECKING:
    import apsw

_COLUMNS = "namespace, id, content, source, tags, created_at, updated_at"
_MOST_TERMS = 200
"""Terms of a query that are looked for; a user's message may be a whole book."""


def _fields(memory: Memory) -> tuple[str | int, ...]:
    tags = msgspec.json.encode(memory.tags).decode()
    moments = to_micros(memory.created_at), to_micros(memory.updated_at)
    return memory.namespace, memory.id, memory.content, memory.source, tags, *moments


def _memories(db: apsw.Connection, rest: str, values: Sequence[object]) -> Iterator[Memory]:
    for check, *fields in db.execute(f"SELECT m.checksum, {_COLUMNS} FROM memories AS m {rest}", tuple(values)):
        if checksum(*fields) != check:
            raise Refused(f"memory {fields[1]!r} is damaged; restore the file from a backup")
        namespace, id, content, source, tags, created, updated = fields
        moments = from_micros(created), from_micros(updated)
        yield Memory(id, namespace, content, source, msgspec.json.decode(tags, type=tuple[str, ...]), *moments)


def search(db: apsw.Connection, namespace: str, query: str, limit: int) -> tuple[Memory, ...]:
    """The best matches first; the newest if ``query`` is empty; as a plain text if it holds nothing but signs."""
    if limit < 1:
        return ()
    limit = min(limit, 1 << 32)  # beyond 63 bits SQLite takes no number
    terms = [*islice(dict.fromkeys(search_terms(query)), _MOST_TERMS)]
    newest_first = "ORDER BY updated_at DESC, id DESC LIMIT ?"
    if terms:
        joined = "JOIN memory_terms AS t ON t.rowid = m.key WHERE memory_terms MATCH ? AND namespace = ?"
        by_rank = f"{joined} ORDER BY t.rank, updated_at DESC, id DESC LIMIT ?"
        return tuple(_memories(db, by_rank, (_match(terms), namespace, limit)))
    if query.strip():
        holding = f"WHERE namespace = ? AND instr(content, ?) {newest_first}"
        return tuple(_memories(db, holding, (namespace, query.strip(), limit)))
    return tuple(_memories(db, f"WHERE namespace = ? {newest_first}", (namespace, limit)))


def _match(terms: Sequence[str]) -> str:
    return " OR ".join(f'"{term}" *' if is_prefix(term) else f'"{term}"' for term in terms)


def save(db: apsw.Connection, memory: Memory) -> None:
    """Insert, or update what is known under the same namespace and id."""
    with transaction(db, "IMMEDIATE"):
        known = [*_memories(db, "WHERE namespace = ? AND id = ?", (memory.namespace, memory.id))]
        if known:
            _remove(db, memory.namespace, memory.id)
            memory = _updated(known[0], memory)
        fields = _fields(memory)
        insert = f"INSERT INTO memories (checksum, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING key"
        key = db.execute(insert, (checksum(*fields), *fields)).get
        terms = " ".join(index_terms(" ".join((memory.content, *memory.tags))))
        db.execute("INSERT INTO memory_terms (rowid, terms) VALUES (?, ?)", (key, terms))


def _updated(known: Memory, memory: Memory) -> Memory:
    if known.content == memory.content:
        return attrs.evolve(known, updated_at=memory.updated_at)
    return attrs.evolve(memory, created_at=known.created_at)


def delete(db: apsw.Connection, namespace: str, id: str) -> None:
    """Remove one."""
    with transaction(db, "IMMEDIATE"):
        _remove(db, namespace, id)


def _remove(db: apsw.Connection, namespace: str, id: str) -> None:
    gone = [*db.execute("DELETE FROM memories WHERE namespace = ? AND id = ? RETURNING key", (namespace, id))]
    for (key,) in gone:
        db.execute("DELETE FROM memory_terms WHERE rowid = ?", (key,))

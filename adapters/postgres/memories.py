"""Memories as rows, and their search (semantics 12). Each call is one statement.

The index holds the terms of `core.search_terms` as a tsvector of our own making: Chinese, Japanese and Korean are found
by any two characters, no dictionary of the server takes part, and every storage finds the same things. A query of
signs alone is looked for as it is, with the help of trigrams where the server has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import islice

import msgspec

from ...core.memory.search_terms import index_terms, is_prefix, search_terms
from ...messages.records import Memory
from .connection import Database, Rows
from .sessions import literal

_COLUMNS = "m.namespace, m.id, m.content, m.source, m.tags, m.created_at, m.updated_at"
_NEWEST = "ORDER BY m.updated_at DESC, m.id DESC LIMIT %s"
_MOST_TERMS = 200
"""Terms of a query that are looked for; a user's message may be a whole book."""
_LONGEST_TERM = 500
_MOST_BYTES = 500_000
"""Of the terms of one memory: a tsvector ends at a mebibyte, and a term at 2 046 bytes."""


async def search(database: Database, namespace: str, query: str, limit: int) -> tuple[Memory, ...]:
    """Those that share the most and rarest terms first; the newest if ``query`` is empty."""
    limit = min(limit, 1 << 31)
    select = f"SELECT {_COLUMNS} FROM {{s}}.memories AS m WHERE m.namespace = %s"
    terms = [*islice(dict.fromkeys(search_terms(query)), _MOST_TERMS)]
    if not terms and not query.strip():
        return _memories(await database.run(f"{select} {_NEWEST}", (namespace, limit)))
    if not terms:
        holding = f"%{literal(query.strip())}%"
        return _memories(await database.run(f"{select} AND m.content LIKE %s {_NEWEST}", (namespace, holding, limit)))
    return _memories(
        await database.run(
            # The rarer a term among the memories of the namespace, the more it weighs.
            "WITH asked AS (SELECT t::tsquery AS term FROM unnest(%s::text[]) AS t), "
            "hits AS (SELECT m.id, a.term FROM asked AS a JOIN {s}.memories AS m ON m.terms @@ a.term "
            "WHERE m.namespace = %s), "
            "known AS (SELECT count(*) AS n FROM {s}.memories WHERE namespace = %s), "
            "weights AS (SELECT term, ln(1 + max(n) / count(*)::float8) AS weight FROM hits, known GROUP BY term), "
            "found AS (SELECT h.id, sum(w.weight) AS score FROM hits AS h JOIN weights AS w USING (term) "
            "GROUP BY h.id) "
            f"SELECT {_COLUMNS} FROM found AS f JOIN {{s}}.memories AS m ON m.namespace = %s AND m.id = f.id "
            "ORDER BY round(f.score::numeric, 6) DESC, m.updated_at DESC, m.id DESC LIMIT %s",
            ([*map(_asked, terms)], namespace, namespace, namespace, limit),
        )
    )


def _asked(term: str) -> str:
    quoted = term[:_LONGEST_TERM].replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if is_prefix(term) else f"'{quoted}'"


def _kept(texts: Sequence[str]) -> Iterator[str]:
    room = _MOST_BYTES
    for term in dict.fromkeys(index_terms(" ".join(texts))):
        room -= len(term.encode())
        if room < 0:
            return
        yield term[:_LONGEST_TERM]


def _memories(rows: Rows) -> tuple[Memory, ...]:
    return tuple(
        Memory(
            id,
            namespace,
            content,
            source,
            msgspec.json.decode(tags, type=tuple[str, ...]),
            created.astimezone(UTC),
            updated.astimezone(UTC),
        )
        for namespace, id, content, source, tags, created, updated in rows
    )


async def save(database: Database, memory: Memory) -> None:
    """Insert, or update what is known under the same namespace and id."""
    same = "m.content = excluded.content"
    changed = ", ".join(
        f"{column} = CASE WHEN {same} THEN m.{column} ELSE excluded.{column} END"
        for column in ("content", "source", "tags", "terms")
    )
    await database.run(
        "INSERT INTO {s}.memories AS m (namespace, id, content, source, tags, created_at, updated_at, terms) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, array_to_tsvector(%s::text[])) ON CONFLICT (namespace, id) "
        f"DO UPDATE SET {changed}, updated_at = excluded.updated_at",
        (
            memory.namespace,
            memory.id,
            memory.content,
            memory.source,
            msgspec.json.encode(memory.tags).decode(),
            memory.created_at,
            memory.updated_at,
            [*_kept((memory.content, *memory.tags))],
        ),
    )


async def delete(database: Database, namespace: str, id: str) -> None:
    """Remove one."""
    await database.run("DELETE FROM {s}.memories WHERE namespace = %s AND id = %s", (namespace, id))

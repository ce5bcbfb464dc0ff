"""The tables and functions of a youyou schema, and how it is brought up to date.

A row of ``migrations`` for each version that the schema has had. Several processes may begin at once: the table's lock
lets one migrate; no advisory locks, which a pooler would break. A schema that is newer than this version is refused.
"""

from __future__ import annotations

from typing import Any

import trio

from .connection import Database
from .errors import GAP, NOT_STORED, TAKEN, Refused, require_psycopg

# One statement appends, so that a batch costs one round trip and no lock is ever held while we are elsewhere (a frozen
# process would keep it). Text is compared and sorted by its bytes: no two servers differ.
_FIRST = f"""
CREATE TABLE {{s}}.sessions (
    session_id text COLLATE "C" PRIMARY KEY, title text NOT NULL DEFAULT '""',
    folded_title text COLLATE "C" NOT NULL DEFAULT '', created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL,
    message_count bigint NOT NULL DEFAULT 0, event_count bigint NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_time ON {{s}}.sessions (updated_at, session_id);
CREATE INDEX sessions_by_prefix ON {{s}}.sessions (session_id text_pattern_ops);
CREATE TABLE {{s}}.events (
    session_id text COLLATE "C" NOT NULL, seq bigint NOT NULL, body text COLLATE "C" NOT NULL,
    PRIMARY KEY (session_id, seq)
);
CREATE TABLE {{s}}.claims (
    session_id text COLLATE "C" PRIMARY KEY, owner text NOT NULL, address text NOT NULL, epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX claims_by_owner ON {{s}}.claims (owner);
CREATE SEQUENCE {{s}}.epochs;
CREATE TABLE {{s}}.commands (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session_id text COLLATE "C" NOT NULL, body text NOT NULL,
    sent_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX commands_by_session ON {{s}}.commands (session_id);
CREATE TABLE {{s}}.memories (
    namespace text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, content text NOT NULL, source text NOT NULL,
    tags text NOT NULL, created_at timestamptz NOT NULL, updated_at timestamptz NOT NULL, terms tsvector NOT NULL,
    PRIMARY KEY (namespace, id)
);
CREATE INDEX memories_by_time ON {{s}}.memories (namespace, updated_at, id);
CREATE INDEX memories_by_term ON {{s}}.memories USING gin (terms);

CREATE FUNCTION {{s}}.append(
    sid text, held bigint, seqs bigint[], bodies text[], are_messages boolean[], moments timestamptz[],
    new_title text, new_folded text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
    i int;
BEGIN
    IF held IS NOT NULL THEN
        PERFORM 1 FROM {{s}}.claims WHERE session_id = sid AND epoch = held FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING errcode = '{TAKEN}', message = 'the claim is gone', detail = '0';
        END IF;
    END IF;
    SELECT event_count INTO newest FROM {{s}}.sessions WHERE session_id = sid FOR UPDATE;
    IF NOT FOUND THEN
        IF seqs[1] > 1 THEN
            RAISE EXCEPTION USING errcode = '{NOT_STORED}', message = 'no such session';
        END IF;
        INSERT INTO {{s}}.sessions (session_id, created_at, updated_at) VALUES (sid, 'infinity', '-infinity')
        ON CONFLICT DO NOTHING;
        SELECT event_count INTO newest FROM {{s}}.sessions WHERE session_id = sid FOR UPDATE;
    END IF;
    SELECT t.seq INTO i FROM unnest(seqs, bodies) AS t (seq, body)
    LEFT JOIN {{s}}.events AS e ON e.session_id = sid AND e.seq = t.seq
    WHERE t.seq <= newest AND e.body IS DISTINCT FROM t.body ORDER BY t.seq LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING errcode = '{TAKEN}', message = 'another event is there', detail = i::text;
    END IF;
    FOR i IN 1 .. cardinality(seqs) LOOP
        CONTINUE WHEN seqs[i] <= newest;
        IF seqs[i] <> newest + 1 THEN
            RAISE EXCEPTION USING errcode = '{GAP}', message = 'a gap', detail = format('%s %s', seqs[i], newest);
        END IF;
        newest := newest + 1;
        INSERT INTO {{s}}.events VALUES (sid, seqs[i], bodies[i]);
        UPDATE {{s}}.sessions SET event_count = newest, message_count = message_count + are_messages[i]::int,
            created_at = least(created_at, moments[i]), updated_at = greatest(updated_at, moments[i])
        WHERE session_id = sid;
    END LOOP;
    IF new_title IS NOT NULL THEN
        UPDATE {{s}}.sessions SET title = new_title, folded_title = new_folded WHERE session_id = sid;
    END IF;
END $$;
"""
# Trigrams make the search inside titles and for signs quick. They are an extension that a role may not be allowed to
# create: everything is found without it, too.
_TRIGRAMS = """
DO $$
DECLARE place text;
BEGIN
    BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    SELECT n.nspname INTO place FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_trgm';
    IF FOUND THEN
        EXECUTE format('CREATE INDEX ON {s}.sessions USING gin (folded_title %I.gin_trgm_ops)', place);
        EXECUTE format('CREATE INDEX ON {s}.memories USING gin (content %I.gin_trgm_ops)', place);
    END IF;
END $$;
"""

MIGRATIONS: tuple[str, ...] = (_FIRST + _TRIGRAMS,)
"""What each version adds. A schema of version n has had the first n; each is applied whole or not at all."""


async def prepare(database: Database) -> None:
    """Create the schema or bring it up to date.

    Raises:
        AgentError: it is newer than this version, or the role may not create it.
    """
    for _ in range(20):
        if await _is_new_enough(database):
            return
        try:
            await _migrate(database)
        except _Again:
            # Two processes that create one schema: PostgreSQL tells one of them of a violated index of its own.
            await trio.sleep(0.05)
    raise database.error(f"{database.where}: the schema {database.schema!r} cannot be created; see the server's log")


class _Again(Exception):
    """Somebody else creates the schema right now."""


async def _is_new_enough(database: Database) -> bool:
    found = await database.run("SELECT to_regclass('{s}.migrations')::text")
    if found[0][0] is None:
        return False
    ((version,),) = await database.run("SELECT coalesce(max(version), 0) FROM {s}.migrations")
    if version > len(MIGRATIONS):
        raise database.error(
            f"{database.where}: the schema {database.schema!r} was written by a newer youyou (version {version}, this "
            f"one knows {len(MIGRATIONS)}); update youyou"
        )
    return bool(version == len(MIGRATIONS))


async def _migrate(database: Database) -> None:
    errors = require_psycopg().errors
    async with database.transaction() as db:
        try:
            await _migrate_in(db, database.schema)
        except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateSchema, errors.DeadlockDetected):
            raise _Again from None
        except errors.InsufficientPrivilege as error:
            raise Refused(f"the role may not create the schema {database.schema!r}; grant it CREATE") from error


async def _migrate_in(db: Any, schema: str) -> None:
    await db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    await db.execute(
        f"CREATE TABLE IF NOT EXISTS {schema}.migrations (version int PRIMARY KEY, applied_at timestamptz)"
    )
    await db.execute(f"LOCK TABLE {schema}.migrations IN ACCESS EXCLUSIVE MODE")
    cursor = await db.execute(f"SELECT coalesce(max(version), 0) FROM {schema}.migrations")
    ((version,),) = await cursor.fetchall()
    for number, step in enumerate(MIGRATIONS[version:], version + 1):
        await db.execute(step.replace("{s}", schema))
        await db.execute(f"INSERT INTO {schema}.migrations VALUES (%s, now())", (number,))

"""The PostgreSQL storages keep the contract of their ports, word for word as the others do."""

from __future__ import annotations

import pytest
from youyou.adapters.postgres import PostgresMemoryStorage, PostgresSessionStorage
from youyou.testing import check_memory_storage, check_session_claims, check_session_storage

pytestmark = pytest.mark.long  # a server of PostgreSQL


async def test_sessions_in_postgres_conform(postgres, new_schema):
    """The session storage passes the suite on a real server."""
    await check_session_storage(lambda: PostgresSessionStorage(postgres.dsn, schema=new_schema()))


async def test_claims_in_postgres_conform(postgres, new_schema):
    """The claims pass theirs."""
    await check_session_claims(lambda: PostgresSessionStorage(postgres.dsn, schema=new_schema()))


async def test_memories_in_postgres_conform(postgres, new_schema):
    """The memory storage passes the suite on a real server."""
    await check_memory_storage(lambda: PostgresMemoryStorage(postgres.dsn, schema=new_schema()))

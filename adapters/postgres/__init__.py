"""Sessions, claims, commands and memories in PostgreSQL (semantics 7, 12, 14). Extra ``postgres``."""

from .storage import PostgresMemoryStorage, PostgresSessionStorage

__all__ = ["PostgresMemoryStorage", "PostgresSessionStorage"]

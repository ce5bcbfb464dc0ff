"""Sessions and memories in an SQLite file (semantics 7, 12, 14). Extra ``sqlite``."""

from .storage import SQLiteMemoryStorage, SQLiteSessionStorage

__all__ = ["SQLiteMemoryStorage", "SQLiteSessionStorage"]

"""Checksums and moments as the integers that SQLite keeps. Pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def checksum(*fields: object) -> int:
    """64 bits over ``fields`` and their order: damage goes unnoticed once in 18 million million million."""
    digest = blake2b(digest_size=8)
    for field in fields:
        data = str(field).encode()
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return int.from_bytes(digest.digest(), signed=True)


def wrap(total: int) -> int:
    """A sum of checksums as a signed 64 bit number again."""
    return (total + (1 << 63)) % (1 << 64) - (1 << 63)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The moment, in UTC."""
    return _EPOCH + micros * _MICROSECOND

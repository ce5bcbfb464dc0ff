"""Text that can always be encoded, cut and shown: surrogates, size limits, exceptions as text (semantics 5, 8).

    clean("a\\ud83d")                               # "a\\ufffd": a lone surrogate cannot be sent or stored
    truncate(output, notices.truncated)             # at most 1 MiB of output, then the notice
    safe_str(error)                                 # "ValueError: no such city", whatever the exception does

Knows nothing of messages, and never raises for text it does not like.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..messages.encodable import clean as clean
from ..messages.jsonvalue import JsonArray, JsonObject

MEBIBYTE = 1_048_576
_SHOWN = 2_000
_SHOWN_MEMBERS = 5


def clean_json(value: Any) -> Any:
    """``value`` with every text in it cleaned, keys too. Read-only stays read-only; what is no JSON is kept."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        pairs = ((clean_json(key), clean_json(item)) for key, item in value.items())
        return JsonObject(pairs) if isinstance(value, JsonObject) else dict(pairs)
    if isinstance(value, list | tuple):
        items = map(clean_json, value)
        return JsonArray(items) if isinstance(value, JsonArray) else list(items)
    return value


def truncate(text: str, notice: str, limit_bytes: int = MEBIBYTE) -> str:
    """``text``, cleaned; if it is longer than ``limit_bytes`` in UTF-8, its head and ``notice`` (semantics 8).

    The head is cut between characters and is at most ``limit_bytes`` long; the notice comes on top of it.
    """
    # A character has at least one byte, so whatever the limit keeps lies in this slice, however long the text is.
    head = clean(text[: limit_bytes + 1])
    encoded = head.encode()
    if len(encoded) <= limit_bytes:
        return head
    return encoded[:limit_bytes].decode(errors="ignore") + notice


def safe_str(error: BaseException) -> str:
    """``error`` in one readable piece: its type, its message shortened, and for a group its first members.

    Never raises, whatever ``__str__`` of a stranger's exception does.
    """
    try:
        return _shorten(clean(_describe(error)))
    except BaseException:  # noqa: ASYNC103  sync: no cancellation passes here
        return f"{_name(error)}: (this exception cannot be shown as text)"  # noqa: ASYNC104  the same


def _describe(error: BaseException) -> str:
    name = _name(error)
    if not isinstance(error, BaseExceptionGroup):
        message = _shorten(str.__str__(str(error)))
        return f"{name}: {message}" if message else name
    members = [safe_str(member) for member in error.exceptions[:_SHOWN_MEMBERS]]
    if len(error.exceptions) > _SHOWN_MEMBERS:
        members.append(f"and {len(error.exceptions) - _SHOWN_MEMBERS} more")
    return f"{name}: {_shorten(str.__str__(error.message))} [{'; '.join(members)}]"


def _name(error: BaseException) -> str:
    # Read from the type itself: the metaclass of a stranger may answer anything.
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"

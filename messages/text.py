"""Text that can always be encoded, cut and shown: surrogates, size limits, exceptions as text (semantics 5, 8).

    clean_text("a\\ud83d")                          # "a\\ufffd": a lone surrogate can be neither sent nor stored
    clean_value(ToolCall("a", "say", {"text": "\\ud83d"}))    # the same, for every text inside a value
    truncate(output, notices.truncated)             # at most 1 MiB of output, then the notice
    safe_str(error)                                 # "ValueError: no such city", whatever the exception does

Never raises for text it does not like. What is clean already comes back as the same object, so nothing is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import is_
from typing import Any, Final, TypeVar

import attrs

from .jsonvalue import JsonArray, JsonObject, freeze

T = TypeVar("T")

MEBIBYTE = 1_048_576
_SHOWN = 2_000
_SHOWN_MEMBERS = 5


def clean_text(text: str) -> str:
    """``text`` without lone surrogates: each becomes U+FFFD; two that belong together become their character."""
    # Two quick ways out: almost every text is clean, and both run at the speed of the codec.
    if text.isascii() or _is_encodable(text):
        return text
    # Through UTF-16, because two lone surrogates that follow each other are one character there; providers split them
    # over two deltas.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_value(value: T) -> T:
    """``value`` without lone surrogates, all the way down: texts, JSON values, blocks and messages."""
    cleaned: T = _clean(value)
    return cleaned


# Cleaning tells: a second walk of the same shape would be a second place to forget a type.
def has_surrogates(value: object) -> bool:
    """Whether any text in ``value`` cannot be encoded."""
    return _clean(value) is not value


# What nearly all values are comes first, by its exact class: to ask whether something is a `Mapping` costs as much as
# the whole walk, and every value of a turn comes by here.
def _clean(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else clean_text(value)
    if value is None or kind in _ATOMS:
        return value
    if names := _field_names(kind):  # type: ignore[arg-type]  # mypy takes a class of any kind for unhashable
        return _clean_fields(value, names)
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, (list, tuple)):
        # Built and compared by identity, so that a clean value comes back as the same object and is not copied.
        items = [_clean(item) for item in value]
        return value if all(map(is_, items, value)) else freeze(items) if isinstance(value, list) else tuple(items)
    if isinstance(value, Mapping):
        return _clean_object(value)
    return value


_ATOMS: Final = frozenset({bool, int, float})


@lru_cache(maxsize=256)
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind)) if attrs.has(kind) else ()


def _clean_object(value: Mapping[Any, Any]) -> Any:
    if all(_clean(key) is key and _clean(item) is item for key, item in value.items()):
        return value
    return freeze({_clean(key): _clean(item) for key, item in value.items()})


def _clean_fields(value: Any, names: tuple[str, ...]) -> Any:
    changed = {}
    for name in names:
        old = getattr(value, name)
        if (new := _clean(old)) is not old:
            changed[name] = new
    return attrs.evolve(value, **changed) if changed else value


def clean_json(value: Any) -> Any:
    """``value`` with every text in it cleaned, keys too. Read-only stays read-only; what is not JSON is kept."""
    if isinstance(value, str):
        return clean_text(value)
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
    head = clean_text(text[: limit_bytes + 1])
    encoded = head.encode()
    if len(encoded) <= limit_bytes:
        return head
    return encoded[:limit_bytes].decode(errors="ignore") + notice


def safe_repr(value: object) -> str:
    """``value`` as `repr` shows it, shortened; its class where that cannot be had. Never raises."""
    try:
        return _shorten(clean_text(str.__str__(repr(value))))
    except BaseException:  # noqa: ASYNC103  sync: no cancellation passes here
        name: str = type.__dict__["__name__"].__get__(type(value))
        return f"a {name}"  # noqa: ASYNC104  the same


def safe_str(error: BaseException) -> str:
    """``error`` in one readable piece: its type, its message shortened, and for a group its first members.

    Never raises, whatever a foreign exception's ``__str__`` does.
    """
    try:
        return _shorten(clean_text(_describe(error)))
    except BaseException:  # noqa: ASYNC103  sync: no cancellation passes here
        return f"{_name(error)}: (this exception cannot be shown as text)"  # noqa: ASYNC104  the same


def _describe(error: BaseException) -> str:
    name = _name(error)
    if not isinstance(error, BaseExceptionGroup):
        # `str.__str__`, because `str()` may return a subclass with methods of its own.
        message = _shorten(str.__str__(str(error)))
        return f"{name}: {message}" if message else name
    members = [safe_str(member) for member in error.exceptions[:_SHOWN_MEMBERS]]
    if len(error.exceptions) > _SHOWN_MEMBERS:
        members.append(f"and {len(error.exceptions) - _SHOWN_MEMBERS} more")
    return f"{name}: {_shorten(str.__str__(error.message))} [{'; '.join(members)}]"


def _name(error: BaseException) -> str:
    # Read from the type itself: a foreign metaclass may answer anything.
    name: str = type.__dict__["__name__"].__get__(type(error))
    return name


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"

"""Whole messages whose every text can be encoded (semantics 5, 8).

`text.clean` does it for one text; this does it for all texts inside a value. What is clean already is returned as the
same object, so that nothing is copied in vain.

    clean(ToolCall("a", "say", {"text": "\\ud83d"}))      # the argument is "\\ufffd"
    has_surrogates(message)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from ..messages.jsonvalue import freeze
from . import text

T = TypeVar("T")


def clean(value: T) -> T:
    """``value`` without lone surrogates, all the way down: texts, JSON values, blocks and messages."""
    cleaned: T = _clean(value)
    return cleaned


def has_surrogates(value: object) -> bool:
    """Whether any text in ``value`` cannot be encoded."""
    return _clean(value) is not value


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return text.clean(value)
    if isinstance(value, Mapping):
        return _clean_object(value)
    if isinstance(value, list | tuple):
        items = [_clean(item) for item in value]
        return value if _same(items, value) else freeze(items) if isinstance(value, list) else tuple(items)
    if attrs.has(type(value)):
        return _clean_fields(value)
    return value


def _clean_object(value: Mapping[Any, Any]) -> Any:
    keys, items = list(value), list(value.values())
    clean_keys, clean_items = [_clean(key) for key in keys], [_clean(item) for item in items]
    if _same(clean_keys, keys) and _same(clean_items, items):
        return value
    return freeze(dict(zip(clean_keys, clean_items, strict=True)))


def _clean_fields(value: Any) -> Any:
    old = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    changed = {name: new for name, item in old.items() if (new := _clean(item)) is not item}
    return attrs.evolve(value, **changed) if changed else value


def _same(left: list[Any], right: list[Any] | tuple[Any, ...]) -> bool:
    return all(a is b for a, b in zip(left, right, strict=True))

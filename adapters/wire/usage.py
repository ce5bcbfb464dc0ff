"""Token counts as servers report them: what is odd is dropped, each figure by itself (semantics 1, 4). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_MOST = 2**53


def count(value: object) -> int | None:
    """A number of tokens; None for what is none. Some servers write ``3.0``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    return None


def first_count(report: object, paths: Iterable[str]) -> int:
    """The first figure above 0 that stands under one of ``paths`` (keys with dots between them), else 0."""
    return next((found for path in paths if (found := count(_at(report, path)))), 0)


def _at(report: Any, path: str) -> object:
    for key in path.split("."):
        report = report.get(key) if isinstance(report, dict) else None
    return report

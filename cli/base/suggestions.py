"""What somebody probably meant to type."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(typed: str, known: Iterable[str], mark: str = "/") -> str:
    """``"; did you mean /history?"`` when one of ``known`` is close to ``typed``, or ``""``."""
    close = get_close_matches(typed, list(known), n=1)
    return f"; did you mean {mark}{close[0]}?" if close else ""

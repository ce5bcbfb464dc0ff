"""What a port answered, judged at the door (semantics 7, 12).

    items_of(found, Memory)         # a tuple of memories
    items_of(None, Memory)          # raises TypeError: a storage is code of others

Pure. What an actor trusts later must be what the port promises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def items_of(answer: object, kind: type[T]) -> tuple[T, ...]:
    """``answer`` as the items that it should hold.

    Raises:
        TypeError: it is no collection, or holds something else.
    """
    items = tuple(answer) if isinstance(answer, Iterable) else None
    wrong = [item for item in items or () if not isinstance(item, kind)]
    if items is None or wrong:
        shown = f"a {type(answer).__name__}" + (f" with a {type(wrong[0]).__name__} in it" if wrong else "")
        raise TypeError(f"the storage answered {shown}; return a sequence of {kind.__name__}")
    return items

"""A read-only window on the beginning of a list that only grows.

What a request carries is such a view: it costs nothing to make, and later appends never show in it.

    items = [1, 2]
    view = ListView(items)
    items.append(3)
    list(view)              # [1, 2]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import ClassVar, TypeVar, overload

from ...messages.misuse import misused

T_co = TypeVar("T_co", covariant=True)


@misused(
    attributes=dict.fromkeys(
        ("append", "clear", "extend", "insert", "pop", "remove"),
        "it is read-only; history grows by turns alone, and what is said in advance goes into system_instructions",
    )
)
class ListView(Sequence[T_co]):
    """The items that ``items`` holds now. Equal to any sequence of equal items. The owner only ever appends."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T_co]) -> None:
        self._items = items
        self._length = len(items)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T_co]:
        # Bounded by the length at the time of the view: the list may grow while it is being read.
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        places = range(self._length)[index]
        if isinstance(places, range):
            return tuple(self._items[place] for place in places)
        return self._items[places]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ListView | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__: ClassVar[None]  # type: ignore[assignment]  # compares with lists, so it cannot be hashed

    def __repr__(self) -> str:
        return f"ListView({list(self)!r})"

"""JSON values that nobody can change after they were handed over.

Arguments, configuration and opaque provider data cross several hands: hooks, tools, providers, stores. They travel as
read-only dicts and lists, equal to ordinary ones; `thaw` gives a caller that may change it a private copy.

    frozen = freeze({"city": "Oslo", "days": [1, 2]})
    frozen == {"city": "Oslo", "days": [1, 2]}      # True
    thaw(frozen)["days"].append(3)                  # a copy of one's own
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

_ADVICE = "this JSON value is shared and read-only; change a copy of it: {**value, 'key': new} or [*values, new]"


# A subclass of dict, not a Mapping: SDKs and `json` look for exactly dict and list.
class JsonObject(dict[str, Any]):
    """A read-only dict of JSON values."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none because it can change; this one cannot
        return hash(frozenset(self.items()))

    # By default pickle fills a dict item by item, which this one refuses.
    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (dict(self),))


class JsonArray(list[Any]):
    """A read-only list of JSON values."""

    def __hash__(self) -> int:  # type: ignore[override]  # as above
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (list(self),))


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError(_ADVICE)


def _seal(cls: type, *names: str) -> None:
    # Outside the class body: to a type checker these stay the dict and the list that they are.
    for name in names:
        setattr(cls, name, _refuse)


_seal(JsonObject, "__setitem__", "__delitem__", "clear", "pop", "popitem", "setdefault", "update", "__ior__")
_seal(JsonArray, "__setitem__", "__delitem__", "append", "extend", "insert", "pop", "remove", "clear", "sort")
_seal(JsonArray, "reverse", "__iadd__", "__imul__")


DEEPEST = 100
"""How deep a value may be nested. Deeper ones, as only attackers send, would exhaust the stack of a reader."""


def freeze(value: Any, _room: int = DEEPEST) -> Any:
    """A read-only form of ``value``, all the way down. What is not a dict, list or tuple is kept as it is.

    Raises:
        ValueError: it is nested deeper than `DEEPEST`.
    """
    # What is frozen already is frozen all the way down: passing a value on costs nothing, however large it is. The rest
    # of the line is for speed: what is most often there, before the question whether it is a `Mapping`.
    if value is None or isinstance(value, (JsonObject, JsonArray, str)):
        return value
    if not isinstance(value, (dict, list, tuple, Mapping)):
        return value
    if not _room:
        raise ValueError(f"a JSON value may be nested {DEEPEST} levels deep; flatten it")
    if isinstance(value, Mapping):
        return JsonObject((key, freeze(item, _room - 1)) for key, item in value.items())
    return JsonArray(freeze(item, _room - 1) for item in value)


def thaw(value: Any) -> Any:
    """An ordinary, private copy of ``value``, all the way down."""
    # A copy of what is not frozen, too: the caller may change what it gets, and somebody else may hold the original.
    if isinstance(value, (dict, Mapping)):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in value]
    return value


def json_object(value: Mapping[str, Any]) -> JsonObject:
    """The read-only form of an object."""
    if isinstance(value, JsonObject):
        return value
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a JSON object (a dict), got {type(value).__name__}: {value!r}")
    frozen: JsonObject = freeze(value)
    return frozen

"""Arguments that are not a JSON object, and yet can be meant in one way only (semantics 8). Pure.

repaired('"{\\"a\\": 1}"')          # {"a": 1}: a text that holds the object
repaired('{}{"a": 1}')            # {"a": 1}: servers that begin with an empty one
repaired('{"a": 1}{"a": 1}')      # {"a": 1}: servers that send all of it twice
repaired('{"a": 1')               # None: that is the model's to say again
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ...messages.history import ToolCall

_MOST_OBJECTS = 8


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def repaired(text: str) -> dict[str, Any] | None:
    """The one object that ``text`` can mean, or None. Linear in its length."""
    try:
        values = _values(text.strip())
        if len(values) == 1 and isinstance(values[0], str):
            values = _values(values[0].strip())
    except (ValueError, RecursionError):
        return None
    while len(values) > 1 and values[0] == {}:
        values = values[1:]
    if not values or not isinstance(values[0], dict) or any(value != values[0] for value in values):
        return None
    return values[0]


def _values(text: str) -> list[Any]:
    """The JSON values that stand one behind the other in ``text``."""
    values: list[Any] = []
    place = 0
    while place < len(text):
        value, place = _DECODER.raw_decode(text, place)
        values.append(value)
        if len(values) > _MOST_OBJECTS:
            raise ValueError("more values than anybody repeats")
        while place < len(text) and text[place] in " \t\r\n":
            place += 1
    return values


def problem_of(call: ToolCall, *, takes_nothing: bool) -> str | None:
    """What is wrong with the text of a call's arguments, for the model to read; None if they can be used.

    Args:
        takes_nothing: whether the tool has no arguments at all; then no text, or null, is an empty object.
    """
    text = call.raw_arguments
    if text is None or call.arguments or repaired(text) == {}:
        return None
    if text.strip() in ("", "null") and takes_nothing:
        return None
    return f"the arguments are not a JSON object: {text[:200]!r}; send one JSON object"

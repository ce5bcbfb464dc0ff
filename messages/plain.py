"""The one gate for values of others: exact types, plain JSON, texts that can be encoded (semantics 1).

    plain_json({"days": (1, 2.5)})              # {"days": [1, 2.5]}, read-only
    plain_json({"when": date.today()})          # NotPlain: ['when'] is a date; ...
    plain_record(event, SessionEvent)           # the same, with every field of its own type

Whatever a provider, hook, tool, storage or memory hands over passes here once, where it is handed over; behind the gate
nothing is checked again. What is plain already comes back as the same object, so nothing is copied. Subclasses of the
JSON types become exact, because an encoder, a store or a comparison may treat them as something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Any, NoReturn, TypeVar

import attrs

from .content import FileBlock, ImageBlock, ReasoningBlock, TextBlock
from .history import (
    AssistantMessage,
    MessageStatus,
    StopReason,
    SystemMessage,
    ToolCall,
    ToolOutcome,
    ToolResult,
    UserMessage,
)
from .jsonvalue import DEEPEST, JsonArray, JsonObject
from .records import Memory, Metadata, SessionEvent
from .text import clean_text, safe_str

T = TypeVar("T")
_Gate = Callable[[Any], Any]

# More digits than Python converts to text (sys.set_int_max_str_digits), so that nobody could write or read them.
_TOO_LARGE = 10**4300
_ADVICE = "hand over text, numbers, True, False, None, lists and dicts with texts as keys"


class NotPlain(TypeError):
    """A value is not of the kind that it must be. ``path``: where in the whole it stands."""

    def __init__(self, problem: str, path: tuple[object, ...] = ()) -> None:
        where = "".join(f"[{step!r}]" for step in path[:8])[:200]
        super().__init__(f"{'at ' + where + ' ' if where else ''}{problem}")
        self.problem: str = problem
        self.path: tuple[object, ...] = path


def plain_json(value: object, _room: int = DEEPEST) -> Any:
    """``value`` as plain, read-only JSON data.

    Raises:
        NotPlain: something in it is of another type, not finite, over 4 300 digits, or nested deeper than `DEEPEST`.
    """
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str):
        return clean_text(value if kind is str else str.__str__(value))
    if isinstance(value, int):
        return _integer(value if kind is int else int.__int__(value))
    if isinstance(value, float):
        return _finite(value if kind is float else float.__float__(value))
    if isinstance(value, Mapping | list | tuple):
        if not _room:
            raise NotPlain(f"is nested deeper than {DEEPEST} levels")
        return _object(value, _room - 1) if isinstance(value, Mapping) else _array(value, _room - 1)
    raise NotPlain(f"is {_shown(value)}; {_ADVICE}")


def _integer(value: int) -> int:
    if not -_TOO_LARGE < value < _TOO_LARGE:
        raise NotPlain("is an int of more than 4300 digits")
    return value


def _finite(value: float) -> float:
    if not isfinite(value):
        raise NotPlain(f"is {value}, which JSON cannot carry")
    return value


def _object(value: Mapping[Any, Any], room: int) -> JsonObject:
    # Not value.items(): a subclass of dict may give something else there at each call.
    pairs = tuple(dict.items(value)) if isinstance(value, dict) else _pairs(value)
    same, result = type(value) is JsonObject, {}
    for key, item in pairs:
        if not isinstance(key, str):
            raise NotPlain(f"has {_shown(key)} as a key; {_ADVICE}")
        name, new = plain_json(key), _inside(key, item, room)
        same = same and name is key and new is item
        result[name] = new
    if len(result) != len(pairs):
        raise NotPlain("has two keys that are the same text once they can be encoded")
    return value if same and isinstance(value, JsonObject) else JsonObject(result)


def _pairs(value: Mapping[Any, Any]) -> tuple[tuple[Any, Any], ...]:
    try:
        return tuple((key, item) for key, item in value.items())
    except Exception as error:
        raise NotPlain(f"is {_shown(value)} that cannot be read: {safe_str(error)}") from None


def _array(value: list[Any] | tuple[Any, ...], room: int) -> JsonArray:
    items = tuple((list if isinstance(value, list) else tuple).__iter__(value))  # type: ignore[arg-type]  # one of both
    new = [_inside(index, item, room) for index, item in enumerate(items)]
    if type(value) is JsonArray and all(map(_is, new, items)):
        return value
    return JsonArray(new)


def _is(left: object, right: object) -> bool:
    return left is right


def _inside(step: object, item: object, room: int) -> Any:
    try:
        return plain_json(item, room)
    except NotPlain as refused:
        raise NotPlain(refused.problem, (step, *refused.path)) from None


def plain_text(value: object, clean: Callable[[str], str] = clean_text) -> str:
    """``value``, which must be a text, as an exact one without lone surrogates.

    Args:
        clean: how surrogates are treated.
    """
    if not isinstance(value, str):
        raise NotPlain(f"is {_shown(value)}, where a text must be")
    return clean(value if type(value) is str else str.__str__(value))


def plain_object(value: object) -> JsonObject:
    """``value``, which must be a JSON object, as plain, read-only data."""
    if not isinstance(value, Mapping):
        raise NotPlain(f"is {_shown(value)}, where an object (a dict) must be")
    plain: JsonObject = plain_json(value)
    return plain


def plain_record(value: object, *kinds: type[T]) -> T:
    """``value``, which must be of one of these classes, with each field of its own type.

    Raises:
        NotPlain: it is of another class, or a field is of another type.
    """
    kind = next((kind for kind in kinds if isinstance(value, kind)), None)
    if kind is None:
        raise NotPlain(f"is {_shown(value)}, where a {' or '.join(kind.__name__ for kind in kinds)} must be")
    gates = _FIELDS[kind]
    fields = {name: _field(value, name, gate) for name, gate in gates.items()}
    if type(value) is kind and all(getattr(value, name) is new for name, new in fields.items()):
        return value
    return kind(**fields)


def _field(value: object, name: str, gate: _Gate) -> Any:
    try:
        return gate(getattr(value, name))
    except NotPlain as refused:
        raise NotPlain(refused.problem, (name, *refused.path)) from None


def optional(gate: _Gate) -> _Gate:
    """The same, and None."""
    return lambda value: None if value is None else gate(value)


def _member(kind: type[StrEnum]) -> _Gate:
    def gate(value: object) -> StrEnum:
        if isinstance(value, str) and value in kind.__members__.values():
            return kind(value)
        _refuse(value, f"one of {', '.join(kind)}")

    return gate


def _refuse(value: object, wanted: str) -> NoReturn:
    raise NotPlain(f"is {_shown(value)}, where {wanted} must be")


def _number(value: object) -> int:
    if type(value) is bool or not isinstance(value, int) or not 0 < value < 1 << 63:
        _refuse(value, "a number from 1")
    return int.__int__(value)


def _moment(value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        _refuse(value, "a datetime with a time zone")
    return value


def _tuple_of(gate: _Gate) -> _Gate:
    def all_of(value: object) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list):
            _refuse(value, "a tuple")
        new = tuple(map(gate, value))
        return value if type(value) is tuple and all(map(_is, new, value)) else new

    return all_of


def _block(value: object) -> object:
    return plain_record(value, TextBlock, ImageBlock, FileBlock, ReasoningBlock)


def _payload(value: object) -> object:
    return plain_record(value, UserMessage, AssistantMessage, ToolCall, ToolResult, SystemMessage, Metadata)


def _shown(value: object) -> str:
    name: str = type.__dict__["__name__"].__get__(type(value))
    return "None" if value is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


_FIELDS: dict[type[Any], dict[str, _Gate]] = {
    TextBlock: {"text": plain_text},
    ImageBlock: {"data": plain_text, "media_type": plain_text},
    FileBlock: {"name": plain_text, "text": plain_text, "media_type": plain_text},
    ReasoningBlock: {"text": plain_text, "provider_data": plain_json},
    UserMessage: {"content": _tuple_of(_block)},
    AssistantMessage: {
        "content": _tuple_of(_block),
        "status": _member(MessageStatus),
        "cause": optional(plain_text),
        "response_id": plain_text,
        "provider_data": plain_json,
        "stop_reason": optional(_member(StopReason)),
    },
    ToolCall: {
        "call_id": plain_text,
        "tool_name": plain_text,
        "arguments": plain_object,
        "raw_arguments": optional(plain_text),
        "response_id": plain_text,
        "provider_data": plain_json,
    },
    ToolResult: {"call_id": plain_text, "content": plain_text, "outcome": _member(ToolOutcome)},
    SystemMessage: {"content": plain_text},
    Metadata: {"key": plain_text, "value": plain_json},
    SessionEvent: {"seq": _number, "timestamp": _moment, "payload": _payload},
    Memory: {
        "id": plain_text,
        "namespace": plain_text,
        "content": plain_text,
        "source": plain_text,
        "tags": _tuple_of(plain_text),
        "created_at": _moment,
        "updated_at": _moment,
    },
}
assert all(set(gates) == {field.name for field in attrs.fields(kind)} for kind, gates in _FIELDS.items())

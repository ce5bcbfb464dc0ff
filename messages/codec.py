"""The one converter between values and JSON (semantics 1).

Every class carries its name under ``"type"``; unions are told apart by it; unknown fields are ignored, so that old and
new versions read each other. Errors travel as values too.

    text = to_json(event)
    event = from_json(AgentEvent, text)
"""

from __future__ import annotations

import types
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
import cattrs
import msgspec
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from .errors import AgentError, _revive, details_of
from .jsonvalue import JsonArray, JsonObject, freeze, json_object, thaw

T = TypeVar("T")

# Not the fields' own converters: they take what a host writes (a single string for a tuple), and a stored value that is
# wrong must be refused instead.
converter: cattrs.Converter = cattrs.Converter(prefer_attrib_converters=False)
"""Turns every value class of youyou into plain JSON data and back."""


def to_json(value: object) -> str:
    """``value`` as JSON text."""
    return msgspec.json.encode(converter.unstructure(value)).decode()


def from_json(cls: type[T], text: str | bytes) -> T:
    """JSON text as an instance of ``cls`` (a class or a union)."""
    return converter.structure(msgspec.json.decode(text), cls)


def _is_attrs(cls: Any) -> bool:
    return attrs.has(get_origin(cls) or cls)


# Functions are left out rather than refused, so that a `ToolInput` can be logged.
def _private(cls: Any) -> dict[str, Any]:
    """Private fields hold the runtime's own functions; they are not data."""
    names = [field.name for field in attrs.fields(get_origin(cls) or cls)]
    return {name: override(omit=True) for name in names if name.startswith("_")}


def _outputs(cls: Any) -> dict[str, Any]:
    """Fields of any class of the host's."""
    hints = get_type_hints(get_origin(cls) or cls)
    return {name: override(unstruct_hook=_plain_output) for name, hint in hints.items() if _is_output(hint)}


@converter.register_unstructure_hook_factory(_is_attrs)
def _unstructure_tagged(cls: Any) -> Callable[[Any], Any]:
    # On every value, not only where a union needs it: what is a union tomorrow can then be read from the logs of today.
    fields = make_dict_unstructure_fn(cls, converter, **_private(cls), **_outputs(cls))
    return lambda value: {"type": cls.__name__, **fields(value)}


@converter.register_structure_hook_factory(_is_attrs)
def _structure_lenient(cls: Any) -> Callable[[Any, Any], Any]:
    # Said outright: a log that a newer version has written holds fields that this one does not know.
    return make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=False, **_private(cls))


def _union_members(cls: Any) -> tuple[Any, ...]:
    return get_args(cls) if get_origin(cls) in (Union, types.UnionType) else ()


def _is_value_union(cls: Any) -> bool:
    # Two at least: ``X | None`` is handled by cattrs itself.
    members = [member for member in _union_members(cls) if member is not types.NoneType]
    return len(members) > 1 and all(isinstance(member, type) and attrs.has(member) for member in members)


@converter.register_structure_hook_factory(_is_value_union)
def _structure_union(cls: Any) -> Callable[[Any, Any], Any]:
    members = {member.__name__: member for member in _union_members(cls) if member is not types.NoneType}
    optional = types.NoneType in _union_members(cls)

    def structure(data: Any, _: Any) -> Any:
        if data is None and optional:
            return None
        name = data.get("type") if isinstance(data, dict) else None
        if name not in members:
            raise ValueError(f"unknown type {name!r}: expected an object whose 'type' is one of {sorted(members)}")
        return converter.structure(data, members[name])

    return structure


@converter.register_unstructure_hook_factory(_is_value_union)
def _unstructure_union(cls: Any) -> Callable[[Any], Any]:
    # By the value's own class: the union as a type would leave out the tag that tells its members apart.
    return lambda value: converter.unstructure(value, unstructure_as=type(value))


def _is_output(cls: Any) -> bool:
    return any(isinstance(member, TypeVar) for member in _union_members(cls))


def _plain_output(value: Any) -> Any:
    """JSON data of a value of the host's class, without the tag that youyou's own classes have."""
    # Keys as text: JSON has no others, and a host may well use an enum or a number.
    return msgspec.to_builtins(value, str_keys=True)


@converter.register_structure_hook_factory(_is_output)
def _structure_output(_: Any) -> Callable[[Any, Any], Any]:
    # The host's class is not known here: a reader of a log gets the data, read-only like all else.
    return lambda data, _: freeze(data)


def _is_error(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, AgentError)


def _error_to_data(error: AgentError) -> dict[str, Any]:
    data: dict[str, Any] = {"type": type(error).__name__, "code": str(error.code), "message": error.message}
    data |= {"retryable": error.retryable, "source": str(error.source), **details_of(error)}
    return data if error.retry_after_ms is None else {**data, "retry_after_ms": error.retry_after_ms}


def _error_from_data(data: dict[str, Any], _: Any) -> AgentError:
    wait = data.get("retry_after_ms")
    return _revive(data["code"], data["message"], data["retryable"], data["source"], wait, data)


converter.register_unstructure_hook_func(_is_error, _error_to_data)
# By code and not by class name: a host's own subclass comes back as the class of its code, without importing the host.
converter.register_structure_hook_func(_is_error, _error_from_data)
converter.register_unstructure_hook(JsonObject, thaw)
converter.register_unstructure_hook(JsonArray, thaw)
converter.register_structure_hook(JsonObject, lambda data, _: json_object(data))
converter.register_unstructure_hook(datetime, lambda moment: moment.isoformat())
converter.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))

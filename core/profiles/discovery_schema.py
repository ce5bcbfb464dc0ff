"""JSON Schema of what discovery tells, for front ends in any language (semantics 13, L3).

    text = msgspec.json.encode(discovery_schema())      # docs/profiles.schema.json holds the same

Derived from the classes, so that it cannot fall behind them. Objects are open: a newer version may tell more.
"""

from __future__ import annotations

import enum
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from .discovery import ProfileInfo

Schema = dict[str, Any]

_PLAIN: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def discovery_schema() -> Schema:
    """The schema of ``converter.unstructure(agent.profiles())``, draft 2020-12."""
    definitions: dict[str, Schema] = {}
    items = _schema(ProfileInfo, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What an agent can be",
        "description": "The profiles of a youyou agent in order of registration, as agent.profiles() tells them.",
        "type": "array",
        "items": items,
        "$defs": definitions,
    }


def _schema(kind: Any, definitions: dict[str, Schema]) -> Schema:
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _schema(get_args(kind)[0], definitions)}
    if get_origin(kind) in (Union, types.UnionType):
        return {"anyOf": [_schema(member, definitions) for member in get_args(kind)]}
    if issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    return _object(kind, definitions)


def _object(kind: Any, definitions: dict[str, Schema]) -> Schema:
    """A reference to the definition of a value class, made when it is first met."""
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}
        hints = get_type_hints(kind)
        fields = {field.name: _schema(hints[field.name], definitions) for field in attrs.fields(kind)}
        definitions[name] = {
            "description": _summary(kind),
            "type": "object",
            "properties": {"type": {"const": name}, **fields},
            "required": ["type", *fields],
        }
    return {"$ref": f"#/$defs/{name}"}


def _summary(kind: Any) -> str:
    return (kind.__doc__ or "").strip().partition("\n\n")[0]

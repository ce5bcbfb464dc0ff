"""Which keys an object may have that becomes a dict with keys of another type than text (semantics 8). Pure.

    note_keys(dict[int, str], schema, definitions)      # adds {"propertyNames": {"pattern": ...}} to the schema

JSON has keys of text alone. msgspec reads ``"7"`` as a key of ``dict[int, str]``, but its schema does not say so; a
model would learn it from an error only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec.inspect as mi

# Bounded, because an endless row of digits is a number that no computer takes; a key for each number, not two.
_WHOLE = r"^(0|-?[1-9][0-9]{0,38})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,38})(\.[0-9]{1,38})?([eE][+-]?[0-9]{1,2})?$"
_FORMATS: dict[type[mi.Type], dict[str, Any]] = {
    mi.IntType: {"pattern": _WHOLE},
    mi.FloatType: {"pattern": _NUMBER},
    mi.DecimalType: {"pattern": _NUMBER},
    mi.UUIDType: {"format": "uuid"},
    mi.DateType: {"format": "date"},
    mi.TimeType: {"format": "time"},
    mi.DateTimeType: {"format": "date-time"},
    mi.TimeDeltaType: {"format": "duration"},
}
# Whatever the key says, msgspec finds none of these in it.
_NEVER = (mi.BoolType, mi.NoneType, mi.TupleType, mi.VarTupleType, mi.FrozenSetType, mi.DataclassType, mi.StructType)


class ImpossibleKey(TypeError):
    """A type of keys that no text can be read as."""


def note_keys(hint: Any, schema: Any, definitions: dict[str, Any]) -> None:
    """Add what keys may be to every object in ``schema`` that becomes a dict.

    Args:
        hint: the type that the schema is of.
        schema: what msgspec made of it; it is changed.
        definitions: the schemas that ``schema`` refers to, by name; they are changed.

    Raises:
        ImpossibleKey: a dict whose keys can never be built.
    """
    _note(mi.type_info(hint), schema, definitions, set())


def _note(info: mi.Type, schema: Any, definitions: dict[str, Any], seen: set[str]) -> None:
    if isinstance(info, mi.Metadata):
        info = info.type
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        if name in seen:
            return
        seen.add(name)
        schema = definitions[name]
    match info:
        case mi.DictType():
            names = _names(info.key_type)
            if names is not None:
                schema.setdefault("propertyNames", names)
            if "additionalProperties" in schema:
                _note(info.value_type, schema["additionalProperties"], definitions, seen)
        case mi.ListType() | mi.SetType() | mi.FrozenSetType() | mi.VarTupleType() | mi.CollectionType():
            if "items" in schema:
                _note(info.item_type, schema["items"], definitions, seen)
        case mi.TupleType():
            for item, part in zip(info.item_types, schema.get("prefixItems", ()), strict=False):
                _note(item, part, definitions, seen)
        case mi.TypedDictType() | mi.DataclassType() | mi.StructType():
            for field in info.fields:
                _note(field.type, schema["properties"][field.encode_name], definitions, seen)
        case mi.NamedTupleType():
            for field, part in zip(info.fields, schema.get("prefixItems", ()), strict=False):
                _note(field.type, part, definitions, seen)
        case mi.UnionType():
            for member, part in _members(info, schema):
                _note(member, part, definitions, seen)


def _members(union: mi.UnionType, schema: Any) -> Iterator[tuple[mi.Type, Any]]:
    """Each member that holds others, with its schema: msgspec allows a union one kind of object and one of array."""
    members = [member.type if isinstance(member, mi.Metadata) else member for member in union.types]
    for member in members:
        kind = _kind(member)
        for part in schema.get("anyOf", ()):
            if kind and (part.get("type") == kind or ("$ref" in part and _is_class(member))):
                yield member, part


def _kind(info: mi.Type) -> str:
    if isinstance(info, mi.DictType):
        return "object"
    held = mi.ListType | mi.SetType | mi.FrozenSetType | mi.VarTupleType | mi.TupleType
    return "array" if isinstance(info, held) else "class" if _is_class(info) else ""


def _is_class(info: mi.Type) -> bool:
    return isinstance(info, mi.TypedDictType | mi.DataclassType | mi.StructType | mi.NamedTupleType)


def _names(key: mi.Type) -> dict[str, Any] | None:
    """The schema of keys; None for any text, and for what msgspec has said already."""
    if isinstance(key, mi.Metadata):
        key = key.type
    match key:
        case mi.LiteralType(values=values):
            return {"enum": [str(value) for value in values]}
        case mi.EnumType(cls=cls):
            return {"enum": [str(member.value) for member in cls]}
        case mi.UnionType(types=types):
            found = [_names(member) for member in types if not isinstance(member, mi.NoneType)]
            return None if None in found else {"anyOf": found}
    if isinstance(key, _NEVER):
        raise ImpossibleKey(
            f"keys of a JSON object are texts, and none is read as {type(key).__name__.removesuffix('Type')}"
        )
    return _FORMATS.get(type(key))

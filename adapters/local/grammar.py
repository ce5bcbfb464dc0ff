"""A JSON Schema as a GBNF grammar, so that a small model cannot write arguments of the wrong shape (semantics 14).

Pure. What a grammar cannot say (ranges, patterns, uniqueness) is left to the runtime, which validates arguments before
a tool runs. Properties come in the schema's order, the required ones first; additional ones are never written.

    grammar = Grammar()
    arguments = grammar.rule(tool.parameters)           # the name of a rule
    text = grammar.text(f'" weather(" {arguments} ")"')
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

# No escape for code points: a model would write halves of surrogate pairs with it.
_BASE = {
    "char": r'[^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt]',
    "text": r'"\"" char* "\""',
    "integer": r'"-"? natural',
    "natural": r'"0" | [1-9] [0-9]{0,14}',
    "number": r'integer ("." [0-9]{1,9})?',
    "boolean": r'"true" | "false"',
    "null": r'"null"',
    "array": r'"[" (value (", " value)*)? "]"',
    "object": r'"{" (text ": " value (", " text ": " value)*)? "}"',
    "value": r"text | number | boolean | null | array | object",
}
_SPEAKING = ("properties", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties")
_MANY = 64
"""Counts above this are left open: a grammar spells repetitions out."""


def literal(text: str) -> str:
    """A GBNF literal for exactly ``text``."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def json_literal(value: Any) -> str:
    """A GBNF literal for ``value`` as JSON."""
    return literal(json.dumps(value, ensure_ascii=False))


def _one_of(bodies: Iterable[str]) -> str:
    return " | ".join(f"({body})" for body in bodies)


def _count(low: int, high: int | None) -> str:
    if high is not None and high <= _MANY:
        return f"{{{min(low, high)},{high}}}"
    return f"{{{min(low, _MANY)},}}"


def _separated(items: Sequence[str], optional: Sequence[str]) -> str:
    """All ``items``, then any of ``optional`` in order, with commas between what is there."""
    tail = " ".join(f'(", " {item})?' for item in optional)
    if items:
        return " ".join((' ", " '.join(items), tail)).strip()
    starts = [_separated([first], optional[at + 1 :]) for at, first in enumerate(optional)]
    return f"({_one_of(starts)})?" if starts else ""


@attrs.define(eq=False)
class Grammar:
    """Rules gathered so far. One per tool list; the schemas of several tools do not meet."""

    _rules: dict[str, str] = attrs.field(factory=lambda: dict(_BASE))

    def text(self, root: str) -> str:
        """The whole grammar with this root."""
        return "\n".join(f"{name} ::= {body}" for name, body in {"root": root, **self._rules}.items()) + "\n"

    def rule(self, schema: Any) -> str:
        """The name of a rule for a tool's ``parameters``: an object, with no member when it declares none."""
        speaks = isinstance(schema, Mapping) and any(schema.get(key) for key in _SPEAKING)
        known: Mapping[str, Any] = schema if speaks else {"const": {}}
        return _Schema(self, known).name_of(known)

    def define(self, name: str, body: str) -> None:
        """Define or replace the grammar's rule of this name."""
        self._rules[name] = body

    def reserve(self) -> str:
        """A name that is free; the caller defines it."""
        name = f"r{len(self._rules)}"
        self._rules[name] = ""
        return name


@attrs.define(eq=False)
class _Schema:
    """One root schema: what ``$ref`` refers to."""

    _grammar: Grammar
    _root: Mapping[str, Any]
    _refs: dict[str, str] = attrs.field(factory=dict)

    def name_of(self, schema: Any) -> str:
        name = self._grammar.reserve()
        self._grammar.define(name, self._body(schema))
        return name

    def _body(self, schema: Any) -> str:
        if not isinstance(schema, Mapping):
            return "value"
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]))
        if "const" in schema:
            return json_literal(schema["const"])
        if schema.get("enum"):
            return " | ".join(map(json_literal, schema["enum"]))
        for key in ("anyOf", "oneOf"):
            if schema.get(key):
                return " | ".join(map(self.name_of, schema[key]))
        if len(schema.get("allOf", ())) == 1:
            return self.name_of(schema["allOf"][0])
        return self._typed(schema)

    def _reference(self, ref: str) -> str:
        if ref not in self._refs:
            self._refs[ref] = self._grammar.reserve()
            self._grammar.define(self._refs[ref], self._body(self._resolve(ref)))
        return self._refs[ref]

    def _resolve(self, ref: str) -> Any:
        """What a local reference points to; any value where it points nowhere."""
        found: Any = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, Mapping) else None
        return found if ref.startswith("#") else None

    def _typed(self, schema: Mapping[str, Any]) -> str:
        kind = schema.get("type") or ("object" if "properties" in schema else None)
        if isinstance(kind, list | tuple):
            return _one_of(self._typed({**schema, "type": one}) for one in kind)
        match kind:
            case "string":
                return f'"\\"" char{_count(schema.get("minLength", 0), schema.get("maxLength"))} "\\""'
            case "integer" | "number":
                positive = schema.get("minimum", schema.get("exclusiveMinimum", -1)) >= 0
                natural = "natural" if kind == "integer" else 'natural ("." [0-9]{1,9})?'
                return natural if positive else str(kind)
            case "boolean" | "null":
                return str(kind)
            case "array":
                return self._array(schema)
            case "object":
                return self._object(schema)
        return "value"

    def _array(self, schema: Mapping[str, Any]) -> str:
        item = self.name_of(schema.get("items", True))
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if high == 0:
            return '"[]"'
        some = f'{item} (", " {item}){_count(max(0, low - 1), None if high is None else high - 1)}'
        return f'"[" {some} "]"' if low else f'"[" ({some})? "]"'

    def _object(self, schema: Mapping[str, Any]) -> str:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        if not properties:
            return self._map(schema.get("additionalProperties", True))
        needed = set(schema.get("required", ()))
        members = {key: f"{json_literal(key)} {literal(': ')} {self.name_of(of)}" for key, of in properties.items()}
        required = [member for key, member in members.items() if key in needed]
        optional = [member for key, member in members.items() if key not in needed]
        return f'"{{" {_separated(required, optional)} "}}"'

    def _map(self, values: Any) -> str:
        if values is False:
            return '"{}"'
        value = self.name_of(values)
        return f'"{{" (text ": " {value} (", " text ": " {value})*)? "}}"'

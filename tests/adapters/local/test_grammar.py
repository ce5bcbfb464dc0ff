"""A JSON Schema as a grammar, judged by what it lets through. The grammars are read by a small matcher of this file."""

from __future__ import annotations

import json
import re
from functools import lru_cache

import pytest
from youyou.adapters.local.grammar import Grammar

_TOKEN = re.compile(
    r"""\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[a-z][a-z0-9]*|\{\d+(?:,\d*)?\}|[()|*?+])""",
)


def unescaped(literal: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "r": "\r"}.get(found[1], found[1]), literal)


def as_regex(grammar: str, name: str = "root", depth: int = 10) -> str:
    """The grammar as a regular expression, with recursion followed ``depth`` levels deep."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())

    @lru_cache
    def expand(name: str, depth: int) -> str:
        if depth < 0:
            return "(?!)"
        return "(?:" + "".join(piece(token, depth) for token in _TOKEN.findall(rules[name])) + ")"

    def piece(token: str, depth: int) -> str:
        if token.startswith('"'):
            return f"(?:{re.escape(unescaped(token[1:-1]))})"
        if token == "(":
            return "(?:"
        return expand(token, depth - 1) if token[0].isalpha() else token

    return expand(name, depth)


def accepts(schema: object, text: str, depth: int = 10) -> bool:
    grammar = Grammar()
    rule = grammar.rule(schema)
    return re.fullmatch(as_regex(grammar.text(rule), depth=depth), text) is not None


def closed(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties)}


ONE_OR_TWO = {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}
CASES = [
    (closed(city={"type": "string"}), '{"city": "Oslo"}', True),
    (closed(city={"type": "string"}), '{"city": "say \\"hi\\""}', True),
    (closed(city={"type": "string"}), '{"city": "København 東京 🙂"}', True),
    (closed(city={"type": "string"}), '{"city": "broken " quote"}', False),
    (closed(city={"type": "string"}), '{"city": "\\ud83d"}', False),
    (closed(city={"type": "string"}), '{"city": 3}', False),
    (closed(city={"type": "string"}), "{}", False),
    (closed(city={"type": "string"}), '{"town": "Oslo"}', False),
    (closed(code={"type": "string", "minLength": 2, "maxLength": 3}), '{"code": "no"}', True),
    (closed(code={"type": "string", "minLength": 2, "maxLength": 3}), '{"code": "norw"}', False),
    (closed(n={"type": "integer"}), '{"n": -7}', True),
    (closed(n={"type": "integer"}), '{"n": 07}', False),
    (closed(n={"type": "integer"}), '{"n": 1.5}', False),
    (closed(n={"type": "integer", "minimum": 0}), '{"n": -7}', False),
    (closed(n={"type": "number"}), '{"n": 1.5}', True),
    (closed(b={"type": "boolean"}), '{"b": true}', True),
    (closed(b={"type": ["boolean", "null"]}), '{"b": null}', True),
    (closed(unit={"enum": ["°C", 'a"b']}), '{"unit": "°C"}', True),
    (closed(unit={"enum": ["°C", 'a"b']}), '{"unit": "a\\"b"}', True),
    (closed(unit={"enum": ["°C", 'a"b']}), '{"unit": "K"}', False),
    (closed(v={"const": 3}), '{"v": 3}', True),
    (closed(v={"anyOf": [{"type": "integer"}, {"type": "null"}]}), '{"v": null}', True),
    (closed(v={"anyOf": [{"type": "integer"}, {"type": "null"}]}), '{"v": "x"}', False),
    (closed(v={"allOf": [{"type": "integer"}]}), '{"v": "x"}', False),
    (closed(tags={"type": "array", "items": {"type": "string"}}), '{"tags": []}', True),
    (closed(tags={"type": "array", "items": {"type": "string"}}), '{"tags": ["a", "b"]}', True),
    (closed(tags={"type": "array", "items": {"type": "string"}}), '{"tags": [1]}', False),
    (closed(tags=ONE_OR_TWO), '{"tags": []}', False),
    (
        closed(tags={"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
        '{"tags": [1, 2]}',
        True,
    ),
    (closed(tags={"type": "array", "items": {"type": "integer"}, "maxItems": 2}), '{"tags": [1, 2, 3]}', False),
    (closed(to=closed(name={"type": "string"})), '{"to": {"name": "Ann"}}', True),
    (closed(to=closed(name={"type": "string"})), '{"to": "Ann"}', False),
    (closed(map={"type": "object", "additionalProperties": {"type": "integer"}}), '{"map": {"a": 1, "b": 2}}', True),
    (closed(map={"type": "object", "additionalProperties": {"type": "integer"}}), '{"map": {"a": "b"}}', False),
    (closed(map={"type": "object", "additionalProperties": False}), '{"map": {}}', True),
    (closed(any={}), '{"any": [1, {"x": null}]}', True),
    ({"type": "object", "properties": {}}, "{}", True),
    ({"type": "object", "properties": {}}, '{"x": 1}', False),
    ({"type": "object"}, "{}", True),
    ({}, "{}", True),
    ({}, '{"x": 1}', False),
]


@pytest.mark.parametrize(("schema", "text", "expected"), CASES)
def test_a_grammar_lets_through_what_its_schema_does(schema, text, expected):
    """Arguments are written exactly as the schema's types, enumerations, counts and required members allow."""
    assert expected == accepts(schema, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b": 2}', True),
        ('{"b": 2, "a": 1}', True),
        ('{"b": 2, "c": 3}', True),
        ('{"b": 2, "a": 1, "c": 3}', True),
        ('{"a": 1}', False),
        ('{"b": 2, }', False),
        ('{"b": 2, "c": 3, "a": 1}', False),
    ],
)
def test_optional_members_may_be_left_out_and_come_after_the_required_ones(text, expected):
    """Every subset of the optional members can be written, in order, with commas only between members."""
    integers = {key: {"type": "integer"} for key in "abc"}

    assert expected == accepts({"type": "object", "properties": integers, "required": ["b"]}, text)


@pytest.mark.parametrize("text", ["{}", '{"a": 1}', '{"b": 1}', '{"a": 1, "b": 1}'])
def test_without_required_members_any_subset_will_do(text):
    """An object whose members are all optional can be empty, or begin with any of them."""
    assert accepts({"type": "object", "properties": {key: {"type": "integer"} for key in "ab"}}, text)


def test_a_schema_that_contains_itself_becomes_a_recursive_rule():
    """A tree is described by one rule that names itself, and trees of any depth pass."""
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
    schema = {"$defs": {"tree": tree}, "$ref": "#/$defs/tree"}

    assert accepts(schema, '{"kids": [{"kids": [{}]}]}', depth=14)
    assert not accepts(schema, '{"kids": [1]}', depth=14)


def test_a_reference_that_leads_nowhere_stands_for_any_value():
    """A grammar is made for every schema; what it cannot know is left to validation."""
    assert accepts(closed(x={"$ref": "#/$defs/missing"}), '{"x": [1]}')


def test_literals_survive_every_character_that_json_can_write():
    """An enumeration with quotes, backslashes and line breaks is matched by its own JSON."""
    value = 'a "b" \\c \n d'

    assert accepts(closed(x={"enum": [value]}), json.dumps({"x": value}, ensure_ascii=False))

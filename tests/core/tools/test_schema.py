"""Arguments against a tool's JSON Schema (semantics 8)."""

from __future__ import annotations

import pytest
from youyou.core.tools.schema import ArgumentChecker, full_schema
from youyou.messages.errors import InvalidConfig
from youyou.messages.jsonvalue import json_object

SCHEMA = json_object(
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "stops": {"type": "array", "items": {"$ref": "#/$defs/Stop"}},
            "unit": {"enum": ["c", "f"]},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"Stop": {"type": "object", "properties": {"minutes": {"type": "integer"}}}},
    }
)


@pytest.mark.parametrize(
    "arguments",
    [{"city": "Oslo"}, {"city": "", "days": None}, {"city": "Oslo", "days": 2.0, "stops": [{"minutes": 3}, {}]}],
)
def test_arguments_that_fit_have_no_error(arguments):
    """None means that the tool may run."""
    assert ArgumentChecker("weather", SCHEMA).check(arguments) is None
    assert ArgumentChecker("weather", SCHEMA).check(json_object(arguments)) is None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, '- arguments: "city" is a required property; expected {"type":"string"}'),
        ({"city": 3}, '- city: 3 is not of type "string"; expected {"type":"string"}'),
        ({"city": "O", "unit": "k"}, '- unit: "k" is not one of "c" or "f"; expected {"enum":["c","f"]}'),
        ({"city": "O", "town": "P"}, "- arguments: Additional properties are not allowed ('town' was unexpected);"),
        ({"city": "O", "town": "P"}, "; allowed: city, days, stops, unit"),
        ({"city": "O", "days": "x"}, '; expected {"anyOf":[{"type":"integer"},{"type":"null"}]}'),
        ({"city": "O", "stops": [{}, {"minutes": "x"}]}, '- stops[1].minutes: "x" is not of type "integer"'),
        ({"city": float("nan")}, "- city: "),
        ({1: 2}, "are not a JSON object"),
        ({"city": object()}, "are not a JSON object"),
        ("text", '- arguments: "text" is not of type "object"'),
    ],
)
def test_the_error_says_what_is_wrong_where_and_what_is_expected(arguments, expected):
    """The model can correct its call from the text alone."""
    text = ArgumentChecker("weather", SCHEMA).check(arguments)

    assert text is not None
    assert "tool 'weather'" in text
    assert expected in text


def test_the_error_stays_short():
    """Huge arguments and hundreds of mistakes give a short text."""
    checker = ArgumentChecker("weather", {"additionalProperties": {"type": "integer"}})

    text = checker.check({f"k{index}": "x" * 100_000 for index in range(100)})

    assert text is not None
    assert len(text) < 4_000


def test_a_property_of_any_name_can_be_refused():
    """A schema whose properties are named like keywords is explained like any other."""
    checker = ArgumentChecker("odd", {"properties": {"required": {"type": "integer"}}})

    text = checker.check({"required": "x"})

    assert text is not None
    assert '- required: "x" is not of type "integer"; expected {"type":"integer"}' in text


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ([], "must be a JSON Schema"),
        ("object", "must be a JSON Schema"),
        ({"type": "string"}, '"type": "object"'),
        ({"properties": 3}, "not a valid JSON Schema"),
        ({"properties": {"a": {"type": "text"}}}, "not a valid JSON Schema"),
        ({"properties": {"a": {"pattern": "("}}}, "not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "not a valid JSON Schema"),
        ({"properties": {"a": {"$ref": "http://localhost:1/schema"}}}, "put it under $defs"),
        ({"properties": {"a": object()}}, "not a valid JSON Schema"),
    ],
)
def test_what_is_no_schema_is_refused(schema, complaint):
    """A schema that cannot be used is found when it is compiled; nothing is ever fetched."""
    with pytest.raises(InvalidConfig, match="'weather'") as caught:
        ArgumentChecker("weather", schema)

    assert complaint in caught.value.message


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object", "properties": {}}])
def test_a_tool_without_parameters_has_an_object_schema(parameters):
    """APIs want an object schema even where there is nothing to pass."""
    expected = {"type": "object", "properties": {}}

    assert expected == full_schema(parameters)

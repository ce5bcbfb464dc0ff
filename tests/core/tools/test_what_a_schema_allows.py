"""What the schema of a tool accepts can be built: random annotations, and JSON drawn from their schemas."""

from __future__ import annotations

from dataclasses import make_dataclass
from datetime import date
from enum import Enum, IntEnum
from functools import reduce
from operator import or_
from typing import Any, Literal, TypedDict
from uuid import UUID

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from youyou.core.ports.protocols import ToolInput
from youyou.core.tools.declaration import tool
from youyou.core.tools.schema import ArgumentChecker
from youyou.core.tools.signature import Signature
from youyou.messages.errors import InvalidConfig


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Place:
    name: str
    floors: dict[int, str] = attrs.field(factory=dict)


class Node(TypedDict, total=False):
    label: str
    next: dict[int, Node]


KEYS = [str, int, float, Level, Colour, Literal["a", "b"], Literal[1, 2], int | Literal["a"]]
LEAVES = [str, int, float, bool, None, Any, Literal["a", "b"], Literal[1, 2], Colour, Level, Place, Node]


def containers(hints: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Types that hold types."""
    return st.one_of(
        hints.map(lambda hint: list[hint]),
        hints.map(lambda hint: tuple[hint, ...]),
        st.lists(hints, min_size=1, max_size=3).map(lambda each: tuple[tuple(each)]),  # type: ignore[misc]
        st.tuples(st.sampled_from(KEYS), hints).map(lambda each: dict[each]),  # type: ignore[misc]
        hints.map(lambda hint: hint if hint in (None, Any) else reduce(or_, (hint, None))),
        hints.map(lambda hint: make_dataclass("Made", [("first", hint), ("second", hint, None)])),
    )


HINTS = st.recursive(st.sampled_from(LEAVES), containers, max_leaves=4) | st.sets(
    st.sampled_from([str, int, float, bool, None, list[int], dict[int, str]]), min_size=2
).map(lambda each: reduce(or_, sorted(each - {None}, key=str)) if len(each - {None}) > 1 else str)


def values(schema: Any, definitions: Any) -> st.SearchStrategy[Any]:
    """JSON that a schema accepts."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return st.one_of([values(each, definitions) for each in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(list(schema["enum"]))
    match schema.get("type"):
        case "string":
            return st.text(st.characters(exclude_categories=["Cs"]))
        case "integer":
            return st.integers() | st.integers(-(2**53), 2**53).map(float)
        case "number":
            return st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            first = [values(each, definitions) for each in schema.get("prefixItems", ())]
            if first:
                return st.tuples(*first).map(list)
            return st.lists(values(schema.get("items", {}), definitions), max_size=3)
        case "object":
            return objects(schema, definitions)
    return st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=3)


def objects(schema: Any, definitions: Any) -> st.SearchStrategy[Any]:
    """Objects with their named members, or with any keys that are allowed."""
    if "properties" in schema:
        named = {
            name: st.deferred(lambda each=each: values(each, definitions))
            for name, each in schema["properties"].items()
        }
        required = {name: each for name, each in named.items() if name in schema["required"]}
        return st.fixed_dictionaries(required, optional={n: each for n, each in named.items() if n not in required})
    return st.dictionaries(
        keys(schema.get("propertyNames", {}), definitions),
        values(schema.get("additionalProperties", {}), definitions),
        max_size=3,
    )


def keys(names: Any, definitions: Any) -> st.SearchStrategy[str]:
    """Texts that a schema of keys accepts."""
    if "$ref" in names:
        names = definitions[names["$ref"].rpartition("/")[2]]
    if "anyOf" in names:
        return st.one_of([keys(each, definitions) for each in names["anyOf"]])
    if "enum" in names:
        return st.sampled_from(list(names["enum"]))
    if "pattern" in names:
        return st.from_regex(names["pattern"], fullmatch=True).map(str.strip)
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def check(data: st.DataObject) -> None:
    """One annotation and one value."""
    hint = data.draw(HINTS, label="hint")

    async def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}
    made = tool(function)
    parameters = made.parameters
    value = data.draw(values(parameters["properties"]["value"], parameters.get("$defs", {})), label="value")

    assert ArgumentChecker("function", parameters).check({"value": value}) is None
    Signature.of(function, "function").bind(ToolInput("c", "function", {"value": value}))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_the_schema_accepts_can_be_built(data: st.DataObject) -> None:
    """Whatever the annotation is made of, a few examples."""
    check(data)


@pytest.mark.long
@settings(max_examples=1_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_the_schema_accepts_can_be_built_in_thousands_of_cases(data: st.DataObject) -> None:
    """The same, many."""
    check(data)


NAMES = [
    (dict[int, str], ["0", "-7", "12"], ["", "a", "01", "-0", "1.5", "+1", " 1", "1\n"]),
    (dict[float, str], ["0", "1.5", "-1e3"], ["a", "inf", "NaN", "1.", ".5"]),
    (dict[Level, str], ["1", "2"], ["3", "LOW"]),
    (dict[Literal[1, 2], str], ["1"], ["3"]),
    (dict[int | Literal["all"], str], ["1", "all"], ["none"]),
    (list[dict[int, dict[int, str]]], [], []),
    (dict[str, str], ["anything", ""], []),
]


@pytest.mark.parametrize(("hint", "fit", "unfit"), NAMES)
def test_the_schema_says_which_keys_it_takes(hint: Any, fit: list[str], unfit: list[str]) -> None:
    """A key that cannot be read is refused by the schema, with the model's other mistakes."""

    async def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}
    checker = ArgumentChecker("function", tool(function).parameters)

    assert [key for key in fit if checker.check({"value": {key: "x"}}) is not None] == []
    assert [key for key in unfit if checker.check({"value": {key: "x"}}) is None] == []


@pytest.mark.parametrize(
    "hint",
    [list[dict[int, str]], dict[str, dict[int, str]], tuple[int, dict[int, str]], dict[int, str] | None, Place, Node],
)
def test_keys_are_noted_wherever_the_dict_stands(hint: Any) -> None:
    """Within lists, dicts, tuples, unions and classes."""

    async def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}

    assert "propertyNames" in str(tool(function).parameters)


@pytest.mark.parametrize("hint", [dict[bool, str], dict[None, str], list[dict[tuple[int, int], str]]])
def test_keys_that_can_never_be_built_are_refused_at_once(hint: Any) -> None:
    """When the tool is made, not when a model calls it."""

    async def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}

    with pytest.raises(InvalidConfig, match="keys of a JSON object are texts"):
        tool(function)


@pytest.mark.parametrize("hint", [dict[UUID, int], dict[date, int]])
def test_keys_with_a_format_are_described(hint: Any) -> None:
    """The format is said; whether a text has it is seen when the dict is built."""

    async def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}

    assert {"format"} == set(tool(function).parameters["properties"]["value"]["propertyNames"])

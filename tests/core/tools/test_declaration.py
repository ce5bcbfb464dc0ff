"""What a tool is: made by hand or from a typed function (semantics 8, 13 L0)."""

from __future__ import annotations

import dataclasses
import functools
import threading
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import attrs
import pytest
from youyou.core.ports.protocols import ToolHandler, ToolInput
from youyou.core.tools.declaration import (
    ArgumentChecker,
    ThreadFunction,
    Tool,
    batch_is_serial,
    spec_of,
    tags_of,
    timeout_of,
    to_output,
    tool,
)
from youyou.messages.chat import ToolSpec
from youyou.messages.errors import InvalidConfig, InvalidToolArguments
from youyou.messages.events import ToolOutput
from youyou.messages.history import ToolCall


@attrs.frozen
class Place:
    name: str
    floor: int = attrs.field(default=0, validator=attrs.validators.ge(0))


@dataclasses.dataclass
class Trip:
    stops: list[Place]
    back: Trip | None = None


class Unit(Enum):
    CELSIUS = "c"
    KELVIN = "k"


class Options(TypedDict, total=False):
    limit: int


def call(arguments: dict[str, Any], name: str = "t") -> ToolInput:
    return ToolInput("c1", name, arguments)


async def run(made: Tool, **arguments: Any) -> str:
    return (await made.execute(call(arguments, made.name))).content


@tool
async def weather(city: str, days: int = 1) -> str:
    """Weather in a city,
    as it is now.

    Args:
        city: Where.
        days: How many days.
    """
    return f"{city} {days}"


def test_a_typed_function_describes_itself():
    """Name, description and schema come from the function; defaults make a parameter optional."""
    expected = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "description": "How many days.", "default": 1},
        },
        "required": ["city"],
        "additionalProperties": False,
    }

    assert expected == weather.parameters
    assert weather.name == "weather"
    assert weather.description == "Weather in a city, as it is now."
    assert isinstance(weather, ToolHandler)


def test_arguments_of_the_decorator_win():
    """What the decorator is told replaces what the function says."""

    @tool(
        name="w", description="D", mutating=True, tags=["read"], timeout_ms=5, icon="sun", label="W", thread="abandon"
    )
    def plain(city: str) -> None:
        """Not used."""

    assert isinstance(plain.execute, ThreadFunction)
    expected = ("w", "D", True, ("read",), 5, "sun", "W")
    shown = (plain.name, plain.description, plain.mutating, plain.tags, plain.timeout_ms, plain.icon, plain.label)

    assert expected == shown
    assert plain.execute.thread == "abandon"


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Unit, {"$ref": "#/$defs/Unit"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Options, {"$ref": "#/$defs/Options"}),
        (Place, {"$ref": "#/$defs/Place"}),
        (list[Trip], {"type": "array", "items": {"$ref": "#/$defs/Trip"}}),
        (Annotated[str, "Said here."], {"type": "string", "description": "Said here."}),
    ],
)
def test_hints_become_schemas_that_compile(hint, expected):
    """Each kind of hint has its schema, and the whole is a valid JSON Schema."""

    async def function(value):
        """X."""

    function.__annotations__ = {"value": hint}
    made = tool(function)

    assert expected == made.parameters["properties"]["value"]
    ArgumentChecker(made.name, made.parameters)


@pytest.mark.parametrize(
    ("hint", "argument", "expected"),
    [
        (Place, {"name": "a", "floor": 2}, Place("a", 2)),
        (Trip, {"stops": [{"name": "a"}], "back": {"stops": []}}, Trip([Place("a")], Trip([]))),
        (list[Place], [{"name": "a"}], [Place("a")]),
        (dict[str, Place], {"x": {"name": "a"}}, {"x": Place("a")}),
        (Place | None, None, None),
        (Unit, "k", Unit.KELVIN),
        (Literal["a"], "a", "a"),
        (int, 3.0, 3),
        (list[int], [1.0, 2], [1, 2]),
        (float, 3, 3.0),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Options, {"limit": 1}, {"limit": 1}),
        (Any, {"x": [1.0]}, {"x": [1.0]}),
    ],
)
async def test_arguments_are_structured_to_the_hinted_types(hint, argument, expected):
    """A function gets values of the types that it asked for; the schema allows them too."""
    seen = []

    async def function(value):
        seen.append(value)

    function.__annotations__ = {"value": hint}
    made = tool(function)

    await made.execute(call({"value": argument}))

    assert ArgumentChecker("f", made.parameters).check({"value": argument}) is None
    assert [(type(expected), expected)] == [(type(value), value) for value in seen]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"place": {"name": "a", "floor": -1}}, "'floor' must be >= 0"),
        ({"place": {"name": 1}}, "$.name"),
        ({"place": {"name": "a", "floor": "1"}}, "Expected `int`, got `str`"),
        ({}, "missing ['place']"),
        ({"place": {"name": "a"}, "plaice": 1}, "unknown ['plaice']"),
    ],
)
async def test_arguments_that_cannot_be_structured_are_refused(arguments, complaint):
    """What JSON Schema cannot say, such as a validator of a class, is refused before the function runs."""

    @tool
    async def visit(place: Place) -> None:
        raise AssertionError("must not run")

    with pytest.raises(InvalidToolArguments) as caught:
        await visit.execute(call(arguments))

    assert complaint in caught.value.message


async def test_defaults_and_unhinted_parameters():
    """A default stands in for what is not passed; a parameter without a hint takes any JSON."""
    default = Place("home")

    @tool
    async def visit(anything, place: Place = default, label: str | None = None) -> str:
        return f"{anything} {place.name} {place is default} {label}"

    properties = visit.parameters["properties"]
    expected = [{}, {"name": "home", "floor": 0}, None]

    assert await run(visit, anything={"a": 1}) == "{'a': 1} home True None"
    assert expected == [properties["anything"], properties["place"]["default"], properties["label"]["default"]]
    assert visit.parameters["required"] == ["anything"]


async def test_a_default_that_json_cannot_carry_still_works():
    """Such a default is left out of the schema and used all the same."""
    marker = object()

    @tool
    async def look(value: int = marker) -> str:
        return str(value is marker)

    assert look.parameters["properties"] == {"value": {"type": "integer"}}
    assert await run(look) == "True"


async def test_a_parameter_annotated_tool_input_gets_it():
    """The input itself reaches the function and is not in the schema."""

    @tool
    async def echo(text: str, given: ToolInput) -> str:
        return f"{given.call_id} {text}"

    assert await run(echo, text="x") == "c1 x"
    assert list(echo.parameters["properties"]) == ["text"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", ToolOutput("text")),
        (None, ToolOutput("")),
        (ToolOutput("no", is_error=True), ToolOutput("no", is_error=True)),
        ({"a": [1, None, "é"]}, ToolOutput('{"a":[1,null,"é"]}')),
        (True, ToolOutput("true")),
        (3, ToolOutput("3")),
        ([Place("a", 1)], ToolOutput('[{"floor":1,"name":"a"}]')),
        (Unit.KELVIN, ToolOutput('"k"')),
        ({"a": "\ud800"}, ToolOutput('{"a":"\ufffd"}')),
    ],
)
def test_what_a_function_returns_becomes_an_output(value, expected):
    """Text is kept, None is empty, other values become JSON text."""
    assert expected == to_output(value)


def test_returning_what_json_cannot_carry_is_explained():
    """The error says what to return instead, and a forgotten coroutine is closed."""

    async def forgotten() -> None: ...

    with pytest.raises(TypeError, match="return text, JSON or ToolOutput"):
        to_output(object())
    with pytest.raises(TypeError, match="async def"):
        to_output(forgotten())


async def test_a_plain_function_becomes_a_thread_function():
    """The runtime can run ``call`` in a thread; awaited anywhere else it runs inline."""
    threads = []

    @tool(thread="cooperative")
    def count(text: str) -> int:
        threads.append(threading.get_ident())
        return len(text)

    assert isinstance(count.execute, ThreadFunction)
    assert count.execute.thread == "cooperative"
    assert count.execute.call(call({"text": "abc"})) == ToolOutput("3")
    assert await run(count, text="ab") == "2"
    assert [threading.get_ident()] * 2 == threads


async def test_a_tool_by_hand_takes_plain_and_async_functions():
    """A plain ``execute`` becomes a thread function that is waited for; an async one is kept."""

    async def later(given: ToolInput) -> ToolOutput:
        return ToolOutput(given.arguments["text"])

    plain = Tool("plain", "P", {"type": "object"}, lambda given: given.arguments["text"])
    handmade = Tool("later", "L", {"type": "object"}, later)

    assert isinstance(plain.execute, ThreadFunction)
    assert plain.execute.thread == "wait"
    assert handmade.execute is later
    assert await run(plain, text="x") == "x"
    assert await run(handmade, text="y") == "y"
    assert plain == attrs.evolve(plain)


async def test_methods_partials_and_wrapped_functions_are_tools():
    """Anything callable with a signature and a name will do."""

    class Shop:
        async def price(self, item: str) -> str:
            """Price."""
            return f"{item}: 1"

        async def __call__(self, item: str) -> str:
            return f"called {item}"

    @functools.wraps(weather.execute.function)
    async def wrapped(*args, **kwargs):
        return "wrapped"

    bound = tool(Shop().price)
    partial = tool(functools.partial(Shop().price), name="partial")
    instance = tool(Shop(), name="shop")

    expected = ["a: 1", "a: 1", "called a"]

    assert expected == [await run(each, item="a") for each in (bound, partial, instance)]
    assert spec_of(bound) == ToolSpec("price", "Price.", bound.parameters)
    assert weather.parameters == tool(wrapped).parameters
    assert await run(tool(wrapped), city="Oslo") == "wrapped"


async def test_the_decorated_object_is_still_the_function():
    """Calling a tool calls what it was made from."""

    @tool
    def add(a: int, b: int = 1) -> int:
        return a + b

    assert await weather("Oslo", days=2) == "Oslo 2"
    assert add(1) == 2
    assert Tool("t", "", {}, lambda given: given.call_id)(call({})) == "c1"


def _no_hint_here(value: Missing) -> None: ...  # noqa: F821  # the point: it cannot be resolved


def _custom(value: threading.Lock) -> None: ...


def _many(*values: str) -> None: ...


def _any_names(**values: str) -> None: ...


def _positional(value: str, /) -> None: ...


def _method(self, value: str) -> None: ...


async def _generator(value: str):
    yield value


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: tool(thread="x")(lambda: None), 'tool(name="...")'),
        (lambda: tool(name="t", thread="x")(lambda: None), 'thread="wait", "cooperative" or "abandon"'),
        (lambda: tool(thread="cooperative")(weather.execute.function), "remove thread='cooperative'"),
        (lambda: tool(_many), "values: list[str]"),
        (lambda: tool(_any_names), "values: dict[str, str]"),
        (lambda: tool(_positional), "remove the '/'"),
        (lambda: tool(_method), "tool(instance._method)"),
        (lambda: tool(_no_hint_here), "importable at module level"),
        (lambda: tool(_custom), "a dataclass or an attrs class"),
        (lambda: tool(_generator), "ToolInput.report"),
        (lambda: tool("weather"), "write async def"),
        (lambda: tool(Place), "write async def"),
        (lambda: tool(weather), "use it as it is"),
        (lambda: Tool("t", "", {}, "run"), "write async def"),
        (lambda: Tool("t", "", {}, _generator), "ToolInput.report"),
        (lambda: ThreadFunction(_many, "later"), 'thread="wait"'),
    ],
)
def test_wrong_use_says_what_to_write(make, advice):
    """What a model cannot call is refused where it is written, with the remedy."""
    with pytest.raises(InvalidConfig) as caught:
        make()

    assert advice in caught.value.message


class Bare:
    """A handler with the required attributes only."""

    name = "bare"
    description = "B"
    parameters = None
    mutating = False

    async def execute(self, input: ToolInput) -> ToolOutput:
        return ToolOutput("")


def test_a_handler_is_read_with_its_optional_attributes_missing():
    """Tags and time limit have defaults; a tool without parameters has an object schema all the same."""
    expected = {"type": "object", "properties": {}}

    assert expected == spec_of(Bare()).parameters
    assert timeout_of(Bare(), 1_000) == 1_000
    assert timeout_of(Tool("t", "", {}, _many, timeout_ms=5), 1_000) == 5
    assert tags_of(Bare()) == ()
    assert tags_of(Tool("t", "", {}, _many, tags="read")) == ("read",)


@pytest.mark.parametrize(
    ("names", "expected"),
    [((), False), (("read",), False), (("read", "write"), True), (("write",), True), (("unknown", "read"), False)],
)
def test_a_batch_is_serial_if_any_known_call_has_side_effects(names, expected):
    """One mutating call makes the whole batch serial; an unknown tool does nothing."""
    tools = {name: Tool(name, "", {}, _many, mutating=name == "write") for name in ("read", "write")}

    assert expected is batch_is_serial([ToolCall(name, name, {}) for name in names], tools)


@pytest.mark.parametrize(("builtin", "advice"), [(print, "takes any number of values"), (abs, "positional-only")])
def test_a_builtin_is_refused_by_its_parameters(builtin, advice):
    """A function without annotations to read gets the usual advice about its parameters."""
    with pytest.raises(InvalidConfig, match=advice):
        tool(builtin)

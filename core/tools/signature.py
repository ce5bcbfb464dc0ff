"""A typed function as a model sees it: a JSON Schema of its parameters, and its arguments back as typed values.

    signature = Signature.of(weather, "weather")
    signature.schema                        # {"type": "object", "properties": {"city": {"type": "string"}}, ...}
    weather(**signature.bind(tool_input))   # dataclass and attrs parameters get instances

Schemas and values come from one source, msgspec, so what the schema allows can be built (semantics 8).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs
import msgspec

from ...messages.errors import InvalidConfig, InvalidToolArguments
from ...messages.jsonvalue import JsonObject, json_object
from ..ports.protocols import ToolInput
from . import docstrings
from .keys import note_keys

_REFUSED_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only, and a model passes arguments by name; remove the '/'",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values; write one list parameter, like values: list[str]",
    inspect.Parameter.VAR_KEYWORD: "takes any names; write one object parameter, like values: dict[str, str]",
}


@attrs.frozen
class Parameter:
    """One parameter that a model fills in."""

    name: str
    hint: Any
    description: str
    required: bool
    default: Any = None

    def value(self, tool: str, argument: Any) -> Any:
        """``argument`` as the hinted type says."""
        try:
            return convert(argument, self.hint)
        except msgspec.ValidationError as error:
            message = f"argument {self.name!r} of tool {tool!r} does not fit: {error}"
            raise InvalidToolArguments(message) from error


@attrs.frozen
class Signature:
    """What a model may pass to a function. ``input_names``: parameters that get the `ToolInput` itself."""

    tool: str
    parameters: tuple[Parameter, ...]
    input_names: tuple[str, ...]
    schema: JsonObject

    @classmethod
    def of(cls, function: Callable[..., Any], tool: str) -> Signature:
        """Read ``function``. Raises InvalidConfig, saying what to write, for what a model cannot call."""
        hints = _hints(function, tool)
        described = docstrings.parameters(function.__doc__)
        parameters: list[Parameter] = []
        input_names: list[str] = []
        for parameter in _parameters(function, tool):
            hint = hints.get(parameter.name, Any)
            if hint is ToolInput:
                input_names.append(parameter.name)
            else:
                parameters.append(_read(parameter, hint, described))
        return cls(tool, tuple(parameters), tuple(input_names), _schema(parameters, tool))

    def bind(self, input: ToolInput) -> dict[str, Any]:
        """The keyword arguments for the function. Raises InvalidToolArguments for what does not fit."""
        given = input.arguments
        known = {parameter.name for parameter in self.parameters}
        missing = [each.name for each in self.parameters if each.required and each.name not in given]
        unknown = [name for name in given if name not in known]
        if missing or unknown:
            raise InvalidToolArguments(
                f"tool {self.tool!r} takes {sorted(known)}; missing {missing}, unknown {unknown}"
            )
        values = {each.name: each.value(self.tool, given[each.name]) for each in self.parameters if each.name in given}
        return values | dict.fromkeys(self.input_names, input)


def _parameters(function: Callable[..., Any], tool: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise InvalidConfig(f"tool {tool!r} has no readable signature; wrap it in a function of your own") from None
    for parameter in parameters:
        if parameter.kind in _REFUSED_KINDS:
            # Without its annotation.
            shown = str(parameter.replace(annotation=parameter.empty))
            raise InvalidConfig(f"parameter {shown!r} of tool {tool!r} {_REFUSED_KINDS[parameter.kind]}")
    if parameters and parameters[0].name in ("self", "cls") and parameters[0].annotation is inspect.Parameter.empty:
        raise InvalidConfig(f"tool {tool!r} is a method without its object; write tool(instance.{tool})")
    return parameters


def _hints(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    """Resolved hints of the parameters only: a return type that exists for the type checker alone does no harm."""
    # Hints are resolved where the innermost function was written: a decorator's module does not know the names.
    inner: Any = inspect.unwrap(function)
    while hasattr(inner, "func"):
        inner = inspect.unwrap(inner.func)
    if not hasattr(inner, "__code__"):
        inner = getattr(inner, "__func__", None) or type(inner).__call__
    try:
        annotations = getattr(inner, "__annotations__", {})
        # The return type may exist for type checkers alone, under ``if TYPE_CHECKING``.
        own = {name: hint for name, hint in annotations.items() if name != "return"}
        scope = getattr(inner, "__globals__", {})
        return get_type_hints(SimpleNamespace(__annotations__=own), globalns=scope, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise InvalidConfig(
            f"the hints of tool {tool!r} cannot be read ({error}); use types that are importable at module level"
        ) from error


def _read(parameter: inspect.Parameter, hint: Any, described: Mapping[str, str]) -> Parameter:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    noted = next((note for note in notes if isinstance(note, str)), "")
    required = parameter.default is inspect.Parameter.empty
    description = described.get(parameter.name) or noted
    return Parameter(parameter.name, hint, description, required, None if required else parameter.default)


def _schema(parameters: list[Parameter], tool: str) -> JsonObject:
    try:
        schemas, definitions = msgspec.json.schema_components(
            [parameter.hint for parameter in parameters], ref_template="#/$defs/{name}"
        )
        for parameter, described in zip(parameters, schemas, strict=True):
            note_keys(parameter.hint, described, definitions)
    except (TypeError, ValueError) as error:
        raise InvalidConfig(
            f"a parameter of tool {tool!r} has a type that JSON cannot carry ({str(error).splitlines()[-1]}); "
            "use str, int, float, bool, list, dict, Literal, Enum, TypedDict, a dataclass or an attrs class"
        ) from error
    pairs = zip(parameters, schemas, strict=True)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: _property(parameter, schema) for parameter, schema in pairs},
        "required": [parameter.name for parameter in parameters if parameter.required],
        # Models invent arguments; one that is silently dropped is worse than an error that they can correct.
        "additionalProperties": False,
    }
    return json_object(schema | ({"$defs": definitions} if definitions else {}))


def _property(parameter: Parameter, schema: Mapping[str, Any]) -> dict[str, Any]:
    described = {"description": parameter.description} if parameter.description else {}
    return {**schema, **described, **({} if parameter.required else _default(parameter.default))}


def _default(value: Any) -> dict[str, Any]:
    try:
        return {"default": msgspec.to_builtins(value, str_keys=True)}
    except (TypeError, ValueError):
        return {}  # a default that JSON cannot carry is still what the function gets


def convert(argument: Any, hint: Any) -> Any:
    """JSON data as a value of the hinted type.

    Raises:
        msgspec.ValidationError: it does not fit, or the type's own code raised ValueError or TypeError.
    """
    try:
        return msgspec.convert(argument, hint, str_keys=True)
    except msgspec.ValidationError:
        # JSON Schema counts 3.0 as an integer, msgspec does not.
        # Second, not first: a float parameter must get 3.0 as it is.
        whole = _whole(argument)
        if whole is argument:
            raise
        return msgspec.convert(whole, hint, str_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value

"""Arguments against a tool's JSON Schema, and what to tell the model when they do not fit (semantics 8).

    checker = ArgumentChecker("weather", schema)    # once per tool; raises InvalidConfig for a schema that is none
    checker.check({"days": "three"})                # an error text, or None

What is true of any schema is in `json_schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ...messages.errors import InvalidConfig
from ...messages.jsonvalue import thaw
from ..json_schema import SchemaChecker, shortened

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
# Keywords whose value is a schema, or schemas by name.
_OF_SCHEMAS = {
    "additionalProperties",
    "contains",
    "definitions",
    "$defs",
    "dependentSchemas",
    "else",
    "if",
    "items",
    "not",
    "patternProperties",
    "properties",
    "propertyNames",
    "then",
    "unevaluatedProperties",
}


def full_schema(parameters: Any) -> dict[str, Any]:
    """``parameters`` as APIs want them: an object schema, also for a tool without parameters."""
    # Some APIs refuse a tool whose schema lacks ``type`` or ``properties``, also when it has no parameters.
    return {**NO_PARAMETERS, **(parameters or {})}


@attrs.frozen(eq=False)
class ArgumentChecker:
    """Checks the arguments for one tool. Compiled once."""

    tool: str
    parameters: Any
    _checker: SchemaChecker = attrs.field(init=False, repr=False)

    @_checker.default
    def _compile(self) -> SchemaChecker:
        return SchemaChecker.of(_object_schema(self.tool, self.parameters), f"parameters of tool {self.tool!r} are")

    @property
    def takes_nothing(self) -> bool:
        """Whether the tool has no arguments at all, not even optional ones."""
        return not self._checker.schema.get("properties")

    def check(self, arguments: Any) -> str | None:
        """None if they fit; otherwise what is wrong, where, and what is expected, said to the model."""
        try:
            problems = self._checker.problems(arguments, "arguments")
        except (ValueError, TypeError, RecursionError) as error:
            return f"The arguments for tool '{self.tool}' are not a JSON object: {shortened(str(error))}"
        if not problems:
            return None
        lines = [f"- {problem}" for problem in problems]
        return "\n".join(
            [f"The arguments for tool '{self.tool}' do not fit its schema; correct them and call again:", *lines]
        )


def _object_schema(tool: str, parameters: Any) -> dict[str, Any]:
    if parameters is not None and not isinstance(parameters, Mapping):
        kind = type(parameters).__name__
        raise InvalidConfig(f"parameters of tool {tool!r} must be a JSON Schema (a dict), not {kind}")
    # The commonest wrong schema, which is a valid one that says nothing: only the properties.
    if parameters and not parameters.keys() & _OF_SCHEMAS and all(map(_is_typed, parameters.values())):
        raise InvalidConfig(
            f"parameters of tool {tool!r} are the properties alone; "
            'write {"type": "object", "properties": {...}, "required": [...]}'
        )
    schema = full_schema(thaw(parameters))
    if schema["type"] != "object":
        raise InvalidConfig(f'parameters of tool {tool!r} must have "type": "object", with one property per parameter')
    return schema


def _is_typed(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str)

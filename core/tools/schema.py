"""Arguments against a tool's JSON Schema, and what to tell the model when they do not fit (semantics 8).

    checker = ArgumentChecker("weather", schema)    # once per tool; raises InvalidConfig for a schema that is none
    checker.check({"days": "three"})                # an error text, or None

Never fetches anything: a schema that refers to a document elsewhere is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NoReturn

import attrs
import jsonschema_rs
import msgspec

from ...messages.errors import InvalidConfig
from ...messages.jsonvalue import thaw

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
_SHOWN_ERRORS = 5
_SHOWN_CHARACTERS = 300


def full_schema(parameters: Any) -> dict[str, Any]:
    """``parameters`` as APIs want them: an object schema, also for a tool without parameters."""
    # Some APIs refuse a tool whose schema lacks ``type`` or ``properties``, also when it has no parameters.
    return {**NO_PARAMETERS, **(parameters or {})}


@attrs.frozen(eq=False)
class ArgumentChecker:
    """Checks the arguments for one tool. Compiled once."""

    tool: str
    parameters: Any
    _schema: dict[str, Any] = attrs.field(init=False, repr=False)
    _validator: jsonschema_rs.Validator = attrs.field(init=False, repr=False)

    @_schema.default
    def _read(self) -> dict[str, Any]:
        return _object_schema(self.tool, self.parameters)

    @_validator.default
    def _compile(self) -> jsonschema_rs.Validator:
        try:
            # Without a retriever of ours it would fetch ``$ref`` over the network: a schema from a plugin must not make
            # requests.
            return jsonschema_rs.validator_for(self._schema, retriever=_refuse)
        except (ValueError, TypeError, RecursionError) as error:
            reason = _short(str(error).splitlines()[0])
            raise InvalidConfig(f"parameters of tool {self.tool!r} are not a valid JSON Schema: {reason}") from error

    @property
    def takes_nothing(self) -> bool:
        """Whether the tool has no arguments at all, not even optional ones."""
        return not self._schema.get("properties")

    def check(self, arguments: Any) -> str | None:
        """None if they fit; otherwise what is wrong, where, and what is expected, said to the model."""
        try:
            # The first few: a list of a thousand wrong items would fill the model's window with complaints.
            errors = list(islice(self._validator.iter_errors(arguments), _SHOWN_ERRORS))
        except (ValueError, TypeError, RecursionError) as error:
            return f"The arguments for tool '{self.tool}' are not a JSON object: {_short(str(error))}"
        if not errors:
            return None
        lines = [f"- {_place(error)}: {_short(error.message)}; {self._expected(error)}" for error in errors]
        return "\n".join(
            [f"The arguments for tool '{self.tool}' do not fit its schema; correct them and call again:", *lines]
        )

    def _expected(self, error: jsonschema_rs.ValidationError) -> str:
        *path, keyword = error.schema_path or [""]
        expected: Any = self._schema
        for step in path:
            expected = expected[step]
        if keyword == "additionalProperties":
            return f"allowed: {', '.join(expected.get('properties', {})) or 'none'}"
        if keyword == "required":
            missing = getattr(error.kind, "property", None)
            expected = expected.get("properties", {}).get(missing, {})
        return f"expected {_short(msgspec.json.encode(expected).decode())}"


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


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema; put it under $defs")


def _place(error: jsonschema_rs.ValidationError) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    return text.removeprefix(".") or "arguments"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"

"""What a host asks an answer to be, and whether it is (semantics 13). Pure.

    wanted = OutputFormat.of(Person)            # or a JSON Schema; InvalidInput says what to write instead
    wanted.schema                               # what the provider is told
    wanted.read('{"name": "Ann", "age": 30}')   # Person(name='Ann', age=30)
    wanted.read('{"name": "Ann"}')              # Misfit('- answer: "age" is a required property; ...')

Schemas and values come from one source, msgspec, as those of tools do: what the schema allows can be built.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, get_origin

import attrs
import msgspec

from ..messages.errors import InvalidConfig, InvalidInput
from ..messages.jsonvalue import JsonObject, json_object, thaw
from ..messages.plain import NotPlain, plain_json
from .json_schema import SchemaChecker, shortened
from .ports.call_arguments import repaired
from .prompts.tags import enclose
from .tools.signature import convert

MAX_CHARACTERS = 1_048_576
"""A longer answer is not read: what is done at one go has a bound (semantics 6)."""

_SHOWN_SCHEMA = 4_000
_INSTRUCTION = (
    "Your answer to the user must be JSON alone, without words or a fence around it, that fits this JSON Schema. Tools "
    "are called as usual before it."
)
_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_WRITE = "pass an attrs class, a dataclass, a TypedDict, or a JSON Schema as a dict"


@attrs.frozen
class Misfit:
    """Why an answer is not what was asked for, in words for the model: a line for each problem.

    ``cause``: the host's own class raised, so that asking again does not help.
    """

    problems: str
    cause: BaseException | None = attrs.field(default=None, eq=False)


@attrs.frozen(eq=False)
class OutputFormat:
    """What an answer must be. ``kind``: the class that is built of it; None leaves it JSON data."""

    kind: Any
    schema: JsonObject
    """What goes into requests: closed, and each field that has a default is to be written too."""
    _checker: SchemaChecker = attrs.field(repr=False)

    @classmethod
    def of(cls, output: object) -> OutputFormat:
        """Of a class, or of a JSON Schema.

        Raises:
            InvalidInput: it is neither; the message says what to write instead.
        """
        if isinstance(output, OutputFormat):
            return output
        if isinstance(output, Mapping):
            return cls._of_schema(output)
        if not isinstance(output, type) and get_origin(output) is None:
            raise InvalidInput(f"output is a {type(output).__name__}; {_WRITE}")
        schema = _schema_of(output)
        return cls(
            output,
            json_object(_strict(schema)),
            SchemaChecker.of(schema, f"the fields of {_name(output)} are", mask=_MASK),
        )

    @classmethod
    def _of_schema(cls, output: Mapping[Any, Any]) -> OutputFormat:
        try:
            schema = plain_json(output)
            checker = SchemaChecker.of(thaw(schema), "its contents are", mask=_MASK)
        except (InvalidConfig, NotPlain) as error:
            reason = error.message if isinstance(error, InvalidConfig) else error
            raise InvalidInput(f"output is a dict that is not a JSON Schema: {reason}; {_WRITE}") from error
        return cls(None, json_object(schema), checker)

    @property
    def instruction(self) -> str:
        """For models whose API does not take a schema: a section of the system prompt."""
        return instruction(self.schema)

    def read(self, text: str) -> Any:
        """The answer as what was asked for, or a `Misfit`. Linear in the text, as far as the schema is.

        The host's class is called; what it raises besides ValueError and TypeError is the misfit's cause.
        """
        if len(text) > MAX_CHARACTERS:
            return Misfit(f"- the answer has {len(text)} characters, and {MAX_CHARACTERS} are read at most; write less")
        try:
            value = plain_json(_json(text))
            problems = self._checker.problems(value, "answer")
            if problems:
                return Misfit("\n".join(f"- {problem}" for problem in problems))
            return value if self.kind is None else convert(thaw(value), self.kind)
        except msgspec.ValidationError as error:
            return Misfit(f"- {shortened(str(error))}")
        except (_NotJson, NotPlain, RecursionError) as error:
            return Misfit(f"- the answer is not JSON ({error}); it must fit this JSON Schema: {self._shown()}")
        except Exception as error:
            return Misfit(f"- {_name(self.kind)} cannot be made of it: {type(error).__name__}", error)

    def _shown(self) -> str:
        text = msgspec.json.encode(self.schema).decode()
        return text if len(text) <= _SHOWN_SCHEMA else f"{text[:_SHOWN_SCHEMA]}…"


def instruction(schema: Mapping[str, Any]) -> str:
    """What tells a model that its answer must fit ``schema``, where its API does not."""
    return enclose("answer_format", f"{_INSTRUCTION}\n\n{msgspec.json.encode(schema).decode()}")


# Values of an answer are not repeated in a note of the runtime, which may have more weight than what a model says.
_MASK = "the value"


class _NotJson(ValueError):
    """No JSON value can be meant, or more than one."""


def _refuse(name: str) -> NoReturn:
    raise _NotJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _json(text: str) -> Any:
    """The one value that ``text`` can mean, also if a model has put it into a fence or between words."""
    if (thoughts := _THINKING.match(text)) is not None:
        text = text[thoughts.end() :]
    text = text.strip()
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        reason = shortened(str(error))
    text = _inside_fence(text)
    if (value := repaired(text)) is not None:
        return value
    start = text.find("{")
    if start < 0:
        raise _NotJson(reason)
    try:
        value, end = _DECODER.raw_decode(text, start)
    except ValueError:
        raise _NotJson(reason) from None
    if "{" in text[end:]:
        raise _NotJson("it holds more than one object")
    return value


def _inside_fence(text: str) -> str:
    """What stands in the only fence of ``text``; all of it where there is none, or more than one."""
    lines = text.splitlines()
    fences = [number for number, line in enumerate(lines) if line.lstrip().startswith("```")]
    return "\n".join(lines[fences[0] + 1 : fences[1]]).strip() if len(fences) == 2 else text


def _schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a class, with its own fields at the top."""
    try:
        (schema,), definitions = msgspec.json.schema_components([kind], ref_template=f"{_DEFINITIONS}{{name}}")
    except (TypeError, ValueError, NameError, AttributeError) as error:
        reason = str(error).splitlines()[-1] if str(error) else type(error).__name__
        raise InvalidInput(
            f"output={_name(kind)} has a type that JSON cannot carry ({reason}); {_WRITE}, with fields of str, int, "
            "float, bool, list, dict, Literal, Enum and such classes"
        ) from error
    if "$ref" in schema:
        root = schema["$ref"].removeprefix(_DEFINITIONS)
        schema = definitions[root]
        if not _refers(definitions, f"{_DEFINITIONS}{root}"):
            del definitions[root]
    if schema.get("type") != "object" or "properties" not in schema:
        raise InvalidInput(f"output={_name(kind)} is not an object with fields; {_WRITE}, with the value in a field")
    return _closed({**schema, **({"$defs": definitions} if definitions else {})})


_DEFINITIONS = "#/$defs/"


def _refers(schema: Any, to: str) -> bool:
    if isinstance(schema, dict):
        return schema.get("$ref") == to or any(_refers(value, to) for value in schema.values())
    return isinstance(schema, list) and any(_refers(value, to) for value in schema)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` without room for fields that no class has: what is dropped in silence is worse than an error."""
    closed: dict[str, Any] = _walk(
        schema, lambda node: {**node, "additionalProperties": False} if "properties" in node else node
    )
    return closed


def _strict(schema: Any) -> Any:
    """``schema`` as the strict modes of APIs take it: fields with a default are required, defaults are left out."""

    def require(node: dict[str, Any]) -> dict[str, Any]:
        if properties := node.get("properties"):
            needed = [name for name, of in properties.items() if name in node.get("required", ()) or "default" in of]
            plain = {name: {k: v for k, v in of.items() if k != "default"} for name, of in properties.items()}
            return {**node, "properties": plain, "required": needed}
        return node

    return _walk(schema, require)


def _walk(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """``schema`` with ``change`` made to it and to each schema in it, from the outside in."""
    if not isinstance(schema, dict):
        return schema
    node = change(schema)
    for key, value in node.items():
        if key in ("properties", "$defs"):
            node = {**node, key: {name: _walk(of, change) for name, of in value.items()}}
        elif key in ("items", "additionalProperties"):
            node = {**node, key: _walk(value, change)}
        elif key in ("anyOf", "prefixItems"):
            node = {**node, key: [_walk(of, change) for of in value]}
    return node


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))

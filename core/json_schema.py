"""A value against a JSON Schema, and what to tell a model where it does not fit (semantics 8, 13). Pure.

    checker = SchemaChecker.of(schema, "parameters of tool 'weather' are")      # compiled once
    checker.problems({"days": "three"})         # ['days: "three" is not of type "integer"; expected {...}'], or []

Never fetches anything: a schema that refers to a document elsewhere is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NoReturn

import attrs
import jsonschema_rs
import msgspec

from ..messages.errors import InvalidConfig

_SHOWN_ERRORS = 5
_SHOWN_CHARACTERS = 300


@attrs.frozen(eq=False)
class SchemaChecker:
    """A compiled schema."""

    schema: Mapping[str, Any]
    _validator: jsonschema_rs.Validator = attrs.field(repr=False)

    @classmethod
    def of(cls, schema: dict[str, Any], what: str, *, mask: str | None = None) -> SchemaChecker:
        """Compile ``schema``.

        Args:
            what: whose schema it is, with its verb, for the error.
            mask: stands for values in the words of problems, where what is wrong must not be repeated.

        Raises:
            InvalidConfig: it is not a JSON Schema, or refers to another document.
        """
        try:
            # Without a retriever of ours it would fetch ``$ref`` over the network: a schema from a plugin must not make
            # requests.
            return cls(schema, jsonschema_rs.validator_for(schema, retriever=_refuse, mask=mask))
        except (ValueError, TypeError, RecursionError) as error:
            reason = shortened(str(error).splitlines()[0])
            raise InvalidConfig(f"{what} not a valid JSON Schema: {reason}") from error

    def problems(self, value: Any, whole: str) -> list[str]:
        """What is wrong, where, and what is expected: a line for each of the first few places; none if it fits.

        Args:
            whole: what ``value`` as a whole is called.

        Raises:
            ValueError, TypeError, RecursionError: it is not JSON, or nested too deep.
        """
        # The first few: a list of a thousand wrong items would fill the model's window with complaints.
        errors = islice(self._validator.iter_errors(value), _SHOWN_ERRORS)
        return [
            f"{shortened(_place(error) or whole)}: {shortened(error.message)}; {self._expected(error)}"
            for error in errors
        ]

    def _expected(self, error: jsonschema_rs.ValidationError) -> str:
        *path, keyword = error.schema_path or [""]
        expected: Any = self.schema
        for step in path:
            expected = expected[step]
        if keyword == "additionalProperties":
            return f"allowed: {', '.join(expected.get('properties', {})) or 'none'}"
        if keyword == "required":
            missing = getattr(error.kind, "property", None)
            expected = expected.get("properties", {}).get(missing, {})
        return f"expected {shortened(msgspec.json.encode(expected).decode())}"


def shortened(text: str) -> str:
    """``text``, cut where it is longer than anybody reads."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the schema; put it under $defs")


def _place(error: jsonschema_rs.ValidationError) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    return text.removeprefix(".")

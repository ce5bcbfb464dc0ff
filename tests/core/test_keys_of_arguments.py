"""Keys of JSON objects are texts; a parameter of a tool may want other ones."""

from __future__ import annotations

import pytest
from youyou.core.tools.declaration import tool
from youyou.core.tools.schema import ArgumentChecker
from youyou.core.tools.signature import convert


@tool
async def label(names: dict[int, str]) -> str:
    """Label them."""
    return repr(names)


@pytest.mark.parametrize("names", [{"1": "a"}, {}, {"-7": "b", "12": "c"}])
def test_a_dict_with_int_keys_is_built_from_an_object(names):
    """What the schema accepts is what the function gets, with keys of its own type."""
    assert ArgumentChecker("label", label.parameters).check({"names": names}) is None
    assert {int(key): text for key, text in names.items()} == convert(names, dict[int, str])
    assert [{1: ["x"]}] == convert([{"1": ["x"]}], list[dict[int, list[str]]])

"""Inside the kit, too, arrows run one way: the rows of `LAYERS`, and above them the public face."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import youyou.testing

ROOT = Path(youyou.testing.__file__).parent
LAYERS = ("process", "network", "disk", "workers", "engine", "report", "campaigns", "suite")
"""From the lowest to the highest."""
FILES = {f"{layer}.{path.stem}": path for layer in LAYERS for path in sorted((ROOT / layer).glob("*.py"))}


def imports_of(name: str) -> Iterator[str]:
    """The modules of the kit that module ``name`` imports, wherever in the file, for types too."""
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [name.split(".")[0]] if node.level == 1 else []
            parts = [*base, *(node.module or "").split(".")]
            path = ".".join(part for part in parts if part)
            yield from (found for a in node.names for found in (path, f"{path}.{a.name}") if found in FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_module_of_the_kit_imports_lower_layers_only(name):
    """No import runs against the arrows."""
    layer = LAYERS.index(name.split(".")[0])
    assert [found for found in imports_of(name) if LAYERS.index(found.split(".")[0]) > layer] == []


def test_no_two_modules_of_the_kit_import_each_other():
    """Not by way of others, and not for types alone."""
    order = list(TopologicalSorter({name: set(imports_of(name)) for name in FILES}).static_order())
    assert sorted(order) == sorted(FILES)


def test_one_module_touches_private_parts_of_trio():
    """So that one check before the first run can cover them."""
    private = {name for name, path in FILES.items() if re.search(r"\btrio\._[a-z]", path.read_text())}
    assert private == {"process.trio_internals"}

"""Inside the folders, too, imports run one way: no circle, not by type only; and folders stay small."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import youyou

ROOT = Path(youyou.__file__).parent
LAYERS = {
    "core": (
        ("config", "json_schema", "randomness", "stopping", "host_exceptions", "prompts.tags", "prompts.prompt_texts"),
        ("ports",),
        ("tools", "history"),
        ("compaction", "profiles", "prompts.skills", "hook_registry", "retry", "structured_output"),
        ("memory", "registry", "inputs"),
        ("resume", "session_setup"),
        ("prompts.system_prompt",),
    ),
    "actors": (
        ("shared",),
        ("recorder", "tool_pool", "memory"),
        ("turn",),
        ("session",),
        ("guard",),
        ("handles",),
        ("open_agent",),
    ),
}
"""From the lowest to the highest; what stands in one row does not import its neighbours."""
FOLDERS = ("messages", "core", "actors", "adapters", "hosting", "testing", "cli")
LARGEST_FOLDER = 13


def dotted(path: Path) -> str:
    """The place of a module below the package; a package goes by its own name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}


@cache
def imports_of(name: str) -> tuple[str, ...]:
    """The modules below the package that module ``name`` imports, wherever in the file, for types too."""
    imported: list[str] = []
    package = name.split(".") if MODULES[name].stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            path = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            found = [f"{path}.{alias.name}" for alias in node.names if f"{path}.{alias.name}" in MODULES]
            imported += found or ([path] if path in MODULES else [])
    return tuple(imported)


def rank(floor: str, name: str) -> int | None:
    """The row of ``LAYERS`` that a module belongs to."""
    inside = name.removeprefix(f"{floor}.")
    rows = [i for i, row in enumerate(LAYERS[floor]) if any(inside == n or inside.startswith(f"{n}.") for n in row)]
    return max(rows, default=None)


def group(floor: str, name: str) -> str:
    """The entry of ``LAYERS`` that a module belongs to."""
    inside = name.removeprefix(f"{floor}.")
    return max((n for row in LAYERS[floor] for n in row if inside == n or inside.startswith(f"{n}.")), key=len)


PLACED = [(f, n) for f in LAYERS for n in MODULES if n.startswith(f"{f}.") and MODULES[n].stem != "__init__"]


@pytest.mark.parametrize(("floor", "name"), PLACED, ids=[n for _, n in PLACED])
def test_a_module_imports_lower_rows_only(floor, name):
    """Each module of core and of the actors has a row, and leans on lower rows and on its own group."""
    own = rank(floor, name)
    assert own is not None, f"{name} has no row in LAYERS"
    wrong = [
        found
        for found in imports_of(name)
        if found.startswith(f"{floor}.")
        and MODULES[found].stem != "__init__"
        and group(floor, found) != group(floor, name)
        and (rank(floor, found) or 0) >= own
    ]
    assert [] == wrong


def test_no_modules_import_each_other():
    """Not by way of others, and not for types alone: a reader never walks in circles."""
    order = list(TopologicalSorter({name: set(imports_of(name)) for name in MODULES}).static_order())
    assert sorted(MODULES) == sorted(order)


def test_a_folder_can_be_looked_through():
    """No folder has more than about a dozen modules."""
    sizes = Counter(str(path.parent.relative_to(ROOT)) for path in MODULES.values() if path.stem != "__init__")
    assert {} == {folder: size for folder, size in sizes.items() if size > LARGEST_FOLDER}


def test_the_runtime_has_one_module_of_a_name():
    """A name leads to one file: messages, core and actors never use it twice."""
    names = Counter(
        path.stem
        for name, path in MODULES.items()
        if name.split(".")[0] in ("messages", "core", "actors") and path.stem != "__init__"
    )
    assert [] == [name for name, count in names.items() if count > 1]

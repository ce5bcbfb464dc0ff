"""Arrows run one way: messages <- core <- actors <- face <- hosting, testing, cli; messages, core <- adapters."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import youyou

ROOT = Path(youyou.__file__).parent
MAY_IMPORT = {
    "messages": {"messages"},
    "core": {"core", "messages"},
    "actors": {"actors", "core", "messages"},
    "adapters": {"adapters", "core", "messages"},
    "face": {"face", "actors", "core", "messages"},
    "hosting": {"hosting", "face", "actors", "core", "messages"},
    "ray": {"ray", "adapters", "hosting", "face", "actors", "core", "messages"},
    "testing": {"testing", "face", "actors", "core", "messages"},
    "cli": {"cli", "testing", "adapters", "face", "actors", "core", "messages"},
}
AT_THE_TOP = {"__main__": "cli", "pytest_plugin": "testing"}
"""Modules beside the face that belong to a folder: what has to be there for Python or pytest to find it."""
THIRD_PARTIES = {
    "messages": {"attrs", "cattrs", "msgspec", "typing_extensions"},
    "core": {"attrs", "msgspec", "jsonschema_rs"},
    "actors": {"attrs", "trio", "trio_util"},
    "face": {"trio"},
    "hosting": {"attrs", "trio"},
}
STANDARD = set(sys.stdlib_module_names)


def floor_of(path: Path) -> str:
    """The floor a file stands on: its folder, or the face."""
    parts = path.relative_to(ROOT).parts
    if parts[:2] == ("adapters", "ray"):
        # It adapts no port of the core: it puts whole hosts into processes of Ray.
        return "ray"
    if len(parts) > 1:
        return parts[0]
    return AT_THE_TOP.get(path.stem, "face")


FILES = [
    path
    for folder in (".", "messages", "core", "actors", "adapters", "hosting", "testing", "cli")
    for path in sorted((ROOT / folder).rglob("*.py") if folder != "." else ROOT.glob("*.py"))
]


@cache
def imports(path: Path) -> tuple[str, ...]:
    """The absolute name of every module that ``path`` imports, wherever in the file."""
    return tuple(names_imported(path.read_text(), ("youyou", *path.relative_to(ROOT).parts[:-1])))


def names_imported(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """The same of a module of ``package``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def floors_imported(path: Path) -> set[str]:
    """The floors that a file leans on."""
    floors = set()
    for name in imports(path):
        if name.split(".")[0] == "youyou":
            rest = name.split(".")[1:]
            known = rest and (ROOT / rest[0]).is_dir()
            floors.add(rest[0] if known else "cli" if rest and rest[0] in AT_THE_TOP else "face")
    return floors


def name_of(path: Path) -> str:
    """For test ids."""
    return str(path.relative_to(ROOT))


def test_all_floors_are_there():
    """Each folder of the package has files to look at, or this page looks at nothing."""
    assert {floor_of(path) for path in FILES} == set(MAY_IMPORT)
    assert len(FILES) > 80


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_leans_on_lower_floors_only(path):
    """No import runs against the arrows."""
    assert floors_imported(path) - MAY_IMPORT[floor_of(path)] == set()


def test_rules_never_import_a_loop():
    """Messages and rules can be tested without one."""
    loops = ("trio", "trio_util", "anyio", "asyncio")
    rules = [path for path in FILES if floor_of(path) in ("messages", "core")]
    assert [name_of(path) for path in rules if loops_in(path, loops)] == []


def loops_in(path: Path, loops: tuple[str, ...]) -> list[str]:
    """Which of these a file imports."""
    return [name for name in imports(path) if name.split(".")[0] in loops]


@pytest.mark.parametrize("floor", THIRD_PARTIES)
def test_a_floor_uses_the_third_parties_it_may(floor):
    """Nothing but the runtime dependencies, each on its floor."""
    names = {name.split(".")[0] for path in FILES if floor_of(path) == floor for name in imports(path)}
    assert names - STANDARD - {"youyou"} - THIRD_PARTIES[floor] == set()


def test_a_file_says_what_it_is_for():
    """Each module has a docstring."""
    assert [name_of(path) for path in FILES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_the_reader_of_imports_sees_every_form():
    """Plain, relative, from a package above, and inside a function."""
    source = """
import youyou.actors.turn
from ..actors import batch
from .. import cli
from ..builder import AgentBuilder
from . import text
def lazy():
    from youyou import testing
    import trio
"""
    assert set(names_imported(source, ("youyou", "core"))) == {
        "youyou.actors.turn",
        "youyou.actors.batch",
        "youyou.cli",
        "youyou.builder.AgentBuilder",
        "youyou.core.text",
        "youyou.testing",
        "trio",
    }


def module_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = ("youyou", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The modules that import each other in a circle: what is left once all that can be laid in order is taken away."""
    left = dict(graph)
    while free := [name for name, needs in left.items() if not needs & set(left) - {name}]:
        for name in free:
            del left[name]
    return [sorted(left)] if left else []


def import_graph(floor: str) -> dict[str, set[str]]:
    """Which modules of a floor each of its modules names, wherever in the file and for whatever reason."""
    files = {module_of(path): path for path in FILES if floor_of(path) == floor}
    return {
        name: {known for found in imports(path) for known in (found, found.rpartition(".")[0]) if known in files}
        for name, path in files.items()
    }


@pytest.mark.parametrize("floor", ["cli"])
def test_no_module_imports_one_that_imports_it(floor):
    """No circle, not even one that only a type closes: a reader walks those too."""
    assert circles(import_graph(floor)) == []


def test_a_circle_is_found():
    """Two that need each other, and one that leans on them; a module that names itself is not one."""
    assert circles({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": {"d"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set(), "d": {"d"}}) == []


def test_no_folder_of_the_command_line_is_a_corridor():
    """A reader meets about a dozen modules in a folder, not more."""
    folders = {path.parent for path in FILES if floor_of(path) == "cli"}
    assert {name_of(folder): n for folder in folders if (n := len(list(folder.glob("*.py")))) > 13} == {}

"""Docs and examples show what a reader may rely on: they import public names only (docs/api-stability.md)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/**/*.md"))]
EXAMPLES = sorted(ROOT.glob("docs/**/*.py"))
PUBLIC = re.compile(r"youyou(\.testing(\.\w+)?|\.hosting|\.adapters(\.\w+)*)?")
"""``youyou``, its host, test kit and adapters. A page may show ``python -m youyou.cli``, but no import of it."""
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def private_imports(source: str) -> list[str]:
    """The modules of youyou that ``source`` imports, or imports from, and that are not public."""
    named = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            named += [node.module or ""]
    return [name for name in named if name.split(".")[0] == "youyou" and not PUBLIC.fullmatch(name)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_imports_public_names_only(page):
    """Every Python block of the page."""
    assert [] == [name for block in _PYTHON.findall(page.read_text("utf-8")) for name in private_imports(block)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_imports_public_names_only(example):
    """Every file of the example."""
    assert [] == private_imports(example.read_text("utf-8"))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import youyou, youyou.testing", []),
        ("from youyou.adapters.sqlite import SQLiteStorage", []),
        ("from .agent import build", []),
        ("from youyou.messages.codec import converter", ["youyou.messages.codec"]),
        ("import youyou.actors", ["youyou.actors"]),
        ("def f():\n    from youyou.core import config", ["youyou.core"]),
        ("import youyou.testing.engine.control", ["youyou.testing.engine.control"]),
    ],
)
def test_a_private_import_is_found(statement, expected):
    """Wherever in the source it stands."""
    assert expected == private_imports(statement)

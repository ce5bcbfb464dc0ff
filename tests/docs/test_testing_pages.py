"""Every block of code in the pages on testing and on parts runs, and prints what the page says it prints."""

from __future__ import annotations

import importlib
import inspect
import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import attrs
import pytest
from youyou.testing import Simulation, explore, replay, sweep

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted(DOCS.glob("testing/*.md")), DOCS / "parts.md"]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")


@attrs.frozen
class Block:
    """One fenced block and the line of the page at which it begins."""

    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in _BLOCK.finditer(text)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the reader of a page puts its files; what is imported from there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # The folder of tests/scenarios is a package of this name in the process of the tests; the tutorial has a module.
    monkeypatch.delitem(sys.modules, "scenarios", raising=False)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def run(page: str, folder: Path) -> tuple[list[str], list[str]]:
    """Run the page from top to bottom: what was printed, block by block, and what the page says was printed."""
    printed: list[str] = []
    promised: list[str] = []
    world: dict[str, object] = {"__name__": "__page__"}
    last = ""
    for block in blocks(page):
        if block.language == "text":
            printed.append(last)
            promised.append(block.text)
        elif block.language == "python" and (named := _FILE.match(block.text)):
            (folder / named[1]).write_text(block.text, encoding="utf-8")
            importlib.invalidate_caches()
        elif block.language == "python":
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile("\n" * block.line + block.text, page, "exec", dont_inherit=True), world)
            last = out.getvalue()
    return printed, promised


@pytest.mark.parametrize(
    "page", ["testing/tutorial.md", "testing/reference.md", "testing/blind-spots.md", "testing/network.md", "parts.md"]
)
def test_a_page_runs_from_top_to_bottom(page, folder):
    """Every Python block runs after those above it; a text block is the output of the block before it."""
    printed, promised = run(page, folder)

    assert promised == printed


def test_the_tutorial_ends_with_a_test_that_passes_and_can_be_replayed(folder, monkeypatch, capsys):
    """The last file is an ordinary test function; with a token it runs one attempt and prints the trace."""
    run("testing/tutorial.md", folder)
    test = importlib.import_module("test_shop").test_an_item_is_on_the_shelf_or_sold

    test()
    assert "" == capsys.readouterr().out

    monkeypatch.setenv("YOUYOU_REPLAY", "yy1-b1")
    test()
    assert ">>> cancel of root before step 1" in capsys.readouterr().out


@pytest.mark.parametrize("function", [sweep, explore, replay, Simulation])
def test_the_reference_names_every_option(function):
    """Each parameter of the three entry points, and everything public of the simulation."""
    text = (DOCS / "testing" / "reference.md").read_text(encoding="utf-8")
    if function is Simulation:
        names = [f"sim.{name}" for name in dir(Simulation) if not name.startswith("_")]
    else:
        names = [f"`{name}`" for name in list(inspect.signature(function).parameters)[1:] if name != "token"]

    assert [] == [name for name in names if name not in text]


def test_every_kind_of_block_is_looked_at():
    """Nothing in the pages goes unread: only Python, its output, and commands."""
    found = {block.language for page in PAGES for block in blocks(str(page.relative_to(DOCS)))}

    assert {"python", "text", "console"} == found

"""All planted bugs, what came of looking at each, and the page that lists them.

python tests/corpus/corpus_table.py       # writes docs/testing/corpus.md
"""

from __future__ import annotations

import inspect
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).parent))

from planted import CORPUS, Finding, Planted, Scenario, look_at

PAGE = Path(__file__).parent.parent.parent / "docs" / "testing" / "corpus.md"
_CHAPTERS = (
    "bugs_of_swallowing",
    "bugs_in_cleanup",
    "bugs_of_counting",
    "bugs_in_shutdown",
    "bugs_with_channels",
    "bugs_of_order",
    "bugs_with_ports",
    "bugs_with_crashes",
)
_HEAD = """# The planted corpus

{count} small Trio programs, each with one bug of its own kind. All pass an ordinary run. The kit finds the bug in each,
and is silent about the same program with the bug mended, in at least as many runs or in every order that there is. The
programs are in
[`tests/corpus`](../../tests/corpus); `python tests/corpus/corpus_table.py` makes this page from them, and a test checks
that it is current.

*Runs* counts everything until the bug is known in its smallest case: the undisturbed run, which is made twice, every
attempt, and shrinking. *Twin* is the number of runs in which the mended program shows nothing. *Smallest case* is the
token that replays it: `a` and `b` cancel after or before a step, `f` breaks a port call, `x` crashes, and `d` lists the
decisions about order and lateness that are not the plain ones ([reference](reference.md)).
"""


@attrs.frozen
class Chapter:
    """The entries of one module."""

    title: str
    entries: tuple[Planted, ...]


def chapters() -> tuple[Chapter, ...]:
    """The whole corpus."""
    found = []
    for name in _CHAPTERS:
        title = str(import_module(name).__doc__).strip().splitlines()[0]
        found.append(Chapter(title, tuple(e for e in CORPUS.values() if e.bug.__module__ == name)))
    return tuple(found)


@cache
def finding(name: str) -> Finding:
    """What came of looking at the entry ``name``."""
    chapters()
    return look_at(CORPUS[name])


def page() -> str:
    """The page, as it should be."""
    parts = [_HEAD.format(count=sum(len(chapter.entries) for chapter in chapters()))]
    for chapter in chapters():
        parts += [f"## {chapter.title.rstrip('.')}", "", *_HEADINGS, *map(_row, chapter.entries), ""]
    return "\n".join(parts).rstrip() + "\n"


_HEADINGS = (
    "| bug | what is wrong | what mends it | looked for with | found as | runs | twin | smallest case |",
    "| --- | --- | --- | --- | --- | ---: | ---: | --- |",
)


def _row(entry: Planted) -> str:
    seen = finding(entry.bug.__name__)
    assert entry.twin is not None, f"{entry.name} has no mended twin"
    cells = (
        entry.name,
        _said(entry.bug),
        _said(entry.twin),
        f"`{entry.look}`",
        seen.smallest.kind,
        seen.bug.runs,
        seen.twin.runs,
        f"`{seen.smallest.token}`",
    )
    return f"| {' | '.join(map(str, cells))} |"


def _said(scenario: Scenario) -> str:
    return str(inspect.getdoc(scenario)).splitlines()[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""The pages say the truth about the repository: links lead somewhere, named tests exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
NAMED_TEST = re.compile(r"`(test_\w+\.py)(?:::(test_\w+))?`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """A relative link of a page names a file that exists."""
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]

    assert [] == missing


def test_every_line_of_what_happens_when_has_its_test() -> None:
    """Each row of the tables of "what happens when" names a test, and that test exists."""
    page = (ROOT / "docs" / "what-happens-when.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|") and not re.match(r"\|( when |-)", line)]
    sources = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}

    without = [row for row in rows if not NAMED_TEST.search(row)]
    unknown = [
        (file, test)
        for file, test in NAMED_TEST.findall(page)
        if file not in sources or (test and f"def {test}(" not in sources[file])
    ]

    assert rows
    assert [] == without
    assert [] == unknown

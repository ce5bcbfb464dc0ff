"""Faults of English that came in systematically once, and private words, do not come back (CONTRIBUTING, "Words")."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
QUOTED = ("tests/corpus/", "docs/testing/corpus.md", "CHANGELOG.md", "tests/test_prose.py")
"""The corpus quotes programs of others, the changelog names what was, and this page would find itself."""

FAULTS = {
    "'is no X' for 'is not an X'": (
        r"(?<!here )\b(?:is|was|are|were) no (?!longer|more\b|later|larger|sooner|less|other|one\b)[a-z]"
    ),
    "'for ever'": r"\bfor ever\b",
    "a relative clause without a head": r"(?:\A|[.;]\s+|\"\"\")Who [a-z]+\b(?![^.?;]*\?)",
    "'whoever'": r"\b[Ww]hoever\b",
    "'mended', 'made good', 'in vain'": r"\bmended\b|\bmade good\b|\bin vain\b",
    "'passed over' for ignored": r"\bpass(?:ed|es) over\b|\bto pass over\b",
    "'side by side', 'so many at a time' for concurrently": r"\bside by side\b|\bso many at a time\b",
    "'hard stop', 'orderly leave' for forced and graceful shutdown": r"\bhard stop\b|\borderly (?:way|leave)\b",
    "'at the door' for at the boundary": r"\b(?:at|through) the (?:one )?door\b|\bthe one door\b",
    "'what comes of'": r"\bwh?at (?:comes|came|becomes) of\b",
    "a docstring that says nothing": r'"""(?:Do it|The actor|One of them|A snapshot|Set a rule|The same)\.?"""',
}


@cache
def texts() -> list[tuple[str, str]]:
    """Every page and module that is checked in, by name, each as one line."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    kept = [name for name in listed if not name.startswith(QUOTED) and (ROOT / name).exists()]
    return [(name, joined((ROOT / name).read_text("utf-8"))) for name in kept]


def joined(text: str) -> str:
    """A text without its line breaks, those of comments included."""
    return re.sub(r"\s+(?:#\s)?", " ", text)


def faults(pattern: str, text: str) -> list[str]:
    """What a pattern finds."""
    return [text[max(0, match.start() - 30) : match.end() + 20] for match in re.finditer(pattern, text)]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="asks git which files there are")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_does_not_come_back(fault):
    """No page, docstring, comment or message has it."""
    assert [] == [(name, found) for name, text in texts() for found in faults(FAULTS[fault], text)]


@pytest.mark.parametrize(
    ("fault", "text", "count"),
    [
        (
            "'is no X' for 'is not an X'",
            "the id is no string; there is no time; it is no longer so; these\n    are no hooks",
            2,
        ),
        ("a relative clause without a head", '"""Who waits has a reply. Who is it? Done; Who asks gets it.', 2),
        ("'for ever'", "it waits for\n    # ever", 1),
    ],
)
def test_a_fault_is_found(fault, text, count):
    """Also where a line, or a comment, breaks inside it."""
    assert count == len(faults(FAULTS[fault], joined(text)))

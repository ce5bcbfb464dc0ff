"""What a docstring says about a function and its parameters, in Google or Sphinx style (semantics 8).

    summary(doc)        # the first paragraph on one line
    parameters(doc)     # {"city": "Where.", "days": "How many."}

Reads text only; a docstring in another style has a summary and no parameters.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator

_SECTION = re.compile(r"(?:args|arguments|params|parameters):\s*$", re.IGNORECASE)
_ANY_SECTION = re.compile(r"[A-Z][\w ]*:\s*$|:\w[^:\n]*:")
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")


def summary(doc: str | None) -> str:
    """The first paragraph on one line; empty when the docstring begins with a section."""
    paragraph: list[str] = []
    for line in inspect.cleandoc(doc or "").splitlines():
        if not line.strip() or _ANY_SECTION.match(line):
            break
        paragraph.append(line.strip())
    return " ".join(paragraph)


def parameters(doc: str | None) -> dict[str, str]:
    """What is said about each parameter, on one line each."""
    lines = inspect.cleandoc(doc or "").splitlines()
    return _collect(_google_lines(lines), _GOOGLE) | _collect(_sphinx_lines(lines), _SPHINX)


def _collect(lines: Iterable[tuple[bool, str]], entry: re.Pattern[str]) -> dict[str, str]:
    """Entries of ``(starts one, text)`` lines; a line that starts none continues the one before it."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for starts, text in lines:
        match = entry.match(text) if starts else None
        if match:
            current = found.setdefault(match[1], [])
        current.append(match[2] if match else text)
    return {name: " ".join(filter(None, texts)) for name, texts in found.items()}


def _google_lines(lines: list[str]) -> Iterator[tuple[bool, str]]:
    inside, first_indent = False, 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent == 0:
            # The first line of a section sets its indentation: a deeper one continues the entry above.
            inside, first_indent = bool(_SECTION.match(line)), 0
        elif inside and line.strip():
            first_indent = first_indent or indent
            yield indent <= first_indent, line.strip()


def _sphinx_lines(lines: list[str]) -> Iterator[tuple[bool, str]]:
    inside = False
    for line in lines:
        starts = line.startswith(":")
        inside = (bool(_SPHINX.match(line)) if starts else inside) and bool(line.strip())
        if inside:
            yield starts, line.strip()

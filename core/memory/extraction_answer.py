"""Reads what a model answered to an extraction, however it wrapped it (semantics 12). Pure; never raises.

parse_answer('Sure!\\n```json\\n[{"content": "likes tea"}]\\n```').items      # (MemoryItem("likes tea"),)
parse_answer("[{").problem                                                  # "the answer holds no JSON ..."
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs

from ...messages.text import clean_text

MAX_ITEMS = 50
MAX_CONTENT = 4_000
_MAX_TAGS = 10
_MOST_SCANNED = 4
"""How often an answer may be gone over, at most: a try that fails may have scanned to the end."""
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_BEGIN = re.compile(r'\[\s*(?:\{\s*"|\])|\{\s*"')


@attrs.frozen
class MemoryItem:
    """One note of the model. ``id`` is what it says, and is trusted only if that memory was shown to it."""

    content: str
    id: str | None = None
    tags: tuple[str, ...] = ()


@attrs.frozen
class Extraction:
    """The usable notes of an answer, and what was wrong if there are none though there should be."""

    items: tuple[MemoryItem, ...] = ()
    problem: str | None = None


def parse_answer(text: str) -> Extraction:
    """The notes in ``text``: a JSON array of objects, with prose or fences around it. At most 50, each checked."""
    answers = list(_arrays(_without_thoughts(text)))
    if not answers:
        return Extraction(problem="the answer holds no JSON array of notes")
    # The last one that holds something: models first think aloud, with examples, and then answer.
    entries: list[Any] = next((entries for entries in reversed(answers) if entries), [])
    items = tuple(item for entry in entries if (item := _item(entry)) is not None)[:MAX_ITEMS]
    if entries and not items:
        return Extraction(problem=f"none of the {len(entries)} notes in the answer has a text")
    return Extraction(items)


def _without_thoughts(text: str) -> str:
    """``text`` without what stands between thinking tags. One pass: a tag that is never closed takes nothing away."""
    parts: list[str] = []
    done, opened = 0, -1
    for tag in _THINKING.finditer(text):
        if not tag[1]:
            opened = tag.start() if opened < 0 else opened
        elif opened >= 0:
            parts.append(text[done:opened])
            done, opened = tag.end(), -1
    return "".join([*parts, text[done:]])


def _arrays(text: str) -> Iterator[list[Any]]:
    """Every array of notes that ``text`` holds, outermost only."""
    broken = False
    position = scanned = 0
    while scanned <= _MOST_SCANNED * len(text):
        if (begin := _BEGIN.search(text, position)) is None:
            return
        start = begin.start()
        try:
            value, position = json.JSONDecoder().raw_decode(text, start)
            scanned += position - start
        except (ValueError, RecursionError) as error:
            broken, position = True, start + 1
            scanned += (error.pos if isinstance(error, json.JSONDecodeError) else len(text)) - start
            continue
        # An object inside an array that did not parse is a piece of an answer, not an answer.
        if isinstance(value, list) or not broken:
            yield _entries(value)


def _entries(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if "content" in value:
        return [value]
    return next((inner for inner in value.values() if isinstance(inner, list)), [])


def _item(entry: Any) -> MemoryItem | None:
    content = entry.get("content") if isinstance(entry, dict) else None
    if not isinstance(content, str) or not content.strip():
        return None
    return MemoryItem(clean_text(content).strip()[:MAX_CONTENT], _id(entry.get("id")), _tags(entry.get("tags")))


def _id(value: object) -> str | None:
    return clean_text(value).strip() or None if isinstance(value, str) else None


def _tags(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    tags = (clean_text(name).strip() for name in names if isinstance(name, str))
    return tuple(dict.fromkeys(filter(None, tags)))[:_MAX_TAGS]

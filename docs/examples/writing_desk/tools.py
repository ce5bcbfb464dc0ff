"""Every tool of the example, declared here and nowhere else.

A tool that is added below is offered by each profile that subscribes to its tags, described to the model, told by
discovery and shown on the page. No other line knows its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
import youyou

from .shelf import SHELF, Card, Question

TOOLS: list[youyou.Tool] = []


def declare(**fields: Any) -> Callable[[Callable[..., Any]], youyou.Tool]:
    """Like `youyou.tool`, and the tool is in `TOOLS`."""

    def keep(function: Callable[..., Any]) -> youyou.Tool:
        TOOLS.append(youyou.tool(**fields)(function))
        return TOOLS[-1]

    return keep


@declare(tags=("text",), icon="list-tree", label="Outline")
async def outline(chapter: str = "") -> list[str]:
    """The headings of a chapter.

    Args:
        chapter: Name of the chapter; empty for the first one.
    """
    return [heading for heading, _ in SHELF.sections(chapter)]


@declare(tags=("text",), icon="scissors", label="Split chapter")
async def split_chapter(report: youyou.ToolInput, chapter: str = "") -> dict[str, str]:
    """The sections of a chapter, one by one.

    Args:
        chapter: Name of the chapter; empty for the first one.
    """
    sections = SHELF.sections(chapter)
    for number, _ in enumerate(sections, 1):
        report.report({"section": number, "of": len(sections)})
        await trio.sleep(0.05)
    return dict(sections)


@declare(tags=("notes",), icon="layers", label="Concept cards", mutating=True)
async def concept_cards(cards: list[Card]) -> str:
    """Keep cards that explain one concept each.

    Args:
        cards: The cards, a few at a time.
    """
    SHELF.cards += cards
    return f"cards on the shelf: {len(SHELF.cards)}"


@declare(tags=("notes",), icon="help-circle", label="Review questions", mutating=True)
async def review_questions(questions: list[Question]) -> str:
    """Keep questions to review a chapter by, with their answers.

    Args:
        questions: The questions, a few at a time.
    """
    SHELF.questions += questions
    return f"questions on the shelf: {len(SHELF.questions)}"

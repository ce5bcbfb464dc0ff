"""What lies on the desk: chapters to read, and the cards and questions that were made of them."""

from __future__ import annotations

import attrs

CHAPTERS = {
    "tides": """\
# Why there are tides

## The pull of the moon
The moon pulls at the near side of the earth more than at its middle, and at the middle more than at the far side.

## Two bulges
So water heaps up on both sides, and the earth turns below: most coasts see two high tides a day.

## Springs and neaps
When sun and moon pull in one line the tide is high, a spring tide; at a right angle it is low, a neap tide.
""",
    "lighthouse": """\
# The lighthouse that learned to stop

## Everything at once
It turned its lamp, rang its bell and counted the waves, and was proud that it had never left anything unfinished.

## A voice in the night
One night the keeper called: stop! And it stopped, all of it, in the middle of a turn.

## Three rules
What has not begun need not begin. What has begun may finish. Whatever happened is written down.
""",
}


@attrs.frozen
class Card:
    """A concept on a card."""

    concept: str
    explanation: str


@attrs.frozen
class Question:
    """A question to review by, with its answer."""

    question: str
    answer: str


@attrs.define(eq=False)
class Shelf:
    """The one place where the example keeps things. Lost when the program ends."""

    chapters: dict[str, str] = attrs.Factory(lambda: dict(CHAPTERS))
    cards: list[Card] = attrs.Factory(list)
    questions: list[Question] = attrs.Factory(list)

    def sections(self, chapter: str) -> list[tuple[str, str]]:
        """Heading and text of each section.

        Raises:
            LookupError: there is no such chapter.
        """
        name = chapter or next(iter(self.chapters))
        if name not in self.chapters:
            raise LookupError(f"no chapter {name!r}; there are: {', '.join(self.chapters)}")
        parts = self.chapters[name].split("\n## ")[1:]
        return [(heading, text.strip()) for heading, _, text in (part.partition("\n") for part in parts)]


SHELF = Shelf()

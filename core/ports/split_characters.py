"""Characters that a provider cut in two: some count text in UTF-16 and put half of an emoji into each delta. Pure.

halves = Halves()
halves.take(TextDelta("a\\ud83d"))     # []: the delta waits for the next one of its kind
halves.take(TextDelta("\\ude00b"))     # one delta, with the whole character between "a" and "b"
halves.rest()                         # what still waits; a half that stayed alone is U+FFFD
"""

from __future__ import annotations

import attrs

from ...messages.chat import ReasoningDelta, TextDelta
from ...messages.text import clean_text


def clean_inside(text: str) -> str:
    """``text`` without lone surrogates, except halves at its edges that a neighbour may complete."""
    if text.isascii():
        return text
    head = text[0] if _is_low(text[0]) else ""
    tail = text[-1] if len(text) > len(head) and _is_high(text[-1]) else ""
    return head + clean_text(text[len(head) : len(text) - len(tail)]) + tail


def _is_high(character: str) -> bool:
    return "\ud800" <= character <= "\udbff"


def _is_low(character: str) -> bool:
    return "\udc00" <= character <= "\udfff"


@attrs.define
class Halves:
    """The delta that ends in half a character, until the next one comes."""

    waiting: TextDelta | ReasoningDelta | None = None

    def take(self, delta: TextDelta | ReasoningDelta) -> list[TextDelta | ReasoningDelta]:
        """What can be told now: the delta that waited, with this one if both are of one kind."""
        before, self.waiting = self.waiting, None
        told = [] if before is None else [_alone(before)]
        if before is not None and type(before) is type(delta):
            told, delta = [], type(delta)(before.text + delta.text)
        if delta.text and _is_high(delta.text[-1]):
            self.waiting = delta
            return told
        return [*told, _alone(delta)]

    def rest(self) -> list[TextDelta | ReasoningDelta]:
        """What still waits, with a mark in place of the half that stayed alone."""
        before, self.waiting = self.waiting, None
        return [] if before is None else [_alone(before)]


def _alone(delta: TextDelta | ReasoningDelta) -> TextDelta | ReasoningDelta:
    return type(delta)(clean_text(delta.text))

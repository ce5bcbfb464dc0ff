"""Skills: prompts that the user triggers by ``/name`` (semantics 11).

    triggered("/commit, then push", skills)     # ("commit",)
    injection(skills["commit"])                 # the system message that goes before the user's

Only the user triggers a skill; a model can at most suggest one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

import attrs

from ...messages.content import TextBlock, UserInput, texts
from ...messages.history import SystemMessage
from .tags import enclose, escape


@attrs.frozen
class SkillDefinition:
    """A prompt the user can trigger.

    ``allow_implicit_invocation``: listed for the model to suggest, never triggered by it.
    """

    name: str
    """What the user types after ``/``; unique among the skills."""
    display_name: str
    """Name that a front end shows."""
    description: str
    """What it is for; also for the model, if ``allow_implicit_invocation``."""
    prompt: str
    """The text that is put before the user's message, in a tag that it cannot close."""
    required_tools: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Names of tools without which the agent is not built (``SKILL_DEPENDENCY_NOT_MET``)."""
    allow_implicit_invocation: bool = False
    """True: the model is told of the skill and may suggest it to the user; it can never trigger it."""


_SLASH = re.compile(r"(?<!\S)/")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")
_VISIBLE = re.compile(r"\S")

# Punctuation that goes on with a name or a path rather than ending it; the second kind only before a letter or digit.
_CONTINUES = frozenset("/\\-_")
_JOINS = frozenset(".:@")


def skills_in(user_input: UserInput, skills: Iterable[str]) -> tuple[str, ...]:
    """The skills of one input: those named explicitly, then those triggered in its text, once each."""
    names = list(skills)
    texts = [block.text for block in user_input.content if isinstance(block, TextBlock)]
    found = [*user_input.skills, *(name for text in texts for name in triggered(text, names))]
    return tuple(dict.fromkeys(found))


def triggered(text: str, skills: Iterable[str]) -> tuple[str, ...]:
    """The registered names that ``text`` triggers, in order, once each (semantics 11).

    A trigger is ``/name`` at the start or after white space, followed by white space, punctuation or the end. Code,
    fenced or inline, never triggers; nor does an unknown name, a path or an address.
    """
    # ``/commit-all`` must not trigger ``commit``.
    longest_first = sorted(skills, key=len, reverse=True)
    # A path or a command in a code block is quoted, not meant.
    prose = _without_code(text)
    found = (_name_at(prose, match.end(), longest_first) for match in _SLASH.finditer(prose))
    return tuple(dict.fromkeys(name for name in found if name))


def injection(skill: SkillDefinition) -> SystemMessage:
    """The message that puts a skill's prompt before the user's message. The prompt cannot leave its tag."""
    return SystemMessage(enclose("skill", f"<name>{escape('name', skill.name)}</name>\n{skill.prompt}"))


def _name_at(text: str, start: int, names: list[str]) -> str | None:
    """The longest of ``names`` that begins at ``start`` and ends there as a word."""
    return next((name for name in names if text.startswith(name, start) and _ends(text, start + len(name))), None)


def _ends(text: str, at: int) -> bool:
    if at == len(text) or text[at].isspace():
        return True
    if text[at] in _CONTINUES or not unicodedata.category(text[at]).startswith("P"):
        return False
    return text[at] not in _JOINS or not text[at + 1 : at + 2].isalnum()


def _without_code(text: str) -> str:
    """``text`` with each character of its code, but white space, replaced by one that ends no name."""
    if "`" not in text and "~~~" not in text:
        return text
    pieces: list[str] = []
    position = 0
    for start, end in _code(text):
        pieces += [text[position:start], _VISIBLE.sub("\0", text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Where code is, as CommonMark has it: fenced blocks, and spans of back-ticks within a paragraph."""
    fence, block, paragraph, position = "", 0, 0, 0
    for line in text.splitlines(keepends=True):
        start, position = position, position + len(line)
        if fence:
            if _closes(line, fence):
                yield block, position
                fence, paragraph = "", position
        elif (opening := _opening(line)) or not line.strip():
            yield from _spans(text, paragraph, start)
            fence, block, paragraph = opening, start, position
    yield from [(block, position)] if fence else _spans(text, paragraph, position)


def _opening(line: str) -> str:
    match = _FENCE.match(line)
    return match[1] if match and not (match[1][0] == "`" and "`" in match[2]) else ""


def _closes(line: str, fence: str) -> bool:
    match = _FENCE.match(line)
    return match is not None and match[1].startswith(fence) and not match[2].strip()


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A run of back-ticks up to the next run of the same length. One pass, whatever the text is."""
    runs = list(_TICKS.finditer(text, start, end))
    closing: dict[int, int] = {}
    latest: dict[int, int] = {}
    # From the back, so that each run finds its partner in one look-up: searching forward from each would be quadratic
    # in hostile text.
    for index in reversed(range(len(runs))):
        length = len(runs[index][0])
        closing[index] = latest.get(length, 0)
        latest[length] = index
    index = 0
    while index < len(runs):
        if closing[index]:
            yield runs[index].start(), runs[closing[index]].end()
        index = max(index, closing[index]) + 1

"""Text put between tags that it cannot close (semantics 10, 11, 12).

    enclose("memories", "a </memories> b")    # "<memories>\\na &lt;/memories> b\\n</memories>"

Only the tag's own name is escaped; other markup in the text is left as it is. A model reads what it sees, not bytes:
full-width and doubled signs, white space and characters that are not seen make a tag no other tag. Linear in the text.
"""

from __future__ import annotations

import html
import re
import unicodedata

# Signs that a reader takes for the beginning of a tag.
_OPENING = "<\uff1c\ufe64\u2039\u3008\u27e8\u276e"
# What is not seen: format characters, joiners, fillers, selectors, control characters.
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_SLASHES = "/\uff0f\u2044\u2215\u29f8"
_BEGINNING = re.compile(f"[{_OPENING}]")
# Possessive: there is one way to read a run, so that no text makes the search go back and forth.
_BEFORE_NAME = re.compile(rf"[\s{_SLASHES}{_UNSEEN}]*+")
_UNSEEN_RUN = re.compile(f"[{_UNSEEN}]+")
_LINE_ENDS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
_GOES_ON = re.compile(r"[\w-]")


def enclose(tag: str, text: str, **attributes: str) -> str:
    """``text`` on lines of its own inside ``<tag>``, with every opening or closing of that tag in it escaped."""
    return f"<{tag}{shown(attributes)}>\n{escape(tag, text)}\n</{tag}>"


def one_line(text: str) -> str:
    """``text`` without line ends: a name that begins a new line might read as something else."""
    return _LINE_ENDS.sub(" ", text)


def shown(attributes: dict[str, str]) -> str:
    """The attributes of a tag, each on the same line and unable to leave its quotes."""
    return "".join(f' {name}="{html.escape(one_line(value))}"' for name, value in attributes.items())


def escape(tag: str, text: str, *more: str) -> str:
    """``text`` in which nothing reads as an opening or closing of ``tag``, or of one of ``more``."""
    names = (tag, *more)
    starts = [found.start() for found in _BEGINNING.finditer(text)]
    if not starts:
        return text
    parts: list[str] = []
    done = 0
    # What is looked at ends where the next sign stands: each character is looked at once.
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        if _reads_as_tag(text, start + 1, end, names):
            parts += [text[done:start], "&lt;"]
            done = start + 1
    return "".join([*parts, text[done:]])


def _reads_as_tag(text: str, start: int, end: int, names: tuple[str, ...]) -> bool:
    begin = _BEFORE_NAME.match(text, start, end)
    name_at = begin.end() if begin is not None else start
    longest = max(map(len, names))
    seen = ""
    while name_at < end and len(seen) <= longest:
        # In pieces, because between two letters there may be any number of characters that are not seen.
        piece = _UNSEEN_RUN.sub("", text[name_at : min(end, name_at + 4 * longest)])
        seen += unicodedata.normalize("NFKC", piece).casefold()
        name_at += 4 * longest
        if seen and not any(seen.startswith(name[: len(seen)]) for name in names):
            return False
    folded = unicodedata.normalize("NFKC", seen).casefold()
    return any(folded.startswith(name) and not _GOES_ON.match(folded, len(name)) for name in names)

"""What a text is searched by: words where people write spaces, pairs of characters where they do not (semantics 12).

Folds case, width and accents. Knows nothing of storages; every store that shares it finds the same things.

    list(search_terms("Café Zürich 苹果汁"))      # ["cafe", "zurich", "苹果", "果汁"]
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

# Scripts without spaces, and Hangul, whose words carry particles: Thai to Khmer, Hangul, kana, Han.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\U00020000-\U0003ffff"
)
# Signs that Python does not count as part of a word, though India's scripts and Arabic write their words with them.
_SIGNS = "\u0653-\u065f\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
_RUNS = re.compile(rf"(?P<dense>[{_DENSE}]+)|(?P<word>(?:(?![{_DENSE}])(?:[^\W_]|[{_SIGNS}]))+)")
# Accents of Latin, Greek and Cyrillic, points of Hebrew, vowel signs of Arabic: people leave them out.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0670]+"
)


# Marks are put into order by comparing each with those before it, so a long run of them costs its square. A text is
# therefore folded in pieces, and no piece begins with a mark that belongs to the letter before it, unless there are
# more than any writing has.
_PIECES = re.compile("[\\s\\S]{1,256}[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u3099\u309a]{0,30}")


def fold(text: str) -> str:
    """``text`` without differences of case, width and accents."""
    if text.isascii():
        return text.lower()
    return "".join(map(_folded, _PIECES.findall(text)))


def _folded(text: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", bare).casefold()


def search_terms(text: str) -> Iterator[str]:
    """The terms to look for, in order of appearance and with repetitions."""
    for run in _RUNS.finditer(fold(text)):
        found = run.group()
        if run.lastgroup == "word" or len(found) == 1:
            yield found
        else:
            yield from map("".join, pairwise(found))


def index_terms(text: str) -> Iterator[str]:
    """The terms to keep a text under: those it is searched by, and each single character of a dense script."""
    for run in _RUNS.finditer(fold(text)):
        found = run.group()
        if run.lastgroup == "word":
            yield found
            continue
        yield from found
        yield from map("".join, pairwise(found))


def is_prefix(term: str) -> bool:
    """Whether a searched term also finds the longer terms that begin with it. Shorter ones would find everything."""
    return len(term) >= 3

"""Values in one short line for people: ``print(event)``, ``repr(result)`` (semantics 1). Pure, bounded, for eyes alone.

clip("a very long text ...", 12)            # "a very long…"
arguments({"city": "Oslo", "api_key": "k"}) # "city='Oslo', api_key=***"
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

_LONGEST = 80
_MOST_ARGUMENTS = 6
_SECRET = re.compile(r"passw|passphrase|secret|token|api_?key|authori[sz]ation|credential", re.IGNORECASE)


def clip(text: str, longest: int = _LONGEST) -> str:
    """``text`` on one line, cut where it is longer. Looks at no more than it shows."""
    line = " ".join(text[: 2 * longest].split())
    return line if len(text) <= 2 * longest and len(line) <= longest else f"{line[: longest - 1]}…"


def quoted(text: str) -> str:
    """The same in quotes."""
    return repr(clip(text))


def arguments(values: Mapping[str, Any]) -> str:
    """The arguments of a call. One whose name speaks of a secret is not shown."""
    shown = [f"{clip(name, 30)}={_value(name, value)}" for name, value in islice(values.items(), _MOST_ARGUMENTS)]
    return ", ".join([*shown, *(["…"] if len(values) > _MOST_ARGUMENTS else [])])


def _value(name: str, value: Any) -> str:
    if _SECRET.search(name):
        return "***"
    if isinstance(value, str):
        return repr(clip(value, 40))
    if isinstance(value, Mapping | list | tuple):
        # Not its repr: that would write out all of it first, and a secret may stand deep inside.
        return f"{{{len(value)} fields}}" if isinstance(value, Mapping) else f"[{len(value)} items]"
    return clip(repr(value), 40)


def count(number: int, thing: str) -> str:
    """``1 call``, ``2 calls``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"

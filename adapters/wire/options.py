"""Options that a server refuses by name: left out of the next request, and remembered (semantics 4). Pure.

    refused = refused_options("Unrecognized request argument supplied: stream_options", body)
    send(without(body, refused))

Only what a request can do without: extras of ours, and settings that fine-tune. Never tools, a schema, or what was
said. A refusal of a *value* ("must be between 0 and 2") is the host's to mend, and is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

EXTRAS = ("stream_options", "store", "include", "cache_control")
"""What the host did not ask for."""

SETTINGS = ("temperature", "reasoning_effort", "reasoning")
"""What the host asked for; leaving it out is worth a line in the log."""

LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Two names of one thing: where one is refused, the other is tried."""

_REFUSAL = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|unexpected"
    r"|not (be )?(supported|permitted|allowed|recogni[sz]ed|accepted|valid)"
    r"|extra (inputs|fields|parameters|forbidden)|extra_forbidden|additional propert|does(n.t| not) support"
    r"|invalid (parameter|argument|field|option)",
    re.IGNORECASE,
)
_ABOUT_THE_VALUE = re.compile(
    r"(supported|allowed|valid) values|must be (one|between|at|less|greater|a\b|an\b)|missing|required|is needed",
    re.IGNORECASE,
)
# Words that a server uses for an option without its name.
_OTHERWISE = {"include": re.compile(r"encrypted[ _]content", re.IGNORECASE)}
_HOLDERS = ("messages", "input", "system")


def refused_options(words: str, body: dict[str, Any], fields: Iterable[str] = ()) -> set[str]:
    """Which options of ``body`` a refusal in these words names.

    Args:
        fields: names of fields within messages that can be left out too.
    """
    if not _REFUSAL.search(words) or _ABOUT_THE_VALUE.search(words):
        return set()
    inner = {name for item in _inner(body) for name in item if name in (*fields, "cache_control")}
    candidates = [name for name in (*EXTRAS, *SETTINGS, *LIMITS) if name in body]
    return {name for name in {*candidates, *inner} if _names(words, name)}


def _names(words: str, option: str) -> bool:
    if (otherwise := _OTHERWISE.get(option)) is not None and otherwise.search(words):
        return True
    if "_" in option:
        return re.search(rf"\b{option}\b", words) is not None
    # A plain word of English is a name only where it is marked as one.
    return re.search(rf"""['"`.]{option}\b|\b{option}['"`.:=]""", words) is not None


def without(body: dict[str, Any], refused: set[str]) -> dict[str, Any]:
    """``body`` as a server takes it that refused these options."""
    kept = {LIMITS[name] if name in refused and name in LIMITS else name: value for name, value in body.items()}
    kept = {name: value for name, value in kept.items() if name not in refused or name in LIMITS.values()}
    for holder in _HOLDERS:
        if isinstance(kept.get(holder), list):
            kept[holder] = [_item_without(item, refused) for item in kept[holder]]
    return kept


def _item_without(item: Any, refused: set[str]) -> Any:
    if not isinstance(item, dict) or not refused & item.keys():
        return item
    return {name: value for name, value in item.items() if name not in refused}


def _inner(body: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for holder in _HOLDERS:
        items = body.get(holder)
        yield from (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))

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
# What a call of a chat completion is made of; the rest is what a server once sent with it.
_CALL = {"id", "type", "function", "name", "arguments"}


def refused_options(words: str, body: dict[str, Any], fields: Iterable[str] = ()) -> set[str]:
    """Which options of ``body`` a refusal in these words names.

    Args:
        fields: names of fields within messages that can be left out too.
    """
    if not _REFUSAL.search(words) or _ABOUT_THE_VALUE.search(words):
        return set()
    inner = {name for item in _inner(body) for name in item if name in (*fields, "cache_control")}
    inner |= {name for call in _calls(body) for part in (call, call["function"]) for name in part} - _CALL
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
    if not isinstance(item, dict) or not refused:
        return item
    kept = {name: value for name, value in item.items() if name not in refused}
    for name in ("tool_calls", "content"):
        if isinstance(kept.get(name), list):
            kept[name] = [_item_without(part, refused) for part in kept[name]]
    if isinstance(kept.get("function"), dict):
        kept["function"] = _item_without(kept["function"], refused)
    return kept


def _inner(body: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Messages, and the parts of their content."""
    for holder in _HOLDERS:
        items = body.get(holder)
        for item in _dicts(items):
            yield item
            yield from _dicts(item.get("content"))


def _calls(body: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The calls of a chat completion."""
    return (call for message in _dicts(body.get("messages")) for call in _dicts(message.get("tool_calls")))


def _dicts(items: Any) -> Iterable[dict[str, Any]]:
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))

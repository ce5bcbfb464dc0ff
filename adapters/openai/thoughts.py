"""Reasoning in a chat completion: shown as it comes, and kept word for word for the server that wants it back.

Servers have a field each for it (semantics 4): ``reasoning_content`` (DeepSeek, Kimi, llama.cpp and many more),
``reasoning`` and ``reasoning_details`` (OpenRouter), ``thinking_blocks`` (LiteLLM), ``extra_content`` (Gemini), and
parts of type "thinking" within the content (Mistral). What came goes back under the name it came under. Pure.

    thoughts = Thoughts()
    thoughts.take({"reasoning_content": "I must "})     # ReasoningDelta
    thoughts.kept()                                     # {"reasoning_content": "I must look."}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ...messages.chat import ReasoningDelta
from ...messages.text import clean_text

SHOWN_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
"""Fields of a message whose text is reasoning; the first one that a delta has is shown."""

LIST_FIELDS = ("reasoning_details", "thinking_blocks")
"""Fields whose entries come in pieces and are told apart by their index."""

OPAQUE_FIELDS = ("extra_content", "reasoning_signature", "signature", "encrypted_content")
"""Fields that are kept unread."""

HANDED_BACK = (*SHOWN_FIELDS, *LIST_FIELDS, *OPAQUE_FIELDS)
"""Every field of an assistant message that goes back to where it came from."""

THINKING_PARTS = ("thinking", "reasoning", "redacted_thinking")
"""Types of parts in a content that are reasoning."""

_GROWING = ("text", "summary", "thinking", "data", "signature_delta")


@attrs.define
class Thoughts:
    """What one response brought of them."""

    _texts: dict[str, list[str]] = attrs.field(factory=dict)
    _entries: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict)
    _opaque: dict[str, Any] = attrs.field(factory=dict)
    _parts: list[dict[str, Any]] = attrs.field(factory=list)

    def take(self, delta: dict[str, Any]) -> Iterator[ReasoningDelta]:
        """Keep what a delta holds; yield what can be shown of it, once."""
        shown = ""
        for name in SHOWN_FIELDS:
            if text := _plain(delta.get(name)):
                self._texts.setdefault(name, []).append(text)
                shown = shown or text
        for name in LIST_FIELDS:
            entries = delta.get(name)
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict):
                    _grow(self._entries.setdefault(name, []), entry)
                    shown = shown or ("" if any(delta.get(field) for field in SHOWN_FIELDS) else _plain(entry))
        for name in OPAQUE_FIELDS:
            if delta.get(name):
                self._opaque[name] = delta[name]
        for part in _thinking_parts(delta.get("content")):
            _grow(self._parts, part)
            shown += _plain(part)
        if shown:
            yield ReasoningDelta(shown)

    def hidden_in(self, delta: dict[str, Any]) -> bool:
        """Whether a delta holds reasoning of whatever kind."""
        return any(delta.get(name) for name in HANDED_BACK) or any(True for _ in _thinking_parts(delta.get("content")))

    def kept(self) -> dict[str, Any]:
        """What goes back: the fields of the message, and under "parts" what stood within its content."""
        message: dict[str, Any] = {name: clean_text("".join(texts)) for name, texts in self._texts.items()}
        message |= {name: [_joined(entry) for entry in entries] for name, entries in self._entries.items()}
        message |= self._opaque
        kept = {"message": message} if message else {}
        return {**kept, "parts": [_joined(part) for part in self._parts]} if self._parts else kept


def _plain(value: object) -> str:
    """The text of reasoning in any shape: a text, an object with one, or a list of either."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_plain, value))
    if isinstance(value, dict):
        return next(
            (text for name in ("text", "thinking", "summary", "content") if (text := _plain(value.get(name)))), ""
        )
    return ""


def _thinking_parts(content: object) -> Iterator[dict[str, Any]]:
    for part in content if isinstance(content, list) else (content,):
        if isinstance(part, dict) and part.get("type") in THINKING_PARTS:
            yield part


def _grow(entries: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece to the entry that it goes on with: the newest, if kind and index are the same and no id differs."""
    last = entries[-1] if entries else None
    if last is None or any(_differs(last, piece, name) for name in ("type", "index", "id")):
        entries.append({name: [value] if name in _GROWING else value for name, value in piece.items()})
        return
    for name, value in piece.items():
        if name in _GROWING and value is not None:
            last.setdefault(name, []).append(value)
        elif value is not None:
            last[name] = value


def _differs(last: dict[str, Any], piece: dict[str, Any], name: str) -> bool:
    return last.get(name) is not None and piece.get(name) is not None and last[name] != piece[name]


def _joined(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: _join(value) if name in _GROWING else value for name, value in entry.items()}


def _join(pieces: list[Any]) -> Any:
    """Texts are one text, lists (of texts, as Mistral has them) one list; what cannot be joined is the last of them."""
    if all(isinstance(piece, str) for piece in pieces):
        return clean_text("".join(pieces))
    if all(isinstance(piece, list) for piece in pieces):
        return [item for piece in pieces for item in piece]
    return pieces[-1]

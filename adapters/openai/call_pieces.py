"""Tool calls of a chat completion, put together from their pieces (semantics 4). Pure.

    calls = Calls()
    calls.take({"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{"}})    # a piece for the host
    calls.take({"index": 0, "function": {"arguments": "}"}})
    calls.finished()                                                                        # the whole call

The documents tell calls apart by ``index``. Servers leave it out, count all calls as 0, leave the id out, or send a new
id with each piece; so a piece that begins a call is also known by what it brings: a name where the open call has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

from ...messages.chat import ToolCallDelta
from ...messages.history import ToolCall
from ..wire.conversation import argument_text, tool_call
from ..wire.origin import Origin

_SIGNS = re.compile(r'[{}\[\]"\\]')
_OWN_FIELDS = {"index", "id", "type", "function", "name", "arguments"}
_OWN_PARTS = {"name", "arguments"}


@attrs.define
class _Call:
    """A call whose pieces are still arriving. ``call_id`` is told to the host, ``id`` is what the server says."""

    index: int | None
    id: str
    call_id: str
    name: str = ""
    pieces: list[str] = attrs.field(factory=list)
    extra: dict[str, Any] = attrs.field(factory=dict)
    told: bool = False
    _looked_at: int = 0
    _depth: int = 0
    _quoted: bool = False
    _escaped: int = -1

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are a closed object. Looks at each piece once, and only when asked."""
        for piece in self.pieces[self._looked_at :]:
            self._look_at(piece)
        self._looked_at = len(self.pieces)
        return bool(self.pieces) and self._depth <= 0 and not self._quoted

    def _look_at(self, piece: str) -> None:
        escaped, self._escaped = self._escaped, -1
        for sign in _SIGNS.finditer(piece):
            if sign.start() == escaped:
                continue
            text = sign.group()
            if text == "\\":
                escaped = sign.start() + 1
            elif text == '"':
                self._quoted = not self._quoted
            elif not self._quoted:
                self._depth += 1 if text in "{[" else -1
        # A backslash at the very end speaks of the first character of the next piece.
        self._escaped = 0 if escaped == len(piece) else -1

    def continued_by(self, id: str, name: str) -> bool:
        """Whether a piece that may be of this call is of it, and does not begin another one."""
        if not name or not self.name or (id and id == self.id):
            return True
        if name != self.name or (id and self.id and not self.pieces):
            return False
        # The same name again: a server that repeats it in each piece, or the next call of the same tool.
        return not self.whole


@attrs.define
class Calls:
    """All calls of one response, in the order in which they began."""

    origin: Origin = attrs.field(factory=lambda: Origin("openai-chat"))
    _calls: list[_Call] = attrs.field(factory=list)
    _by_index: dict[int, _Call] = attrs.field(factory=dict)
    _by_id: dict[str, _Call] = attrs.field(factory=dict)
    _told: set[str] = attrs.field(factory=set)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, piece: Any) -> Iterator[ToolCallDelta]:
        """One entry of ``tool_calls``. What is null or no object is ignored."""
        if not isinstance(piece, dict):
            return
        function = piece.get("function")
        function = function if isinstance(function, dict) else piece
        id, name = _text(piece.get("id")), _text(function.get("name"))
        arguments = argument_text(function.get("arguments"))
        call = self._call_of(_index(piece.get("index")), id, name)
        call.id, call.name = call.id or id, call.name or name
        if id:
            self._by_id[id] = call
        call.extra |= {key: value for key, value in piece.items() if key not in _OWN_FIELDS and value is not None}
        if function is not piece and (parts := {k: v for k, v in function.items() if k not in _OWN_PARTS and v}):
            call.extra["function"] = {**call.extra.get("function", {}), **parts}
        if arguments:
            call.pieces.append(arguments)
        if arguments or (call.name and not call.told):
            call.told = True
            yield ToolCallDelta(call.call_id, call.name or None, arguments)

    def _call_of(self, index: int | None, id: str, name: str) -> _Call:
        found = self._open(index, id, name)
        if found is not None and found.continued_by(id, name):
            return found
        # Without an id of the server the host still needs one from the first piece on.
        told = id or f"call_{len(self._calls)}"
        if told in self._told:
            told = f"{told}_{len(self._calls)}"
        self._told.add(told)
        self._calls.append(call := _Call(index, id, told))
        if index is not None:
            self._by_index[index] = call
        return call

    def _open(self, index: int | None, id: str, name: str) -> _Call | None:
        """The call that a piece would go on with."""
        same = self._by_index.get(index) if index is not None else self._by_id.get(id)
        if same is not None:
            return same
        # A piece that brings no name belongs to what is open, however its server counts.
        goes_on = index is None or not (id or name)
        return self._calls[-1] if self._calls and goes_on else None

    def finished(self) -> Iterator[ToolCall]:
        """Every call, with what its server wants back."""
        for call in self._calls:
            yield tool_call(call.call_id, call.name, "".join(call.pieces), self.origin.mark(call.extra))


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

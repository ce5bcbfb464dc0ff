"""Server-sent events from bytes, wherever the bytes are cut. Pure, knows neither HTTP nor JSON.

decoder = SseDecoder()
for chunk in chunks:
    for event in decoder.feed(chunk): ...
for event in decoder.flush(): ...       # a last event whose blank line never came
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

# A CR at the very end of what has come so far may be half of a CR LF: it waits.
_LINE_END = re.compile(rb"\r\n|\n|\r(?=[^\n])", re.DOTALL)
_BOM = b"\xef\xbb\xbf"


@attrs.frozen
class SseEvent:
    """One event: its name, empty if it has none, and its data, lines joined."""

    name: str
    data: str


@attrs.define
class SseDecoder:
    """Bytes in, events out. Comments, ids and retry hints are passed over."""

    _rest: bytes = b""
    _name: str = ""
    _data: list[str] = attrs.field(factory=list)
    _begun: bool = False

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """Take more bytes; the events that they complete."""
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        for line in lines:
            if not self._begun:
                self._begun, line = True, line.removeprefix(_BOM)
            if line:
                self._field(line)
            else:
                yield from self.flush()

    def flush(self) -> Iterator[SseEvent]:
        """The event whose lines have come so far, if there is one."""
        if self._data:
            yield SseEvent(self._name, "\n".join(self._data))
        self._name, self._data = "", []

    def _field(self, line: bytes) -> None:
        name, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value

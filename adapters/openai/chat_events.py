"""The chunks of a chat completion as chat events (semantics 4, 14). Pure, imports no SDK.

Written for OpenAI and for the many servers that speak its API with an accent: each field is taken in every shape that
it was seen in, what is null or of another type is ignored, and what only the server can read is kept as it came, to
go back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from ...messages.chat import (
    ChatError,
    ChatEvent,
    Done,
    Progress,
    StopReason,
    TextDelta,
    TokenUsage,
)
from ..wire.body import Item, not_an_answer
from ..wire.conversation import json_text
from ..wire.errors import stream_failure
from ..wire.origin import Origin
from ..wire.stop import good_end, stop_reason
from .call_pieces import Calls
from .thoughts import Thoughts
from .usage import usage_of

API = "openai-chat"


@attrs.define
class ChatTranslator:
    """Chunks of a chat completion as chat events. Calls come at the end: until then any of them may grow."""

    origin: Origin = attrs.field(factory=lambda: Origin(API))
    last_event: str = "a finish_reason, or [DONE]"
    usage: TokenUsage | None = None
    _calls: Calls = attrs.field(init=False)
    _thoughts: Thoughts = attrs.field(factory=Thoughts)
    _finish_reason: Any = None
    _told: bool = False
    _refused: bool = False

    def __attrs_post_init__(self) -> None:
        self._calls = Calls(self.origin)

    @property
    def declared(self) -> bool:
        """Whether a finish reason came."""
        return self._finish_reason is not None

    @property
    def complete(self) -> bool:
        """Never known from the chunks: usage may follow the finish reason."""
        return False

    def feed(self, item: Item) -> Iterable[ChatEvent]:
        """One chunk, or a whole completion."""
        chunk = item.value
        choices = chunk.get("choices")
        if item.whole and not isinstance(choices, list):
            raise not_an_answer(chunk)
        self._count(chunk.get("usage"))
        self._count(_field(chunk.get("x_groq"), "usage"))
        for choice in choices if isinstance(choices, list) else ():
            # A server that ignores n=1 shall not mix two answers.
            if isinstance(choice, dict) and choice.get("index") in (None, 0, "0"):
                self._count(choice.get("usage"))
                yield from self._choice(choice, item.whole)

    def _count(self, report: object) -> None:
        # Several reports of one response are cumulative: the last one counts.
        self.usage = usage_of(report) or self.usage

    def _choice(self, choice: dict[str, Any], whole: bool) -> Iterator[ChatEvent]:
        if (error := stream_failure({"error": choice.get("error")})) is not None:
            raise error
        yield from self._said(self._part_of(choice, whole))
        if finish := choice.get("finish_reason"):
            self._finish_reason = finish

    def _part_of(self, choice: dict[str, Any], whole: bool) -> dict[str, Any]:
        """The message, where all comes at once, or where nothing else told the answer; else the delta."""
        delta, message = (part if isinstance(part := choice.get(name), dict) else {} for name in ("delta", "message"))
        if message and (whole or (not self._told and not _says(delta))):
            return message
        return delta

    def _said(self, delta: dict[str, Any]) -> Iterator[ChatEvent]:
        for event in self._events_of(delta):
            self._told = True
            yield event

    def _events_of(self, delta: dict[str, Any]) -> Iterator[ChatEvent]:
        shown = False
        for event in self._thoughts.take(delta):
            shown = True
            yield event
        for text in texts_of(delta.get("content")):
            yield TextDelta(text)
        for text in texts_of(delta.get("refusal")):
            self._refused = True
            yield TextDelta(text)
        calls = delta.get("tool_calls")
        for piece in calls if isinstance(calls, list) else (calls,):
            yield from self._calls.take(piece)
        if isinstance(legacy := delta.get("function_call"), dict):
            yield from self._calls.take({"function": legacy})
        if self._thoughts.hidden_in(delta) and not shown:
            yield Progress()

    def finish(self, *, marked: bool) -> Iterable[ChatEvent]:
        """The calls, then `Done`; nothing if the stream was cut."""
        if self._finish_reason is None and not marked:
            return
        reason = self._stop_reason()
        if reason is StopReason.ERROR:
            yield ChatError(f"the server ended the response with finish_reason {self._finish_reason!r}")
            return
        yield from self._calls.finished()
        yield Done(self.usage, reason, self.origin.mark(self._thoughts.kept()))

    def _stop_reason(self) -> StopReason:
        called = bool(self._calls)
        if self._finish_reason is None:
            reason = good_end(called=called)
        else:
            reason = stop_reason(self._finish_reason, called=called)
        return StopReason.REFUSAL if self._refused and reason is StopReason.END_TURN else reason


def texts_of(content: object) -> Iterator[str]:
    """The texts in ``content``: a text, a list of parts, one part, or an object that is the answer itself.

    Parts of other kinds are ignored.
    """
    if isinstance(content, str):
        if content:
            yield content
        return
    if isinstance(content, dict) and content and not isinstance(content.get("type"), str) and "text" not in content:
        # Cloudflare answers a request for JSON with the object itself.
        yield json_text(content)
        return
    for part in content if isinstance(content, list) else (content,):
        if isinstance(part, str) and part:
            yield part
        elif isinstance(part, dict) and part.get("type", "text") in ("text", "output_text", "refusal"):
            text = part.get("text") or part.get("refusal")
            if isinstance(text, str) and text:
                yield text


def _says(delta: dict[str, Any]) -> bool:
    return any(value for name, value in delta.items() if name != "role")


def _field(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None

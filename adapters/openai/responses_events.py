"""The events of the responses API as chat events (semantics 4, 14). Pure, imports no SDK.

Each part of a response may be told early, late, twice or in both places: by deltas, by the end of its item, by the last
event alone. It comes out once.
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
    ReasoningDelta,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from ...messages.errors import AgentError
from ...messages.text import clean_text
from ..wire.body import Item, not_an_answer
from ..wire.conversation import argument_text, tool_call
from ..wire.errors import Failure, details_of, judge, stream_failure, words_of
from ..wire.origin import Origin
from ..wire.stop import good_end, stop_reason
from .usage import usage_of

API = "openai-responses"
_TEXT = ("response.output_text.delta", "response.refusal.delta")
_REASONING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning.delta")
_TEXT_DONE = ("response.output_text.done", "response.refusal.done")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")
# Items that only the server understands and wants back; what else it made by itself is not ours to return.
_KEPT = ("type", "id", "summary", "content", "encrypted_content")


@attrs.define
class _Told:
    """What was told of one kind of text by deltas, and not yet by an item that is done."""

    _pieces: list[str] = attrs.field(factory=list)
    _text: str = ""
    _at: int = 0

    def piece(self, text: str) -> str:
        """A delta."""
        self._pieces.append(text)
        return text

    def untold(self) -> str:
        """What deltas told and no item said yet."""
        # Joined once: an item takes its part by moving the place, not by a copy of what is left.
        if self._pieces:
            self._text, self._at, self._pieces = self._text[self._at :] + "".join(self._pieces), 0, []
        return self._text[self._at :] if self._at else self._text

    def late(self, text: str) -> str:
        """A text that is told when it is done, before its item is: what of it no delta told."""
        told = self.untold()
        return self.piece(text[len(told) :]) if text.startswith(told) else ""

    def rest(self, text: str) -> str:
        """An item's whole text: what of it no delta told."""
        if self._pieces:
            self.untold()
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return ""
        told, self._text, self._at = self._text[self._at :], "", 0
        return text[len(told) :] if text.startswith(told) else ""


@attrs.define
class _Call:
    """A call that is being written."""

    call_id: str
    name: str
    pieces: list[str] = attrs.field(factory=list)


@attrs.define
class ResponsesTranslator:
    """Events of a response as chat events. A call comes as soon as its item is done."""

    origin: Origin = attrs.field(factory=lambda: Origin(API))
    last_event: str = "response.completed"
    usage: TokenUsage | None = None
    _text: _Told = attrs.field(factory=_Told)
    _reasoning: _Told = attrs.field(factory=_Told)
    _output: list[dict[str, Any]] = attrs.field(factory=list)
    _seen: set[str] = attrs.field(factory=set)
    _asked: set[tuple[str, str]] = attrs.field(factory=set)
    _open: dict[str, _Call] = attrs.field(factory=dict)
    _done: int = 0
    _called: bool = False
    _refused: bool = False
    _response: dict[str, Any] | None = None

    @property
    def declared(self) -> bool:
        """The last event is the end and says so."""
        return self._response is not None

    @property
    def complete(self) -> bool:
        """Whether the response was declared over."""
        return self._response is not None

    def feed(self, item: Item) -> Iterable[ChatEvent]:
        """One event, or a whole response. Kinds that mean nothing to us are ignored."""
        event = item.value
        if item.whole:
            response = event.get("response") if isinstance(event.get("response"), dict) else event
            if not isinstance(response.get("output"), list) and not isinstance(response.get("status"), str):
                raise not_an_answer(event)
            yield from self._end(response)
            return
        kind = event.get("type") or item.name
        match event:
            case {"delta": str() as text} if kind in _TEXT and text:
                self._refused |= "refusal" in kind
                yield TextDelta(self._text.piece(text))
            case {"text": str() as text} | {"refusal": str() as text} if kind in _TEXT_DONE:
                self._refused |= "refusal" in kind
                if rest := self._text.late(text):
                    yield TextDelta(rest)
            case {"delta": str() as text} if kind in _REASONING and text:
                yield ReasoningDelta(self._reasoning.piece(text))
            case {"item": dict() as made} if kind == "response.output_item.added":
                yield from self._added(event, made)
            case {"delta": delta} if kind == "response.function_call_arguments.delta":
                yield from self._grow(event, delta)
            case {"arguments": arguments} if kind == "response.function_call_arguments.done":
                yield from self._arguments(event, arguments)
            case {"item": dict() as made} if kind == "response.output_item.done":
                yield from self._item(made, event)
            case _ if kind in _ENDS:
                response = event.get("response")
                yield from self._end(response if isinstance(response, dict) else event, kind)
            case _ if kind == "error":
                raise _failure(event)

    def _added(self, event: dict[str, Any], item: dict[str, Any]) -> Iterator[ChatEvent]:
        if item.get("type") == "function_call":
            call_id = _text_of(item.get("call_id")) or _text_of(item.get("id")) or f"call_{len(self._open)}"
            call = _Call(call_id, _text_of(item.get("name")))
            for name in _names_of(event, item):
                self._open[name] = call
            yield ToolCallDelta(call.call_id, call.name or None)
        elif item.get("type") == "reasoning":
            yield Progress()

    def _grow(self, event: dict[str, Any], delta: object) -> Iterator[ChatEvent]:
        text = argument_text(delta)
        call = next((self._open[name] for name in _names_of(event, {}) if name in self._open), None)
        if call is None:
            yield Progress()  # of a call that was not announced: it is told in whole when its item is done
            return
        call.pieces.append(text)
        yield ToolCallDelta(call.call_id, call.name or None, text)

    def _arguments(self, event: dict[str, Any], given: object) -> Iterator[ChatEvent]:
        """The whole text of a call's arguments: what its deltas told is a part of it, or nothing."""
        call = next((self._open[name] for name in _names_of(event, {}) if name in self._open), None)
        if call is not None and not call.pieces and (text := argument_text(given)):
            call.pieces.append(text)
            yield ToolCallDelta(call.call_id, call.name or None, text)

    def _item(self, item: dict[str, Any], event: dict[str, Any]) -> Iterator[ChatEvent]:
        """An item that is done; one that was told before is ignored."""
        # Where the server neither names nor counts its items, they are taken to come in order.
        names = _names_of({"output_index": self._done, **event}, item)
        if item.get("type") == "reasoning" and (sealed := _text_of(item.get("encrypted_content"))):
            # xAI gives all reasoning items of one response the same id.
            names = {name for name in names if name.startswith("#")} | {sealed}
        if (known := self._seen & names) and not self._is_another_call(item, known):
            return
        self._seen |= names
        self._done += 1
        match item.get("type"):
            case "function_call":
                yield from self._function_call(item, names)
            case "message":
                yield from self._message(item)
            case "reasoning":
                yield from self._reasoning_item(item)

    def _is_another_call(self, item: dict[str, Any], known: set[str]) -> bool:
        """Whether an item shares no more than its call id with an earlier one, and asks for something else."""
        if item.get("type") != "function_call" or known != {_text_of(item.get("call_id"))}:
            return False
        return (_text_of(item.get("name")), argument_text(item.get("arguments"))) not in self._asked

    def _function_call(self, item: dict[str, Any], names: set[str]) -> Iterator[ChatEvent]:
        call = next((self._open[name] for name in names if name in self._open), _Call("", ""))
        for name in [name for name, other in self._open.items() if other is call]:
            del self._open[name]
        text = argument_text(item.get("arguments"))
        self._asked.add((_text_of(item.get("name")), text))
        if text.strip() in ("", "{}"):
            # Nothing in the item, and pieces of something: what was written counts, an error result if it was cut.
            text = "".join(call.pieces) or text
        self._called = True
        self._output.append({"type": "function_call", **_string(item, "namespace")})
        call_id = call.call_id or _text_of(item.get("call_id")) or _text_of(item.get("id"))
        yield tool_call(call_id, _text_of(item.get("name")) or call.name, text)

    def _message(self, item: dict[str, Any]) -> Iterator[ChatEvent]:
        content = item.get("content")
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        texts = [_text_of(part.get("text")) or _text_of(part.get("refusal")) for part in parts]
        text = content if isinstance(content, str) else "".join(texts)
        text = text or self._text.untold()
        self._refused |= any(part.get("type") == "refusal" for part in parts)
        if rest := self._text.rest(text):
            yield TextDelta(rest)
        marks = _string(item, "id") | _string(item, "phase")
        self._output.append({"type": "message", "characters": len(clean_text(text)), **marks})

    def _reasoning_item(self, item: dict[str, Any]) -> Iterator[ChatEvent]:
        parts = [part for name in ("summary", "content") if isinstance(item.get(name), list) for part in item[name]]
        text = "".join(_text_of(part.get("text")) for part in parts if isinstance(part, dict))
        if rest := self._reasoning.rest(text):
            yield ReasoningDelta(rest)
        else:
            yield Progress()
        kept = {name: item[name] for name in _KEPT if item.get(name) not in (None, "")}
        # An item that lives on the server alone cannot be named: nothing is stored there.
        if kept.get("encrypted_content") or kept.get("content"):
            self._output.append({"summary": []} | kept)

    def _end(self, response: dict[str, Any], kind: str = "") -> Iterator[ChatEvent]:
        self.usage = usage_of(response.get("usage")) or self.usage
        if response.get("status") == "failed" or kind == "response.failed":
            raise _failure(response)
        output = response.get("output")
        for place, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, dict):
                yield from self._item(item, {"output_index": place})
        self._response = {"status": kind.rpartition(".")[2]} | response

    def finish(self, *, marked: bool) -> Iterable[ChatEvent]:
        """`Done` after the last event, or after a mark that takes its place; nothing if the response was cut."""
        if self._response is None and not marked:
            return
        still_open = list({id(call): call for call in self._open.values()}.values())
        self._called |= bool(still_open)
        reason = self._stop_reason(self._response or {})
        if reason is StopReason.ERROR:
            yield ChatError(f"the server ended the response as {' '.join(_words_of_the_end(self._response or {}))}")
            return
        for call in still_open:
            self._output.append({"type": "function_call"})
            yield tool_call(call.call_id, call.name, "".join(call.pieces))
        yield Done(self.usage, reason, self.origin.mark(self._kept()))

    def _stop_reason(self, response: dict[str, Any]) -> StopReason:
        details, status = response.get("incomplete_details"), response.get("status")
        if isinstance(details, dict) and details.get("reason"):
            reason = stop_reason(details["reason"], called=self._called)
            # A reason that would be a good one does not make an incomplete response whole.
            return StopReason.OTHER if reason is good_end(called=self._called) else reason
        if status in (None, "", "done", "in_progress"):
            reason = good_end(called=self._called)
        else:
            reason = stop_reason(status, called=self._called)
        return StopReason.REFUSAL if self._refused and reason is StopReason.END_TURN else reason

    def _kept(self) -> dict[str, Any]:
        """The items in their order, where one of them would be lost without it; else text first, then the calls."""
        own = ({"type", "characters", "id"}, {"type"})
        return {} if all(set(item) in own or set(item) < own[0] for item in self._output) else {"output": self._output}


def _names_of(event: dict[str, Any], item: dict[str, Any]) -> set[str]:
    """Every name by which an item may be spoken of: its own ids, and its place in the output."""
    given = (item.get("call_id"), item.get("id"), event.get("item_id"))
    names = {name for name in given if isinstance(name, str) and name}
    place = event.get("output_index")
    return names | ({f"#{place}"} if isinstance(place, int) else set())


def _string(item: dict[str, Any], name: str) -> dict[str, str]:
    value = item.get(name)
    return {name: value} if isinstance(value, str) and value else {}


def _words_of_the_end(response: dict[str, Any]) -> Iterator[str]:
    """The status, and the reason where there is one."""
    yield repr(response.get("status"))
    details = response.get("incomplete_details")
    if isinstance(details, dict) and details.get("reason"):
        yield f"({details['reason']!r})"


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def _failure(event: dict[str, Any]) -> AgentError:
    if (error := stream_failure(event)) is not None:
        return error
    details = details_of(event)
    message = words_of(details) or "the server gave up on the response without saying why"
    names = frozenset(str(name) for name in (details.get("code"),) if name)
    return judge(Failure(message, names=names))

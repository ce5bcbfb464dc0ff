"""Makes any log sendable: every call gets its one result, in its place (semantics 5).

A log may end anywhere, hold results in order of completion, ids used twice or missing, leftovers of other versions.
Pure and idempotent; what is fine already comes out as it went in.

    normalise([call_a, call_b, result_b])      # call_a, call_b, "outcome unknown" for a, result_b
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from typing import TypeVar

import attrs

from ...messages.history import AssistantMessage, Message, ToolCall, ToolOutcome, ToolResult
from ...messages.text import clean_value
from ..config import Notices
from .sendability import sendability_problem as sendability_problem

CallOrResult = TypeVar("CallOrResult", ToolCall, ToolResult)

_NOTICES = Notices()


def normalise(
    history: Iterable[Message], notices: Notices = _NOTICES, started: Container[str] | None = None
) -> tuple[Message, ...]:
    """``history`` as a provider takes it (semantics 5).

    A result belongs to the latest response with an unanswered call of its id, and there to the first such call; it may
    come late. Other results are dropped, and so are blank assistant messages. Each response becomes: assistant
    message, calls in order, results in the order of the calls.

    Args:
        started: ids of the calls that began to run. A call without result is "outcome unknown" if it is among
            them, otherwise "skipped". None: nothing is known, so every one is "outcome unknown".
    """
    # Two passes: which call a result belongs to is known only when all of them are in place, since logs hold results in
    # order of completion, and a crash may have stored a result after later messages.
    log = arrange(history)
    return tuple(message for entry in log for message in _emit(entry, notices, started))


@attrs.define(eq=False)
class CallEntry:
    """A call of the log, its id made unique, and the result that it got."""

    call: ToolCall
    original_id: str
    result: ToolResult | None = None


@attrs.define(eq=False)
class LoggedResponse:
    """One response of a model: what it said and what it called."""

    assistant: AssistantMessage | None = None
    calls: list[CallEntry] = attrs.field(factory=list)

    def first_unanswered(self, call_id: str) -> CallEntry | None:
        """The call that the next result of this id belongs to."""
        return next((entry for entry in self.calls if entry.original_id == call_id and entry.result is None), None)


def arrange(history: Iterable[Message]) -> list[LoggedResponse | Message]:
    """Pass one: responses put together and results given to their calls, in the order of the log."""
    arranging = _Arranging()
    for message in history:
        # A log of another version, or of a hand-written storage, may hold what today's boundary refuses.
        arranging.take(clean_value(message))
    return arranging.log


@attrs.define(eq=False)
class _Arranging:
    log: list[LoggedResponse | Message] = attrs.field(factory=list)
    _by_response_id: dict[str, LoggedResponse] = attrs.field(factory=dict)
    _waiting: dict[str, list[LoggedResponse]] = attrs.field(factory=lambda: defaultdict(list))
    _ids: set[str] = attrs.field(factory=set)
    _numbers: dict[str, int] = attrs.field(factory=dict)
    _nameless: LoggedResponse | None = None  # the response without id that the last message belongs to

    def take(self, message: Message) -> None:
        nameless, self._nameless = self._nameless, None
        match message:
            case AssistantMessage():
                # Providers refuse a blank assistant message. Its calls, if it has any, are kept.
                if not message.blank:
                    self._assistant_place(message.response_id).assistant = message
            case ToolCall():
                self._take_call(message, self._call_place(message.response_id, nameless))
            case ToolResult():
                self._take_result(message)
            case _:
                self.log.append(message)

    def _assistant_place(self, response_id: str) -> LoggedResponse:
        known = self._by_response_id.get(response_id)
        # One response may have been written as calls first, when its text came last.
        return known if known is not None and known.assistant is None else self._begin(response_id)

    def _call_place(self, response_id: str, nameless: LoggedResponse | None) -> LoggedResponse:
        if response_id:
            return self._by_response_id.get(response_id) or self._begin(response_id)
        self._nameless = nameless
        return nameless or self._begin("")

    def _begin(self, response_id: str) -> LoggedResponse:
        response = LoggedResponse()
        self.log.append(response)
        if response_id:
            self._by_response_id[response_id] = response
        else:
            self._nameless = response
        return response

    def _take_call(self, call: ToolCall, response: LoggedResponse) -> None:
        unique = self._unique(call.call_id)
        entry = CallEntry(_renamed(call, unique), call.call_id)
        response.calls.append(entry)
        self._waiting[call.call_id].append(response)

    def _take_result(self, result: ToolResult) -> None:
        waiting = self._waiting.get(result.call_id)
        if not waiting:
            return
        # The latest response with this id: providers that number calls anew in each response repeat ids, and a result
        # comes soon after its call.
        entry = waiting.pop().first_unanswered(result.call_id)
        if entry is not None:
            entry.result = _renamed(result, entry.call.call_id)

    def _unique(self, call_id: str) -> str:
        named = bool(call_id.strip())
        stem = call_id if named else "call"
        unique = call_id
        # A number behind the id that was there: the repaired history must be the same each time, so nothing random.
        while not named or unique in self._ids:
            named = True
            self._numbers[stem] = number = self._numbers.get(stem, 1) + 1
            unique = f"{stem}_{number}"
        self._ids.add(unique)
        return unique


def _renamed(message: CallOrResult, call_id: str) -> CallOrResult:
    return message if message.call_id == call_id else attrs.evolve(message, call_id=call_id)


def _emit(entry: LoggedResponse | Message, notices: Notices, started: Container[str] | None) -> Iterable[Message]:
    if not isinstance(entry, LoggedResponse):
        return (entry,)
    said = (entry.assistant,) if entry.assistant is not None else ()
    results = (call.result or missing_result(call, notices, started) for call in entry.calls)
    return (*said, *(call.call for call in entry.calls), *results)


def missing_result(entry: CallEntry, notices: Notices, started: Container[str] | None) -> ToolResult:
    """The result of a call that never got one: "outcome unknown" if it may have run, otherwise "skipped"."""
    # The id as the log has it: ``tool_started`` was stored before anything was renamed.
    if started is None or entry.original_id in started:
        return ToolResult(entry.call.call_id, clean_value(notices.unknown_outcome), ToolOutcome.UNKNOWN)
    return ToolResult(entry.call.call_id, clean_value(notices.skipped_tool), ToolOutcome.SKIPPED)

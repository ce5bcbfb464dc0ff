"""What a request may look like: the invariant of history, checked message by message (semantics 5).

Checks only. `normalise` repairs; `Transcript` uses the running check to know when nothing needs repair.

    sendability_problem([call])        # "call 'a' (weather) has no result"
    sendability_problem([call, ToolResult("a", "sunny")])      # None
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ...messages.history import AssistantMessage, Message, ToolCall, ToolResult
from ...messages.text import has_surrogates


def sendability_problem(messages: Iterable[Message]) -> str | None:
    """The first thing about ``messages`` that a provider would refuse, or None (semantics 5)."""
    check = SendabilityCheck()
    for index, message in enumerate(messages):
        if problem := _unencodable(message) or check.see(message):
            return f"message {index}: {problem}"
    return check.unanswered_problem()


def _unencodable(message: Message) -> str | None:
    if has_surrogates(message):
        return f"{type(message).__name__} holds a lone surrogate, which cannot be encoded"
    return None


@attrs.define(eq=False)
class SendabilityCheck:
    """The invariant as a running check: O(1) per message, which must hold no lone surrogate."""

    _open: dict[str, ToolCall] = attrs.field(factory=dict)
    _ids: set[str] = attrs.field(factory=set)
    _begun_by_call: set[str] = attrs.field(factory=set)
    _response_id: str = ""
    _left: set[str] = attrs.field(factory=set)
    moved: bool = False
    """Whether a repair would move a message although it can be sent where it is: a late call of an earlier response."""

    @property
    def unanswered(self) -> bool:
        """Whether some call has no result yet."""
        return bool(self._open)

    def see(self, message: Message) -> str | None:
        """Take the next message; say what is wrong with it at this place. After a problem, begin anew."""
        self._follow(message)
        match message:
            case ToolCall():
                return self._see_call(message)
            case ToolResult():
                return self._see_result(message)
            case AssistantMessage():
                return self.unanswered_problem() or self._see_assistant(message)
            case _:
                return self.unanswered_problem()

    def _follow(self, message: Message) -> None:
        of_response = message.response_id if isinstance(message, AssistantMessage | ToolCall) else ""
        if self._response_id and of_response != self._response_id:
            self._left.add(self._response_id)
        if isinstance(message, ToolCall):
            self.moved = self.moved or of_response in self._left
        else:
            self._left.discard(of_response)

    def unanswered_problem(self) -> str | None:
        """The problem of ending, or saying something else, here."""
        for call in self._open.values():
            return f"call {call.call_id!r} ({call.tool_name}) has no result"
        return None

    def _see_call(self, call: ToolCall) -> str | None:
        if not call.call_id.strip():
            return f"a call of {call.tool_name} has no id"
        if call.call_id in self._ids:
            return f"call id {call.call_id!r} is used twice"
        # A call of another response while one is unanswered: providers want all results before the next response.
        if self._open and call.response_id != self._response_id:
            return self.unanswered_problem()
        if call.response_id and call.response_id != self._response_id:
            self._begun_by_call.add(call.response_id)
        # Ids stay taken after their results: providers refuse a request in which one id occurs twice.
        self._ids.add(call.call_id)
        self._open[call.call_id] = call
        self._response_id = call.response_id
        return None

    def _see_result(self, result: ToolResult) -> str | None:
        if self._open.pop(result.call_id, None) is None:
            return f"result {result.call_id!r} answers no call"
        return None

    def _see_assistant(self, message: AssistantMessage) -> str | None:
        if message.blank:
            return "the assistant message is blank"
        if message.response_id in self._begun_by_call:
            return f"the assistant message of response {message.response_id!r} comes after a call of that response"
        self._response_id = message.response_id
        return None

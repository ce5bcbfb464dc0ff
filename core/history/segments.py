"""Where history may be cut: the segments that stay whole (semantics 9).

A segment is one round (assistant message, its calls, their results) or one input of the user with the notes and skill
prompts right before it.

    segments([user, assistant, call, result])     # (range(0, 1), range(1, 4))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from ...messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage


def segments(history: Sequence[Message], apart: Callable[[Message], bool] = lambda _: False) -> tuple[range, ...]:
    """``history`` in consecutive segments, none of which separates a call from its result.

    Args:
        apart: system messages that are a segment of their own even right before an input of the user.
    """
    awaiting = _Awaiting(history)
    begins: list[int] = []
    for index, message in enumerate(history):
        if not awaiting.open and not (index and _continues(history[index - 1], message, apart)):
            begins.append(index)
        awaiting.see(message)
    return tuple(range(start, end) for start, end in pairwise([*begins, len(history)]))


class _Awaiting:
    """How many calls seen so far have a result further on."""

    def __init__(self, history: Sequence[Message]) -> None:
        self.open = 0
        # Counted beforehand: a call whose result never comes must not keep the rest of history in one segment.
        self._later = Counter(message.call_id for message in history if isinstance(message, ToolResult))
        self._calls: Counter[str] = Counter()

    def see(self, message: Message) -> None:
        if isinstance(message, ToolCall):
            self._recount(message.call_id, self._calls[message.call_id] + 1)
        elif isinstance(message, ToolResult):
            self._later[message.call_id] -= 1
            self._recount(message.call_id, max(0, self._calls[message.call_id] - 1))

    def _recount(self, call_id: str, calls: int) -> None:
        calls = min(calls, self._later[call_id])
        self.open += calls - self._calls[call_id]
        self._calls[call_id] = calls


def _continues(previous: Message, message: Message, apart: Callable[[Message], bool]) -> bool:
    match message:
        case ToolCall():
            # By response: two answers of the model that follow each other may be cut apart.
            return isinstance(previous, AssistantMessage | ToolCall) and previous.response_id == message.response_id
        case ToolResult():
            return isinstance(previous, ToolCall | ToolResult)
        case SystemMessage() | UserMessage():
            return isinstance(previous, SystemMessage) and not apart(previous)
        case _:
            return False


def newest_input(history: Sequence[Message]) -> int | None:
    """The index of the newest user message."""
    return next((index for index in reversed(range(len(history))) if isinstance(history[index], UserMessage)), None)


def segment_at(cut: Sequence[range], index: int | None) -> range:
    """The segment that holds ``index``; an empty one for None."""
    return next((segment for segment in cut if index is not None and index in segment), range(0))

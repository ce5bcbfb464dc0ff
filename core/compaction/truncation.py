"""The most recent rounds and nothing else: compaction without a summary (semantics 9). Pure.

truncate_history(history, budget, meter.size)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...messages.history import Message, SystemMessage
from ..history.segments import newest_input, segment_at, segments
from ..history.tokens import MessageSize
from .compaction_texts import EARLIER_REMOVED
from .summaries import is_marker, is_summary


def truncate_history(history: Sequence[Message], budget: int, size: MessageSize) -> tuple[Message, ...]:
    """The most recent rounds of ``history`` that ``budget`` tokens hold, after a note that others were removed.

    Kept whatever the budget: the newest user message, word for word and with its skill prompts, and the newest round.
    The summary of an earlier compaction is kept if it fits. Unchanged if all of it fits or nothing may go.
    """
    if not history or sum(map(size, history)) <= budget:
        return tuple(history)
    cut = segments(history, is_marker)
    request = segment_at(cut, newest_input(history))
    note = SystemMessage(EARLIER_REMOVED)
    # The request is paid for first, since it is kept whatever the budget is.
    room = budget - size(note) - _size(history, request, size)
    first = _first_kept(history, cut, request, room - _reserved(history, budget, size), size)
    if not first or all(is_marker(message) for message in history[:first]):
        return tuple(history)
    kept = history[first:] if first <= request.start else [*history[request.start : request.stop], *history[first:]]
    left = budget - size(note) - sum(map(size, kept))
    # Decided last, with what is left: the newest rounds matter more than the oldest summary.
    summary = history[:1] if is_summary(history[0]) and size(history[0]) <= left else ()
    return (*summary, note, *kept)


def _first_kept(history: Sequence[Message], cut: Sequence[range], request: range, room: int, size: MessageSize) -> int:
    first = len(history)
    for segment in reversed(cut):
        if segment != request:
            room -= _size(history, segment, size)
            if room < 0 and first < len(history):
                return first
        first = segment.start
    return first


def _reserved(history: Sequence[Message], budget: int, size: MessageSize) -> int:
    """The room set aside for an earlier summary: none if it would crowd out the rounds."""
    tokens = size(history[0]) if is_summary(history[0]) else 0
    return tokens if tokens <= budget // 2 else 0


def _size(history: Sequence[Message], segment: range, size: MessageSize) -> int:
    return sum(size(history[index]) for index in segment)

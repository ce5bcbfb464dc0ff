"""When history is compacted, where it is cut, and what is remembered of it (semantics 9). Pure decisions.

The turn asks the model, emits events and stores the record.

    if needs_compaction(meter.estimate(system, tools), model.context_window, config.compact_threshold):
        part = split_history(history, keep_budget(model.context_window), meter.size)
        ...                                                  # a summary of part.old, or truncate and shrink
        record = CompactionRecord("summary", before, after, through_seq, compacted(summary, part.kept))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...messages.codec import converter
from ...messages.history import Message
from ..history.segments import newest_input, segment_at, segments
from ..history.tokens import MessageSize
from .circuit_breaker import CircuitBreaker as CircuitBreaker
from .clipping import shrink_items as shrink_items
from .summaries import check_summary as check_summary
from .summaries import compacted as compacted
from .summaries import is_marker
from .summaries import summary_request_messages as summary_request_messages
from .truncation import truncate_history as truncate_history

KEPT_SHARE = 0.2


def needs_compaction(estimate: int, window: int, threshold: float) -> bool:
    """Whether a request of ``estimate`` tokens is over the threshold of the window."""
    # The threshold leaves room for the answer, and for an estimate that is too low.
    return estimate > threshold * window


def keep_budget(window: int) -> int:
    """The tokens of recent history that a summary leaves in place."""
    return int(window * KEPT_SHARE)


def fixed_text_problem(fixed: int, window: int, threshold: float) -> str | None:
    """Why compaction cannot help, whatever history is: prompt and tools alone are over the threshold. Or None."""
    if not needs_compaction(fixed, window, threshold):
        return None
    return (
        f"the system prompt and the tools alone take about {fixed} of {window} tokens, over the threshold of "
        f"{threshold:.0%}, so compacting history cannot help; shorten the instructions, offer fewer tools, or choose a "
        "model with a larger window"
    )


@attrs.frozen
class Split:
    """History in two: ``old`` is summarised and worth ``replaced_tokens``, ``kept`` goes on word for word.

    Inside a long turn the newest user message, with its skill prompts, is in both: the summary needs it as context.
    """

    old: tuple[Message, ...]
    kept: tuple[Message, ...]
    replaced_tokens: int


def split_history(history: Sequence[Message], keep_tokens: int, size: MessageSize) -> Split | None:
    """Where compaction may cut so that the kept tail is sendable and holds the newest user message (semantics 9).

    Never between a call and its result, nor between an input and its skill prompts; within a turn that alone is too
    long. The tail has at most ``keep_tokens`` unless its newest segment alone has more. None: nothing may go.
    """
    cut = segments(history, is_marker)
    request = segment_at(cut, newest_input(history))
    first = _worth_cutting(history, _first_kept(history, cut, keep_tokens, size, request))
    # The cut falls inside the newest turn: its request goes into both halves, for the model that summarises and for the
    # one that goes on.
    inside = request.stop <= first if request else False
    repeated = tuple(history[request.start : request.stop]) if inside else ()
    old = tuple(history[:first])
    # Nothing would be summarised but the request itself.
    if len(old) == len(repeated):
        return None
    return Split(old, (*repeated, *history[first:]), sum(map(size, old)) - sum(map(size, repeated)))


def _first_kept(
    history: Sequence[Message], cut: Sequence[range], room: int, size: MessageSize, free: range = range(0)
) -> int:
    """The start of the newest segments that ``room`` holds, at least one. The segment ``free`` does not count."""
    first = len(history)
    for segment in reversed(cut):
        if segment != free:
            room -= sum(size(history[index]) for index in segment)
            if room < 0 and first < len(history):
                return first
        first = segment.start
    return first


def _worth_cutting(history: Sequence[Message], cut: int) -> int:
    # Summarising a summary alone gains nothing and loses detail each time.
    return 0 if all(map(is_marker, history[:cut])) else cut


@attrs.frozen
class CompactionRecord:
    """What a compaction did, as it is stored: enough to rebuild history at resume (semantics 7, 9).

    ``messages`` stand for every message stored with a ``seq`` up to and including ``through_seq``; later ones follow
    them. ``kind`` is "summary" or "truncation"; ``before`` and ``after`` are tokens.
    """

    kind: str
    before: int
    after: int
    through_seq: int
    messages: tuple[Message, ...]
    unanswered: tuple[tuple[int, str], ...] = ()
    """Which of them a turn left without an answer, by index, and why."""

    def to_value(self) -> dict[str, Any]:
        """The record as JSON data, the value of the Metadata key ``compaction``."""
        value: dict[str, Any] = converter.unstructure(self)
        return value

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> CompactionRecord:
        """The record of such a value. Unknown fields are ignored.

        Raises:
            ValueError: this is not a record.
        """
        try:
            return converter.structure(value, cls)
        except Exception as error:
            raise ValueError(f"expected a stored compaction record, got {type(value).__name__}: {error}") from error

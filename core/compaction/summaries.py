"""A summary in place of old history: what is asked for, what is accepted, where it goes (semantics 9). Pure.

messages = summary_request_messages(old, prompt, budget)        # one request to the summary's model
problem = check_summary(text, replaced_tokens)                  # None: it may replace what it summarises
history = compacted(text, kept)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...messages.history import Message, SystemMessage, UserMessage
from ..history.rendering import render
from ..history.segments import segments
from ..history.tokens import MESSAGE_TOKENS, TextCounter, estimate_text
from ..prompts.tags import enclose
from .clipping import clip_to
from .compaction_texts import CONVERSATION_TAG, EARLIER_REMOVED, OMITTED_ROUNDS, SUMMARY_PREFIX, SUMMARY_TAG


def is_summary(message: Message) -> bool:
    """Whether this is the summary of an earlier compaction."""
    return isinstance(message, SystemMessage) and message.content.startswith(f"<{SUMMARY_TAG}>")


def is_marker(message: Message) -> bool:
    """Whether compaction put this message there: a summary, or the note that messages were removed."""
    return is_summary(message) or message == SystemMessage(EARLIER_REMOVED)


def compacted(summary: str, kept: Iterable[Message]) -> tuple[Message, ...]:
    """The history that goes on: the summary of the old part, then what is kept."""
    return (SystemMessage(enclose(SUMMARY_TAG, f"{SUMMARY_PREFIX}\n\n{summary.strip()}")), *kept)


def check_summary(
    text: str, replaced_tokens: int, *, called_tool: bool = False, count: TextCounter = estimate_text
) -> str | None:
    """Why this answer is not a summary of a part of ``replaced_tokens``, or None if it is one (semantics 9).

    Args:
        text: the plain text of the answer; an answer of only reasoning has none.
        called_tool: whether the answer asked for a tool.
    """
    if called_tool:
        return "the model called a tool instead of writing a summary"
    if not text.strip():
        return "the summary is empty"
    # A small model sometimes answers with the conversation itself: that would grow what should shrink.
    if (tokens := count(text)) >= replaced_tokens:
        return f"the summary is longer ({tokens} tokens) than what it replaces ({replaced_tokens} tokens)"
    return None


def summary_request_messages(
    old: Sequence[Message], prompt: str, budget: int, count: TextCounter = estimate_text
) -> tuple[Message, ...]:
    """The request that asks for a summary of ``old``, within ``budget`` tokens.

    What does not fit is left out, oldest whole rounds first; the summary of an earlier compaction stays. To shorten a
    request that was too long all the same, ask again with a smaller budget.
    """
    room = budget - count(prompt) - MESSAGE_TOKENS - count(enclose(CONVERSATION_TAG, OMITTED_ROUNDS))
    text = enclose(CONVERSATION_TAG, render_within(old, max(room, 1), count))
    return (UserMessage(f"{prompt.strip()}\n\n{text}"),)


def render_within(old: Sequence[Message], room: int, count: TextCounter) -> str:
    """``old`` as text of at most ``room`` tokens, if need be without its oldest rounds. An earlier summary stays."""
    # The earlier summary is all that is left of what it replaced: it goes last.
    earlier = 1 if old and is_summary(old[0]) else 0
    whole = render(old)
    if count(whole) <= room:
        return whole
    head = clip_to(render(old[:earlier]), room // 3, count)
    return "\n\n".join(part for part in (head, _newest_rounds(old[earlier:], room - count(head), count)) if part)


def _newest_rounds(old: Sequence[Message], room: int, count: TextCounter) -> str:
    texts: list[str] = []
    first = len(old)
    for segment in reversed(segments(old)):
        text = render(old[segment.start : segment.stop])
        if (tokens := count(text) + 1) > room:
            break
        room, first = room - tokens, segment.start
        texts.append(text)
    # Not even one round fits: a part of the newest is better than nothing.
    if not texts and old:
        newest = segments(old)[-1]
        first = newest.start
        texts.append(clip_to(render(old[newest.start :]), room, count))
    omitted = [OMITTED_ROUNDS.format(count=first)] if first else []
    return "\n\n".join([*omitted, *reversed(texts)])

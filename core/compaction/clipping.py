"""Large single items made small: head and tail stay, with a notice between (semantics 9). Pure.

clip_to(text, 100, estimate_text)               # at most about 100 tokens of it
shrink_items(history, budget, meter.size)       # the largest items first, until all of it fits
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import attrs

from ...messages.content import ContentBlock, FileBlock, ImageBlock, ReasoningBlock, TextBlock
from ...messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage
from ...messages.jsonvalue import json_object
from ..history.segments import newest_input
from ..history.tokens import MessageSize, TextCounter
from .compaction_texts import CLIPPED, IMAGE_REMOVED

T = TypeVar("T")

_HEAD_SHARE = 0.6
_TRIES = 12


def clip(text: str, keep: int) -> str:
    """At most ``keep`` characters of ``text``, its head and its tail, around a notice. What is short enough stays."""
    notice = CLIPPED.format(count=len(text) - keep)
    if len(text) <= max(keep, 0) + len(notice):
        return text
    # More of the head: what a text is about is there; but errors and totals are at the end.
    head = int(max(keep, 0) * _HEAD_SHARE)
    tail = max(keep, 0) - head
    return f"{text[:head]}{notice}{text[len(text) - tail :]}"


def clip_to(text: str, tokens: int, count: TextCounter) -> str:
    """``text``, clipped until it counts at most ``tokens``, or to the bare notice."""
    return _until_small(text, tokens, count, lambda share: clip(text, int(len(text) * share)))


def shrink_items(history: Sequence[Message], budget: int, size: MessageSize) -> tuple[Message, ...]:
    """``history`` with its largest items clipped so far that all of it has ``budget`` tokens, if that can be done.

    The newest user message is left alone unless it alone exceeds the budget. Images give way to a note where clipping
    text is not enough. What a provider signed (reasoning with provider data) is never touched. Calls and results keep
    their ids and places.
    """
    newest = newest_input(history)
    sizes = [size(message) for message in history]
    # It alone is too large: then it must shrink like the rest, or nothing could be sent at all.
    if newest is not None and sizes[newest] > budget:
        newest = None
    rest = budget - (sizes[newest] if newest is not None else 0)
    cap = _cap([tokens for index, tokens in enumerate(sizes) if index != newest], rest)
    return tuple(
        message if index == newest or sizes[index] <= cap else _shrunk(message, cap, size)
        for index, message in enumerate(history)
    )


def _cap(sizes: Iterable[int], budget: int) -> int:
    """The size to which the larger ones must come down so that all together have ``budget``."""
    ordered = sorted(sizes)
    for index, tokens in enumerate(ordered):
        share = budget // (len(ordered) - index)
        if tokens > share:
            return max(share, 0)
        budget -= tokens
    return max(ordered, default=0)


def _shrunk(message: Message, tokens: int, size: MessageSize) -> Message:
    small = _until_small(message, tokens, size, lambda share: _clipped(message, share))
    return small if size(small) <= tokens else _without_images(small)


def _until_small(whole: T, tokens: int, size: Callable[[T], int], smaller: Callable[[float], T]) -> T:
    """``smaller(share)`` for the first share of a falling series that is small enough, or the smallest there is."""
    if (now := size(whole)) <= tokens:
        return whole
    # A guess from the average, then smaller until it fits: tokens are not spread evenly over a text.
    share = max(0, tokens) / max(1, now)
    for _ in range(_TRIES):
        if size(small := smaller(share)) <= tokens:
            return small
        share *= 0.75
    return smaller(0.0)


def _clipped(message: Message, share: float) -> Message:
    match message:
        case ToolResult() | SystemMessage():
            return attrs.evolve(message, content=_share_of(message.content, share))
        case UserMessage() | AssistantMessage():
            return attrs.evolve(message, content=[_clipped_block(block, share) for block in message.content])
        case ToolCall():
            raw = None if message.raw_arguments is None else _share_of(message.raw_arguments, share)
            arguments = json_object(_clipped_json(message.arguments, share))
            return attrs.evolve(message, arguments=arguments, raw_arguments=raw)


def _clipped_block(block: ContentBlock, share: float) -> ContentBlock:
    match block:
        case TextBlock() | FileBlock():
            return attrs.evolve(block, text=_share_of(block.text, share))
        # Signed reasoning with one character changed is refused by the provider that signed it.
        case ReasoningBlock(provider_data=None):
            return attrs.evolve(block, text=_share_of(block.text, share))
        case _:
            return block


def _clipped_json(value: Any, share: float) -> Any:
    match value:
        case str():
            return _share_of(value, share)
        case dict():
            return {key: _clipped_json(item, share) for key, item in value.items()}
        case list():
            return [_clipped_json(item, share) for item in value]
        case _:
            return value


def _share_of(text: str, share: float) -> str:
    return clip(text, int(len(text) * share))


def _without_images(message: Message) -> Message:
    if not isinstance(message, UserMessage):
        return message
    note = TextBlock(IMAGE_REMOVED)
    return attrs.evolve(message, content=[note if isinstance(b, ImageBlock) else b for b in message.content])

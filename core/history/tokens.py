"""How large a request is, in tokens: estimated, and corrected by what the provider reports (semantics 9).

No text is read twice: each message is measured once, when it is appended.

    meter = TokenMeter()
    meter.add(message)                          # O(1) in the length of history
    meter.sent(system, tools)                   # a request goes out
    meter.reported(usage)                       # its true size; from now on only what comes after is estimated
    meter.estimate(system, tools)               # the size of the next request
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatch
from math import ceil
from typing import Any

import attrs
import msgspec

from ...messages.chat import SystemPrompt, TokenUsage, ToolSpec
from ...messages.content import ContentBlock, FileBlock, ImageBlock
from ...messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage
from ...messages.jsonvalue import JsonObject

TextCounter = Callable[[str], int]
MessageSize = Callable[[Message], int]

IMAGE_TOKENS = 1_500
MESSAGE_TOKENS = 4
_MOST_TOKENS = 1 << 40
"""More than any window: what a counter of the host's answers beyond it is not a number of tokens."""
LOWEST_RATIO, _HIGHEST_RATIO = 0.5, 4.0
_SURE = 1_000
"""Tokens of an estimate from which a report below it counts in full."""


def estimate_text(text: str) -> int:
    """The tokens of ``text`` by script: four ASCII characters a token, one CJK character, half an emoji.

    Two-byte scripts (Cyrillic, Greek, Hebrew, Arabic) count two characters a token. Runs at the speed of the codecs.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    # By the lengths of encodings instead of a loop over characters: much faster, and it counts the same.
    one_byte = len(text.encode("ascii", "ignore"))
    four_byte = len(text.encode("utf-16-le", "surrogatepass")) // 2 - len(text)
    others = len(text) - one_byte - four_byte
    three_byte = len(text.encode("utf-8", "surrogatepass")) - one_byte - 4 * four_byte - 2 * others
    return ceil(one_byte / 4 + (others - three_byte) / 2 + three_byte + 2 * four_byte)


def message_tokens(message: Message, count: TextCounter = estimate_text) -> int:
    """The tokens of one message. An image has a fixed cost: its base64 text is never counted."""
    return MESSAGE_TOKENS + _content_tokens(message, count)


@singledispatch
def _content_tokens(message: object, count: TextCounter) -> int:
    raise TypeError(f"expected a message, got {type(message).__name__}")


@_content_tokens.register
def _(message: UserMessage | AssistantMessage, count: TextCounter) -> int:
    return sum(_block_tokens(block, count) for block in message.content)


@_content_tokens.register
def _(message: ToolCall, count: TextCounter) -> int:
    arguments = message.raw_arguments or _json(message.arguments)
    return count(message.tool_name) + count(arguments)


@_content_tokens.register
def _(message: ToolResult | SystemMessage, count: TextCounter) -> int:
    return count(message.content)


def _block_tokens(block: ContentBlock, count: TextCounter) -> int:
    match block:
        case ImageBlock():
            return IMAGE_TOKENS
        case FileBlock():
            return count(block.name) + count(block.text)
        case _:
            return count(block.text)


def _json(value: JsonObject) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError):  # not JSON after all, or lone surrogates: its size is what matters
        return repr(value)


def fixed_tokens(system: SystemPrompt, tools: Iterable[ToolSpec], count: TextCounter = estimate_text) -> int:
    """The tokens of what every request carries: the system prompt and the tools."""
    specs = (count(tool.name) + count(tool.description) + count(_json(tool.parameters)) for tool in tools)
    return count(system.text) + sum(tokens + MESSAGE_TOKENS for tokens in specs)


@attrs.frozen
class _Reported:
    """A true size, and what was estimated for the same request."""

    tokens: int
    history: int
    fixed: int


@attrs.define(eq=False)
class TokenMeter:
    """The size of a session's next request (semantics 9). One session's own; never reads text twice.

    Args:
        counter: the host's own way to count the tokens of a text. One that raises is not asked again: the estimate
            by script takes over, and ``counter_error`` says why.
    """

    counter: TextCounter | None = None
    counter_error: BaseException | None = attrs.field(default=None, init=False)
    _history: int = attrs.field(default=0, init=False)
    _ratio: float = attrs.field(default=1.0, init=False)
    _sent: tuple[int, int] | None = attrs.field(default=None, init=False)
    _last: _Reported | None = attrs.field(default=None, init=False)
    _fixed: tuple[SystemPrompt, Sequence[ToolSpec], int] | None = attrs.field(default=None, init=False)

    def add(self, message: Message) -> None:
        """A message was appended."""
        self._history += message_tokens(message, self._count)

    def reset(self, messages: Iterable[Message]) -> None:
        """History was replaced: what was reported no longer fits, what was learnt about the tokenizer stays."""
        # The ratio stays: it says how this model's tokenizer compares with the estimate, whatever the history is.
        self._sent = self._last = None
        self._history = 0
        for message in messages:
            self.add(message)

    def size(self, message: Message) -> int:
        """The tokens of one message, as this session's model counts."""
        return ceil(message_tokens(message, self._count) * self._ratio)

    def text_size(self, text: str) -> int:
        """The tokens of a text, as this session's model counts."""
        return ceil(self._count(text) * self._ratio)

    def fixed(self, system: SystemPrompt, tools: Sequence[ToolSpec]) -> int:
        """The tokens of the prompt and the tools, as this session's model counts."""
        return ceil(self._fixed_estimate(system, tools) * self._ratio)

    def estimate(self, system: SystemPrompt, tools: Sequence[ToolSpec]) -> int:
        """The tokens of a request sent now: the last reported size and an estimate of what came after."""
        fixed = self._fixed_estimate(system, tools)
        if self._last is None:
            return ceil((fixed + self._history) * self._ratio)
        since = self._history - self._last.history + fixed - self._last.fixed
        # What came after may be of another script than what the ratio was learnt from: never count it too low.
        return max(0, self._last.tokens + ceil(since * max(1.0, self._ratio)))

    def sent(self, system: SystemPrompt, tools: Sequence[ToolSpec]) -> None:
        """A request with all of history goes out now. Its usage is reported next, or never."""
        self._sent = (self._history, self._fixed_estimate(system, tools))

    def reported(self, usage: TokenUsage | None) -> None:
        """The provider's count for the request sent last. None or nothing: the estimate stands."""
        sent, self._sent = self._sent, None
        tokens = _prompt_tokens(usage)
        if sent is None or not tokens:
            return
        self._last = _Reported(tokens, *sent)
        # Bounded: a provider that reports nonsense once must not make every later request look empty or endless.
        self._ratio = min(max(_ratio_of(tokens, sum(sent)), LOWEST_RATIO), _HIGHEST_RATIO)

    def learnt(self) -> dict[str, float]:
        """What the provider's reports have taught, as JSON data: a resumed session goes on with it."""
        if self._last is None:
            return {"ratio": self._ratio}
        return {"ratio": self._ratio, **attrs.asdict(self._last)}

    def relearn(self, learnt: Mapping[str, Any]) -> None:
        """Go on from what an earlier meter had learnt of this history. What is not such data is ignored."""
        ratio = learnt.get("ratio")
        if isinstance(ratio, int | float):
            self._ratio = min(max(ratio, LOWEST_RATIO), _HIGHEST_RATIO)
        match learnt:
            case {"tokens": int() as tokens, "history": int() as history, "fixed": int() as fixed} if (
                history <= self._history
            ):
                self._last = _Reported(tokens, history, fixed)

    def _fixed_estimate(self, system: SystemPrompt, tools: Sequence[ToolSpec]) -> int:
        # Compared by value: the prompt is built anew in each turn and mostly equal.
        if self._fixed is None or self._fixed[0] != system or self._fixed[1] != tools:
            self._fixed = (system, tools, fixed_tokens(system, tools, self._count))
        return self._fixed[2]

    def _count(self, text: str) -> int:
        if self.counter is None or self.counter_error is not None:
            return estimate_text(text)
        try:
            return min(max(0, int(self.counter(text))), _MOST_TOKENS)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: ASYNC103  sync: no cancellation of ours comes out of a counter
            # Whatever it raises: a binding's panic is not an Exception, and another library's cancellation is not ours.
            self.counter_error = error
            return estimate_text(text)  # noqa: ASYNC104  the same


def _ratio_of(tokens: int, estimated: int) -> float:
    """How the provider's count compares with the estimate."""
    if tokens >= estimated:
        return tokens / max(1, estimated)
    # A tiny request says little: what it has fewer of must not make a long history look short.
    return 1 - (1 - tokens / estimated) * min(1, estimated / _SURE)


def _prompt_tokens(usage: TokenUsage | None) -> int:
    if usage is None:
        return 0
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    # Cached tokens are a part of the input. Where more was cached than was put in, the provider counts them apart.
    return usage.input_tokens + cached if cached > usage.input_tokens else usage.input_tokens

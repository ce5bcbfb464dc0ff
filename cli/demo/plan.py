"""What ``youyou demo`` says, when it cancels, and how a very small model is asked for several things at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, TypeAlias

import attrs

from ...core.ports.protocols import ChatStream, ModelInfo, ModelProvider
from ...messages.chat import ChatEvent, ChatRequest, Done, StopReason, TextDelta, TokenUsage
from ...messages.content import text_of
from ...messages.events import AgentEventPayload, ToolCallStart
from ...messages.history import Message, ToolCall, ToolResult, UserMessage
from ..agent.demo_model import Played

Pair: TypeAlias = tuple[ToolCall, ToolResult]

_WORDS_BEFORE_CANCEL = 12


@attrs.frozen(eq=False)
class PlannedTurn:
    """One turn. ``cancel_at`` says at which event it is cancelled."""

    title: str
    prompt: str
    cancel_at: Callable[[AgentEventPayload], bool] | None = None


@attrs.define(eq=False)
class AfterWords:
    """True at the n-th piece of text."""

    left: int

    def __call__(self, payload: AgentEventPayload) -> bool:
        if isinstance(payload, TextDelta):
            self.left -= 1
        return self.left <= 0


def at_first_tool(payload: AgentEventPayload) -> bool:
    """True as soon as a tool runs."""
    return isinstance(payload, ToolCallStart)


def _notes(*texts: str) -> str:
    return "\n".join(f"Keep a note for later: {text}" for text in texts)


HELLO = PlannedTurn("1. a turn of text", "Hello!")
CUT_STREAM = PlannedTurn(
    "2. a long answer, cancelled in the middle of a sentence",
    "Tell me a long story about a lighthouse.",
    AfterWords(_WORDS_BEFORE_CANCEL),
)
SIDE_BY_SIDE = PlannedTurn("3. read-only tools, side by side", "Work out 12 * 7\nWork out 100 - 58\nWhat time is it?")
IN_TURN = PlannedTurn(
    "4. tools that change something, one after the other",
    _notes("buy milk", "water the plants", "bring the umbrella"),
)
CUT_BATCH = PlannedTurn(
    "5. the same, cancelled while the first one runs: it finishes, the others are skipped",
    _notes("buy bread", "pay the rent", "bake a cake"),
    at_first_tool,
)
TURNS = (HELLO, CUT_STREAM, SIDE_BY_SIDE, IN_TURN, CUT_BATCH)
AFTER_RESUME = (PlannedTurn("6. go on: what was skipped was not done", "Which notes do I have?"),)


class LineByLine:
    """A provider that asks another one about each line of the newest message and puts the calls into one response.

    A model of 135 million parameters asks for one thing at a time. What it asks for and what it says of the results is
    its own choice; only the putting together is done here. A message of one line goes through as it is. Whoever made
    the inner provider enters and leaves it.
    """

    def __init__(self, inner: ModelProvider) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        """The inner provider's."""
        return self._inner.id

    def models(self) -> Sequence[ModelInfo]:
        """The inner provider's."""
        return self._inner.models()

    def chat(self, request: ChatRequest) -> AbstractAsyncContextManager[ChatStream] | ChatStream:
        """One request, or one for each line."""
        at = _newest_user_message(request.messages)
        said = request.messages[at] if at >= 0 else None
        lines = text_of(said.content).splitlines() if isinstance(said, UserMessage) else []
        since = request.messages[at + 1 :]
        if len(lines) > 1 and not since:
            return self._decide(request, lines)
        pairs = _calls_with_results(since)
        if len(lines) > 1 and len(lines) == len(pairs):
            return self._tell(request, request.messages[:at], lines, pairs)
        return self._inner.chat(request)

    @asynccontextmanager
    async def _decide(self, request: ChatRequest, lines: Sequence[str]) -> AsyncIterator[ChatStream]:
        """The calls that the lines ask for, in one response."""
        calls: list[ChatEvent] = []
        usage = TokenUsage()
        for line in lines:
            for event in await self._answer(request, (*request.messages[:-1], UserMessage(line))):
                match event:
                    case ToolCall():
                        # Without an id: the runtime gives it one that no other call has.
                        calls.append(attrs.evolve(event, call_id=""))
                    case Done(usage=TokenUsage() as spent):
                        usage += spent
        found = calls or [TextDelta("I found nothing to do.")]
        yield Played([*found, Done(usage, StopReason.TOOL_USE if calls else StopReason.END_TURN)])

    @asynccontextmanager
    async def _tell(
        self, request: ChatRequest, before: Sequence[Message], lines: Sequence[str], pairs: Sequence[Pair]
    ) -> AsyncIterator[ChatStream]:
        """What came of each line, a line each."""
        told: list[ChatEvent] = []
        usage = TokenUsage()
        for line, pair in zip(lines, pairs, strict=True):
            for event in await self._answer(request, (*before, UserMessage(line), *pair)):
                match event:
                    case TextDelta():
                        told.append(event)
                    case Done(usage=TokenUsage() as spent):
                        usage += spent
            told.append(TextDelta("\n"))
        yield Played([*told, Done(usage)])

    async def _answer(self, request: ChatRequest, messages: Sequence[Message]) -> list[ChatEvent]:
        asked = attrs.evolve(request, messages=tuple(messages))
        async with _opened(self._inner.chat(asked)) as stream:
            return [event async for event in stream]


def _newest_user_message(messages: Sequence[Message]) -> int:
    """Its index, or -1."""
    return max((at for at, message in enumerate(messages) if isinstance(message, UserMessage)), default=-1)


def _calls_with_results(messages: Sequence[Message]) -> list[Pair]:
    results = {message.call_id: message for message in messages if isinstance(message, ToolResult)}
    calls = [message for message in messages if isinstance(message, ToolCall)]
    return [(call, results[call.call_id]) for call in calls if call.call_id in results]


@asynccontextmanager
async def _opened(made: Any) -> AsyncIterator[ChatStream]:
    """A provider's stream in either of its forms."""
    async with AsyncExitStack() as stack:
        if isinstance(made, AbstractAsyncContextManager):
            yield await stack.enter_async_context(made)
        else:
            yield await stack.enter_async_context(aclosing(made))

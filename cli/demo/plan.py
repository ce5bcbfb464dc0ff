"""What ``youyou demo`` says, when it cancels, and how a very small model is asked for several things at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import attrs

from ...core.ports.protocols import ChatStream, ModelInfo, ModelProvider
from ...messages.chat import ChatEvent, ChatRequest, Done, StopReason, TextDelta, TokenUsage
from ...messages.content import text_of
from ...messages.events import AgentEventPayload, ToolCallStart
from ...messages.history import Message, ToolCall, ToolResult, UserMessage
from ..agent.demo_model import Played

_WORDS_BEFORE_CANCEL = 12


@attrs.frozen(eq=False)
class PlannedTurn:
    """One turn. ``cancel_at``, given the events so far, says whether it is to be cancelled."""

    title: str
    prompt: str
    risk: str
    """What usually goes wrong here."""
    cancel_at: Callable[[Sequence[AgentEventPayload]], bool] | None = None


def after_words(events: Sequence[AgentEventPayload]) -> bool:
    """True at the n-th piece of text."""
    return sum(isinstance(event, TextDelta) for event in events) >= _WORDS_BEFORE_CANCEL


def at_first_tool(events: Sequence[AgentEventPayload]) -> bool:
    """True as soon as a tool runs."""
    return any(isinstance(event, ToolCallStart) for event in events)


def _notes(*texts: str) -> str:
    return "\n".join(f"Keep a note for later: {text}" for text in texts)


HELLO = PlannedTurn("1. a turn of text", "Hello!", "nothing yet: this is the part that every runtime does well")
CUT_STREAM = PlannedTurn(
    "2. a long answer, cancelled in the middle of a sentence",
    "Tell me a long story about a lighthouse.",
    "the text so far is lost, or the history ends in a state that the next request is refused for",
    after_words,
)
SIDE_BY_SIDE = PlannedTurn(
    "3. read-only tools, concurrently",
    "Work out 12 * 7\nWork out 100 - 58\nWhat time is it?",
    "one slow tool holds up the others, or their results are mixed up",
)
IN_TURN = PlannedTurn(
    "4. tools that change something, one after the other",
    _notes("buy milk", "water the plants", "bring the umbrella"),
    "they run at once, in any order, and step on each other",
)
CUT_BATCH = PlannedTurn(
    "5. the same, cancelled while the first one runs: it finishes, the others are skipped",
    _notes("buy bread", "pay the rent", "bake a cake"),
    "calls are left without a result, or nobody can say which of them ran",
    at_first_tool,
)
TURNS = (HELLO, CUT_STREAM, SIDE_BY_SIDE, IN_TURN, CUT_BATCH)
AFTER_RESUME = (
    PlannedTurn(
        "6. go on: what was skipped was not done",
        "Which notes do I have?",
        "what was cancelled comes back as done, or is done once more",
    ),
)


class LineByLine:
    """A provider that asks another one about each line of the newest message and puts the calls into one response.

    A model of 135 million parameters chats, and it chooses a tool for one request at a time; of several requests it
    drops some, and in retelling what tools answered it makes mistakes. So it is asked for what it does well: the calls
    are put together here, and results are read out as they came. The maker of the inner provider enters and leaves it.
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
        """One request, or one for each line, or none where results are there."""
        at = _newest_user_message(request.messages)
        said = request.messages[at] if at >= 0 else None
        lines = text_of(said.content).splitlines() if isinstance(said, UserMessage) else []
        results = [message for message in request.messages[at + 1 :] if isinstance(message, ToolResult)]
        if results:
            return Played([*(TextDelta(f"- {result.content}\n") for result in results), Done()])
        return self._decide(request, lines) if len(lines) > 1 else self._inner.chat(request)

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

    async def _answer(self, request: ChatRequest, messages: Sequence[Message]) -> list[ChatEvent]:
        asked = attrs.evolve(request, messages=tuple(messages))
        async with _opened(self._inner.chat(asked)) as stream:
            return [event async for event in stream]


def _newest_user_message(messages: Sequence[Message]) -> int:
    """Its index, or -1."""
    return max((at for at, message in enumerate(messages) if isinstance(message, UserMessage)), default=-1)


@asynccontextmanager
async def _opened(made: Any) -> AsyncIterator[ChatStream]:
    """A provider's stream in either of its forms."""
    async with AsyncExitStack() as stack:
        if isinstance(made, AbstractAsyncContextManager):
            yield await stack.enter_async_context(made)
        else:
            yield await stack.enter_async_context(aclosing(made))

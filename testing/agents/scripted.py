"""A model that says what the test wrote down (semantics 15). Owns no clock, no network, no rule of the conversation.

provider = ScriptedProvider([
    calls(call("weather", {"city": "Oslo"})),               # first request: one tool call
    [TextDelta("It is "), 0.5, TextDelta("sunny."), Done()],  # second: half a second of silence in between
    [TextDelta("It"), ConnectionResetError("gone")],        # third: breaks off
])
provider.requests[1].messages                               # what the runtime sent, as it was then
provider.opened == provider.closed                          # no stream was left open
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeAlias

import attrs
import trio

from ...core.history.repair import sendability_problem
from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.chat import ChatEvent, ChatRequest, Done, ReasoningDelta, StopReason, TextDelta, TokenUsage
from ...messages.errors import ProviderError
from ...messages.history import ToolCall

RoundItem: TypeAlias = ChatEvent | float | BaseException
"""An event to stream, seconds to sleep, or an exception to raise."""

Round: TypeAlias = Sequence[RoundItem]
"""The answer to one request. Without a `Done` at its end the stream just ends."""

SCRIPTED_MODEL = ModelInfo("scripted", "Scripted", 100_000, ModelCapabilities(vision=True))


class UnsendableRequest(AssertionError):
    """A request that breaks semantics 5; raised by `StrictProvider`."""


def say(*texts: str, reasoning: str = "", usage: TokenUsage | None = None) -> list[RoundItem]:
    """A round that answers with text, one delta for each argument."""
    thoughts: list[RoundItem] = [ReasoningDelta(reasoning)] if reasoning else []
    return [*thoughts, *map(TextDelta, texts), Done(usage)]


def call(tool_name: str, arguments: Mapping[str, Any] | None = None, *, id: str | None = None) -> ToolCall:
    """A tool call; its id is the name of the tool unless given."""
    return ToolCall(tool_name if id is None else id, tool_name, dict(arguments or {}))


def calls(*items: ToolCall | str, text: str = "", usage: TokenUsage | None = None) -> list[RoundItem]:
    """A round that asks for tools, by `call(...)` or by bare name, after ``text`` if there is one."""
    spoken: list[RoundItem] = [TextDelta(text)] if text else []
    asked = [call(item) if isinstance(item, str) else item for item in items]
    return [*spoken, *asked, Done(usage, StopReason.TOOL_USE)]


@attrs.define(eq=False)
class _ScriptedStream:
    """One round being played. Every event is a checkpoint, so that a cancel can fall between any two."""

    _provider: ScriptedProvider
    _items: deque[RoundItem]
    _refusal: BaseException | None = None

    async def __aenter__(self) -> _ScriptedStream:
        self._provider.opened += 1
        try:
            await trio.lowlevel.checkpoint()
            if self._refusal is not None:
                raise self._refusal
        except BaseException:
            self._provider.closed += 1
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._provider.closed += 1

    def __aiter__(self) -> _ScriptedStream:
        return self

    async def __anext__(self) -> ChatEvent:
        await trio.lowlevel.checkpoint()
        while self._items:
            match self._items.popleft():
                case float() | int() as seconds:
                    await trio.sleep(seconds)
                case BaseException() as error:
                    raise error
                case event:
                    return event
        raise StopAsyncIteration


class ScriptedProvider:
    """A `ModelProvider` that plays ``rounds``, one for each request, in order.

    Synopsis::

        provider = ScriptedProvider([say("Hello"), calls("weather"), say("Sunny.")])

    Args:
        rounds: for each request a list of chat events, floats (seconds of silence) and exceptions (raised).
        models: what it offers; by default one model ``scripted`` with a window of 100 000 tokens, tools and vision.
        id: the provider's id.

    Raises (from the stream):
        ProviderError: not retryable, when a request comes for which no round was written.
    """

    def __init__(
        self, rounds: Iterable[Round], *, models: Sequence[ModelInfo] | None = None, id: str = "scripted"
    ) -> None:
        self.id = id
        self._models = (SCRIPTED_MODEL,) if models is None else tuple(models)
        self._rounds = deque(rounds)
        self.requests: list[ChatRequest] = []
        """Every request, with its messages as they were when it came."""
        self.opened = 0
        """Streams entered."""
        self.closed = 0
        """Streams left again, however that came."""

    @property
    def rounds_left(self) -> int:
        """Rounds that no request has used yet."""
        return len(self._rounds)

    def models(self) -> Sequence[ModelInfo]:
        """The models on offer."""
        return self._models

    def chat(self, request: ChatRequest) -> _ScriptedStream:
        """Take the next round. What goes wrong is raised when the stream is entered."""
        seen = attrs.evolve(request, messages=tuple(request.messages))
        self.requests.append(seen)
        if (refusal := self._refusal(seen)) is not None:
            return _ScriptedStream(self, deque(), refusal)
        return _ScriptedStream(self, deque(self._rounds.popleft()))

    def _refusal(self, request: ChatRequest) -> BaseException | None:
        if self._rounds:
            return None
        number = len(self.requests)
        return ProviderError(
            f"request {number} came, but the script of provider {self.id!r} has no round for it; add one to 'rounds'",
            retryable=False,
        )


class StrictProvider(ScriptedProvider):
    """A `ScriptedProvider` that refuses every request that breaks semantics 5.

    A refused request uses up no round. The runtime reports the refusal as a provider error like any other, so a test
    ends with ``assert [] == provider.violations``.
    """

    def __init__(
        self, rounds: Iterable[Round], *, models: Sequence[ModelInfo] | None = None, id: str = "scripted"
    ) -> None:
        super().__init__(rounds, models=models, id=id)
        self.violations: list[str] = []
        """What was wrong with each refused request."""

    def _refusal(self, request: ChatRequest) -> BaseException | None:
        problem = sendability_problem(request.messages)
        if problem is None:
            return super()._refusal(request)
        self.violations.append(problem)
        return UnsendableRequest(f"request {len(self.requests)}: {problem}")

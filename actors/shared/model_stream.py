"""A provider's stream made safe (semantics 4, "The runtime makes a stream safe").

Collects one response. Text becomes part of it in the same step in which it is emitted, so that history and events never
disagree. Whatever a provider does ends in a whole `Response` or in an `AgentError`.

    response = Response.of(config)
    await read_response(lifetime, provider, request, response, sink, idle_timeout=120)
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any, Final, NoReturn, Protocol, assert_never, cast

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.config import AgentConfig
from ...core.ports.chat_event_checks import checked, error_of
from ...core.ports.protocols import ModelProvider
from ...core.randomness import new_id
from ...messages.chat import ChatError, ChatRequest, Done, ReasoningDelta, StopReason, TextDelta, TokenUsage
from ...messages.codec import to_json
from ...messages.content import ContentBlock, ReasoningBlock, TextBlock
from ...messages.errors import AgentError, ProviderError, ProviderTimeout, StreamInterrupted
from ...messages.history import AssistantMessage, MessageStatus, ToolCall
from .lifetime import Lifetime
from .user_code import UserCodeError, call_sync, call_user

logger: logging.Logger = logging.getLogger("youyou")


@attrs.define(eq=False)
class Response:
    """What came of one request so far."""

    response_id: str
    max_calls: int
    max_chars: int
    calls: list[ToolCall] = attrs.Factory(list)
    done: Done | None = None
    visible: bool = False
    chars: int = 0
    """Characters of text, reasoning and arguments so far."""
    _kinds: list[type[TextBlock] | type[ReasoningBlock]] = attrs.Factory(list)
    _pieces: list[list[str]] = attrs.Factory(list)

    @classmethod
    def of(cls, config: AgentConfig) -> Response:
        """An empty one, with the bounds of this configuration."""
        return cls(new_id(), config.max_calls_per_response, config.max_response_chars)

    def add(self, delta: TextDelta | ReasoningDelta) -> None:
        """Take in a piece; pieces of one kind that follow each other are one block."""
        kind = TextBlock if isinstance(delta, TextDelta) else ReasoningBlock
        if not self._kinds or self._kinds[-1] is not kind:
            self._kinds.append(kind)
            self._pieces.append([])
        self._pieces[-1].append(delta.text)
        self.visible = True

    @property
    def text(self) -> str:
        """The plain text."""
        return "".join("".join(p) for k, p in zip(self._kinds, self._pieces, strict=True) if k is TextBlock)

    @property
    def says_something(self) -> bool:
        """Neither text nor calls is an empty answer (semantics 4)."""
        return bool(self.calls) or bool(self.text.strip())

    @property
    def usage(self) -> TokenUsage:
        """What the provider reported."""
        return (self.done and self.done.usage) or TokenUsage()

    @property
    def stop_reason(self) -> StopReason:
        """Why the model stopped."""
        return self.done.stop_reason if self.done else StopReason.END_TURN

    def message(self, cause: str | None = None) -> AssistantMessage:
        """As a message of history; with a ``cause`` it is incomplete."""
        content: list[ContentBlock] = [
            kind("".join(pieces)) for kind, pieces in zip(self._kinds, self._pieces, strict=True) if any(pieces)
        ]
        return AssistantMessage(
            tuple(content),
            MessageStatus.INCOMPLETE if cause else MessageStatus.COMPLETE,
            cause,
            self.response_id,
            self.done.provider_data if self.done else None,
        )


class Sink(Protocol):
    """Where a response goes while it arrives."""

    async def room(self) -> None:
        """Wait until a delta can be put. May be cancelled: then the delta is neither emitted nor kept."""

    def delta(self, delta: TextDelta | ReasoningDelta) -> None:
        """Put a delta. Sync."""

    def call(self, call: ToolCall) -> ToolCall:
        """Accept a call: the same with an id that is unique. Sync."""

    def done(self, response: Response) -> None:
        """The response is whole; called before the stream is closed and before any await. Sync."""


@enable_ki_protection
async def read_response(
    lifetime: Lifetime,
    provider: ModelProvider,
    request: ChatRequest,
    response: Response,
    sink: Sink,
    idle_timeout: float,
) -> None:
    """Send ``request`` and collect the answer into ``response``.

    Cancellation: the stream is closed at once; ``response`` holds what had arrived.

    Args:
        idle_timeout: seconds of silence after which the provider has failed; waiting on a reader does not count.

    Raises:
        AgentError: the provider failed, was silent or ended early.
    """
    silence = trio.CancelScope()
    try:
        with silence:
            # Inside the silence scope, so that closing a stream is bounded by it as well.
            async with AsyncExitStack() as stack:
                silence.deadline = trio.current_time() + idle_timeout
                stream = await _open(lifetime, provider, request, stack)
                await _collect(lifetime, stream, response, sink, silence, idle_timeout)
    except UserCodeError as error:
        if response.done is None:
            raise _provider_error(provider, error) from error.cause
        logger.warning("provider %r failed while its finished stream was closed: %s", provider.id, error)
    if response.done is not None:
        return
    if silence.cancelled_caught:
        raise ProviderTimeout(
            f"provider {provider.id!r} sent nothing for {idle_timeout:g} s; try again or raise the limit"
        )
    raise StreamInterrupted(f"the stream of provider {provider.id!r} ended without Done; yield Done at the end")


async def _open(
    lifetime: Lifetime, provider: ModelProvider, request: ChatRequest, stack: AsyncExitStack
) -> AsyncIterator[Any]:
    opened: Any = call_sync(lifetime, provider.chat, request)
    if hasattr(opened, "__aenter__"):
        opened = await stack.enter_async_context(_Guarded(lifetime, opened))
    if not hasattr(opened, "__aiter__"):
        raise UserCodeError(
            TypeError("chat() must return an async iterable of chat events, or a context manager of one")
        )
    iterator: Any = aiter(opened)
    if hasattr(iterator, "aclose"):
        # An async generator that is not closed is finalised by the garbage collector in a cancelled context, with a
        # ResourceWarning, and its `finally` cannot await.
        await stack.enter_async_context(_Guarded(lifetime, aclosing(iterator)))
    return cast(AsyncIterator[Any], iterator)


async def _collect(
    lifetime: Lifetime,
    stream: AsyncIterator[Any],
    response: Response,
    sink: Sink,
    silence: trio.CancelScope,
    idle_timeout: float,
) -> None:
    without_room = 0
    deadline = trio.current_time() + idle_timeout
    while True:
        silence.deadline = deadline
        item = await call_user(lifetime, _next, stream)
        if item is _END:
            return
        event = checked(item)
        if isinstance(event, TextDelta | ReasoningDelta) and event.text:
            # While a reader holds us up, the provider is not silent.
            silence.deadline = math.inf
            await sink.room()
            response.chars += len(event.text)
            if response.chars > response.max_chars:
                _cut(event, response, sink)
            response.add(event)
            sink.delta(event)
            deadline = trio.current_time() + idle_timeout
            continue
        # Only `room` is a checkpoint: a provider that yields anything else without ever waiting keeps the event loop,
        # and no cancel would be seen.
        without_room += 1
        if not without_room % ITEMS_BETWEEN_CHECKPOINTS:
            await trio.lowlevel.checkpoint()
        match event:
            case TextDelta() | ReasoningDelta():
                pass  # a keep-alive: it says nothing, so it counts as silence
            case ToolCall():
                _check_bounds(event, response)
                # The id is made unique before anything else sees the call: log, events and results all speak of the
                # same one.
                response.calls.append(sink.call(attrs.evolve(event, response_id=response.response_id)))
                response.visible = True
                deadline = trio.current_time() + idle_timeout
            case ChatError():
                raise error_of(event)
            case Done():
                response.done = event
                # Before the stream is closed: closing awaits, and a cancel that arrives meanwhile must find that the
                # turn completed.
                sink.done(response)
                return
            case _:
                assert_never(event)


def _cut(delta: TextDelta | ReasoningDelta, response: Response, sink: Sink) -> NoReturn:
    """Keep what is within the bound, and fail."""
    kept = delta.text[: max(0, len(delta.text) + response.max_chars - response.chars)]
    if kept:
        response.add(attrs.evolve(delta, text=kept))
        sink.delta(attrs.evolve(delta, text=kept))
    raise _too_long(response)


def _check_bounds(call: ToolCall, response: Response) -> None:
    response.chars += len(call.raw_arguments or "") + len(to_json(call.arguments))
    if response.chars > response.max_chars:
        raise _too_long(response)
    if len(response.calls) >= response.max_calls:
        raise ProviderError(
            f"the response holds more than {response.max_calls} tool calls, so none of them runs; raise "
            "max_calls_per_response if the model needs them",
            retryable=False,
        )


def _too_long(response: Response) -> ProviderError:
    return ProviderError(
        f"the response is longer than {response.max_chars} characters and was cut, so none of its calls runs; raise "
        "max_response_chars if the model needs them",
        retryable=False,
    )


ITEMS_BETWEEN_CHECKPOINTS: Final = 64
_END: Final = object()


async def _next(stream: AsyncIterator[Any]) -> Any:
    return await anext(stream, _END)


def _provider_error(provider: ModelProvider, error: UserCodeError) -> AgentError:
    if isinstance(error.cause, AgentError):
        return error.cause
    logger.debug("provider %r raised", provider.id, exc_info=error.cause)
    return ProviderError(f"provider {provider.id!r} raised {error}", retryable=True)


@attrs.frozen(eq=False)
class _Guarded:
    """A context manager of the host's, entered and left through the one door."""

    lifetime: Lifetime
    manager: AbstractAsyncContextManager[Any]

    async def __aenter__(self) -> Any:
        return await call_user(self.lifetime, self.manager.__aenter__)

    async def __aexit__(self, kind: Any, exc: Any, traceback: Any) -> bool:
        try:
            await call_user(self.lifetime, self.manager.__aexit__, kind, exc, traceback)  # noqa: ASYNC102  the host's own
        except UserCodeError as error:
            # What went wrong on the way out must not hide what went wrong before.
            if error.cause is not exc and exc is None:
                raise
        return False


class NullSink:
    """A sink for answers that no host reads: summaries and extractions."""

    async def room(self) -> None:
        """There is always room. A checkpoint."""
        await trio.lowlevel.checkpoint()

    def delta(self, delta: TextDelta | ReasoningDelta) -> None:
        """Not shown."""

    def call(self, call: ToolCall) -> ToolCall:
        """Kept as it is; nobody runs it."""
        return call

    def done(self, response: Response) -> None:
        """Nothing to decide."""

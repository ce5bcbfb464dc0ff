"""A provider's stream made safe (semantics 4, "The runtime makes a stream safe").

The reader puts text into its `Response` in the same step in which it emits it, so that history and events never
disagree. Whatever a provider does ends in `Done` or in an `AgentError`.

    async with open_stream(lifetime, provider, request, limits) as stream:
        while (event := await stream.next()) is not None:
            ...
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, Final, assert_never, cast

import attrs
import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ...core.config import AgentConfig
from ...core.ports.chat_event_checks import error_of, size_of_arguments, validate_chat_event
from ...core.ports.protocols import ModelProvider
from ...core.ports.split_characters import Halves
from ...core.ports.stop_rules import completes
from ...messages.chat import (
    ChatError,
    ChatEvent,
    ChatRequest,
    Done,
    Progress,
    ReasoningDelta,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from ...messages.content import ContentBlock, ReasoningBlock, TextBlock
from ...messages.errors import AgentError, ErrorSource, ProviderError, ProviderTimeout, StreamInterrupted
from ...messages.history import AssistantMessage, MessageStatus, ToolCall
from .lifetime import Lifetime
from .user_code import UserCodeError, call_sync, call_user, to_user_code_error

logger: logging.Logger = logging.getLogger("youyou.providers")

_ITEMS_PER_CHECKPOINT: Final = 64


@attrs.define(eq=False)
class Response:
    """What one request has produced so far."""

    response_id: str
    calls: list[ToolCall] = attrs.Factory(list)
    done: Done | None = None
    visible: bool = False
    reported: TokenUsage = attrs.Factory(TokenUsage)
    """What the request has cost, as far as it was told before the end."""
    call_ids: dict[str, str] = attrs.Factory(dict)
    """The ids of calls that are being written, by those that the provider gave them."""
    _kinds: list[type[TextBlock] | type[ReasoningBlock]] = attrs.Factory(list)
    _pieces: list[list[str]] = attrs.Factory(list)
    _kind: type[TextBlock] | type[ReasoningBlock] | None = None

    def add(self, delta: TextDelta | ReasoningDelta) -> None:
        """Take in a piece; pieces of one kind that follow each other are one block."""
        kind = TextBlock if isinstance(delta, TextDelta) else ReasoningBlock
        if kind is not self._kind:
            self._kind = kind
            self._kinds.append(kind)
            self._pieces.append([])
        self._pieces[-1].append(delta.text)
        self.visible = True

    def add_call(self, call: ToolCall, call_id: str) -> None:
        """Take in a call, under an id that is unique before anything else sees it: log, events and results agree."""
        self.calls.append(attrs.evolve(call, call_id=call_id, response_id=self.response_id))
        self.visible = True

    @property
    def text(self) -> str:
        """The plain text."""
        return "".join("".join(p) for k, p in zip(self._kinds, self._pieces, strict=True) if k is TextBlock)

    @property
    def says_something(self) -> bool:
        """Neither text nor calls is an empty answer (semantics 4), unless a pause hands back something else."""
        handed_back = self.paused and self.done is not None and self.done.provider_data is not None
        return bool(self.calls) or bool(self.text.strip()) or handed_back

    @property
    def paused(self) -> bool:
        """Whether the model wants to go on in another request."""
        return self.stop_reason is StopReason.PAUSE

    @property
    def completes(self) -> bool:
        """Whether this is an answer after which nothing is left to do but what the host asks."""
        return self.says_something and not self.calls and (self.paused or completes(self.stop_reason))

    @property
    def usage(self) -> TokenUsage:
        """What the provider reported, at the end or on the way to it."""
        return (self.done and self.done.usage) or self.reported

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
            self.done.stop_reason if self.done else None,
        )


@attrs.frozen
class StreamLimits:
    """How long and how large one response may be. ``idle_timeout``: seconds of silence, without slow readers."""

    idle_timeout: float
    max_calls: int
    max_chars: int

    @classmethod
    def of(cls, config: AgentConfig) -> StreamLimits:
        """As the agent's configuration has it."""
        return cls(config.stream_idle_timeout_ms / 1000, config.max_calls_per_response, config.max_response_chars)


@asynccontextmanager
@enable_ki_protection
async def open_stream(
    lifetime: Lifetime, provider: ModelProvider, request: ChatRequest, limits: StreamLimits
) -> AsyncIterator[ModelStream]:
    """Send ``request``; read the answer inside the block, up to its `Done`.

    Cancellation: the stream is closed at once.

    Raises:
        AgentError: the provider failed, was silent or ended early. Once `Done` was read, a failure is only logged.
    """
    silence = trio.CancelScope()
    stream = ModelStream(lifetime, provider.id, limits, silence)
    try:
        with silence:
            # Inside the silence scope, so that opening and closing a stream are bounded by it as well.
            async with AsyncExitStack() as stack:
                stream.hear()
                stream.items = await _open(lifetime, provider, request, stack)
                yield stream
    except UserCodeError as error:
        if stream.done is None:
            raise _provider_error(provider, error) from error.cause
        logger.warning("provider %r failed while its finished stream was closed: %s", provider.id, error)
    if stream.done is not None:
        return
    if silence.cancelled_caught:
        raise ProviderTimeout(
            f"provider {provider.id!r} sent nothing for {limits.idle_timeout:g} s; try again or raise the limit"
        )
    raise StreamInterrupted(f"the stream of provider {provider.id!r} ended without Done; yield Done at the end")


@attrs.define(eq=False)
class ModelStream:
    """An open stream of chat events, each checked. Read by one task."""

    lifetime: Lifetime
    provider_id: str
    limits: StreamLimits
    silence: trio.CancelScope
    items: AsyncIterator[Any] = attrs.field(init=False)
    done: Done | None = None
    _time: Callable[[], float] = attrs.field(init=False)
    _heard: float = -math.inf
    # The first item counts for a whole buffer: a turn of many short answers must not keep the loop either.
    _since_checkpoint: int = _ITEMS_PER_CHECKPOINT - 1
    _calls: int = 0
    _chars: int = 0
    _written: int = 0
    _announced: set[str] = attrs.Factory(set)
    _halves: Halves = attrs.Factory(Halves)
    _ready: deque[ChatEvent] = attrs.Factory(deque)

    def __attrs_post_init__(self) -> None:
        # `trio.current_time` looks for the clock of the run each time, and the time is asked for at each delta.
        self._time = trio.lowlevel.current_clock().current_time

    def hear(self) -> None:
        """The provider is not silent: its time begins anew. Sync."""
        now = self._time()
        # Setting a deadline costs more than all else about a delta, so one that is a tick old is as good as new.
        if now - self._heard > _TICK:
            self._heard = now
            self.silence.deadline = now + self.limits.idle_timeout

    async def next(self) -> ChatEvent | None:
        """The next event that says something. None: the stream has ended.

        A checkpoint at least every 64 items, whatever the provider does: one that never waits must not keep the loop.

        Raises:
            AgentError: the provider said that it failed, or yields what no response may hold.
            UserCodeError: the provider raised.
        """
        while True:
            self._since_checkpoint += 1
            if self._since_checkpoint >= _ITEMS_PER_CHECKPOINT:
                self._since_checkpoint = 0
                await trio.lowlevel.checkpoint()
            if self._chars > self.limits.max_chars:
                self._check_size()
            if self._ready:
                return self._next_ready()  # noqa: ASYNC910  it was waited for with the item before
            # `call_user` in this place would be two coroutines more for each delta.
            try:
                item = await _next(self.items)
            except BaseException as exc:
                error = to_user_code_error(self.lifetime, exc)
                if error is exc:
                    raise
                raise error from exc  # noqa: ASYNC104  not a cancellation of ours
            if item is _END:
                return None  # noqa: ASYNC910  the provider's own affair; see above
            # Nearly all that a model says, many times a second: plain text within the bound needs none of what follows.
            if (
                type(item) is TextDelta
                and type(text := item.text) is str
                and text.isascii()
                and 0 < len(text) <= self.limits.max_chars - self._chars
                and self._halves.waiting is None
            ):
                self._chars += len(text)
                self.hear()
                return item  # noqa: ASYNC910  the provider's own affair; see above
            event = validate_chat_event(item)
            match event:
                case TextDelta(text="") | ReasoningDelta(text=""):
                    continue  # counts as silence
                case TextDelta(text=text) | ReasoningDelta(text=text):
                    self._chars += len(text)
                    if self._chars > self.limits.max_chars:
                        return self._last_piece(event)  # noqa: ASYNC910  the provider's own affair; see above
                    if self._halves.waiting is not None or text[-1:] >= _HALF or text[:1] >= _HALF:
                        self._ready.extend(self._halves.take(event))
                        self.hear()
                        continue
                case ToolCallDelta(call_id=call_id, text=text):
                    self._written += len(text)
                    self._check_size()
                    if not text and call_id in self._announced:
                        continue  # counts as silence
                    self._announced.add(call_id)
                case Progress():
                    pass
                case ToolCall():
                    self._calls += 1
                    self._chars += size_of_arguments(event)
                    self._check_size()
                case ChatError():
                    raise error_of(event)
                case Done():
                    self._ready.extend((*self._halves.rest(), event))
                    return self._next_ready()  # noqa: ASYNC910  the same
                case _:
                    assert_never(event)
            self.hear()
            return event  # noqa: ASYNC910  the same

    def _next_ready(self) -> ChatEvent:
        event = self._ready.popleft()
        if isinstance(event, Done):
            self.done = event
        return event

    def _last_piece(self, delta: TextDelta | ReasoningDelta) -> TextDelta | ReasoningDelta:
        """What of a delta is within the bound. The next look at the stream fails."""
        kept = delta.text[: max(0, len(delta.text) + self.limits.max_chars - self._chars)]
        if not kept:
            self._check_size()
        return attrs.evolve(delta, text=kept)

    def _check_size(self) -> None:
        limits = self.limits
        if max(self._chars, self._written) > limits.max_chars:
            raise ProviderError(
                f"the response is longer than {limits.max_chars} characters and was cut, so none of its calls runs; "
                "raise max_response_chars if the model needs them",
                retryable=False,
            )
        if max(self._calls, len(self._announced)) > limits.max_calls:
            raise ProviderError(
                f"the response holds more than {limits.max_calls} tool calls, so none of them runs; raise "
                "max_calls_per_response if the model needs them",
                retryable=False,
            )

    async def wait_for_reader(self, capacity: Callable[[], Awaitable[None]]) -> None:
        """Wait for ``capacity``, without counting that as the provider's silence."""
        self.silence.deadline = math.inf
        await capacity()
        self._since_checkpoint = 0
        self._heard = -math.inf
        self.hear()


@enable_ki_protection
async def read_response(
    lifetime: Lifetime, provider: ModelProvider, request: ChatRequest, limits: StreamLimits, response: Response
) -> None:
    """Send ``request`` and collect an answer that no host reads into ``response``: a summary, an extraction.

    Cancellation: the stream is closed at once; ``response`` holds what had arrived.

    Raises:
        AgentError: as for `open_stream`.
    """
    async with open_stream(lifetime, provider, request, limits) as stream:
        while response.done is None and (event := await stream.next()) is not None:
            match event:
                case TextDelta() | ReasoningDelta():
                    response.add(event)
                case ToolCall():
                    response.add_call(event, event.call_id)
                case Progress(usage=TokenUsage() as usage):
                    response.reported = usage
                case Done():
                    response.done = event


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


_END: Final = object()
# No character below is half of one; the few above that are whole take the way round.
_HALF: Final = "\ud800"
_TICK: Final = 0.001


@disable_ki_protection
async def _next(items: AsyncIterator[Any]) -> Any:
    return await anext(items, _END)


def _provider_error(provider: ModelProvider, error: UserCodeError) -> AgentError:
    if isinstance(error.cause, AgentError):
        return error.cause.reported_by(ErrorSource.PROVIDER)
    logger.debug("provider %r raised", provider.id, exc_info=error.cause)
    return ProviderError(f"provider {provider.id!r} raised {error}", retryable=True)


@attrs.frozen(eq=False)
class _Guarded:
    """A context manager of the host's, entered and left as user code."""

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

"""OpenTelemetry spans for turns, requests, tools, memories and storage. Extra ``otel``: `opentelemetry-api` alone.

    tracing = Tracing(agent_name="shop")
    builder = AgentBuilder(config).register_model_provider(tracing.provider(provider)).register_tool(tracing.tool(pay))
    async with builder.build() as agent, await agent.new_session() as session:
        async with tracing.turn(session, "Two lamps, please") as turn:
            async for event in turn: ...

Names are those of the GenAI conventions as of 2026-11: they are not stable yet, and stand here as literals. A span is
ended whatever stops what it covers. None is held across a ``yield``: a generator that is left early would leave its
span behind as the current one (opentelemetry-python issue 2606), so a stream's span is never current, except within one
``__anext__``.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, TypeVar, cast

import attrs
import trio

from ..core.ports.protocols import MemoryStorage, ModelProvider, SessionStorage, ToolHandler, ToolInput
from ..core.tools.declaration import ThreadFunction, Tool
from ..messages.chat import ChatEvent, ChatRequest, Done, TextDelta, TokenUsage
from ..messages.codec import to_json
from ..messages.content import Content, UserInput
from ..messages.errors import AgentError
from ..messages.events import (
    AgentEvent,
    ContextCompacted,
    ErrorEvent,
    OutputRejected,
    RetryScheduled,
    ToolOutput,
    TurnCancelled,
    TurnResult,
    TurnStatus,
)
from ..messages.history import ToolCall
from .extras import import_extra

__all__ = ["TracedTurn", "Tracing"]

P = TypeVar("P")

_FINAL = (TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED)


class _Session(Protocol):
    """What is needed of a session."""

    @property
    def id(self) -> str:
        """Its id."""

    async def send_message(self, input: UserInput | Content, *, output: Any = None, queue: bool = False) -> Any:
        """Start a turn."""


class Tracing:
    """Wraps parts before they are registered, and opens the span of a turn.

    Synopsis::

        tracing = Tracing(agent_name="shop")
        builder.register_model_provider(tracing.provider(provider))
        async with tracing.turn(session, "hello") as turn: ...

    Every method that wraps gives an object that may be registered in the place of the wrapped one. Sync; safe to use
    from several agents at once.

    Args:
        agent_name: ``gen_ai.agent.name`` of turns.
        tracer_provider: where spans go; by default the global one.
        content: record what is said too: messages, arguments and results. Off by default, since traces are read by
            more people than conversations are.

    Raises:
        InvalidConfig: OpenTelemetry's API is not installed.
    """

    def __init__(self, *, agent_name: str = "youyou", tracer_provider: Any = None, content: bool = False) -> None:
        import_extra("opentelemetry.trace", "otel")
        from opentelemetry import trace

        self._trace = trace
        self._tracer = trace.get_tracer("youyou", tracer_provider=tracer_provider)
        self._agent_name = agent_name
        self._content = content
        self._turns: dict[str, Any] = {}

    def turn(
        self, session: _Session, input: UserInput | Content, *, output: Any = None, queue: bool = False
    ) -> TracedTurn:
        """A turn with its span: ``async with tracing.turn(session, "hello") as turn``.

        Sends the message on the way in; the span is the parent of all that the turn sets off, and ends when the block
        is left.
        """
        return TracedTurn(self, session, input, output, queue)

    def provider(self, provider: ModelProvider) -> ModelProvider:
        """``provider`` with a span ``chat MODEL`` for each request, those of compaction and memories included."""
        return cast(ModelProvider, _Provider(provider, self))

    def tool(self, tool: ToolHandler) -> ToolHandler:
        """``tool`` with a span ``execute_tool NAME`` for each call; a plain function's is in its thread."""
        if not isinstance(tool, Tool):
            return cast(ToolHandler, _ToolHandler(tool, self))
        execute = tool.execute
        if isinstance(execute, ThreadFunction):
            return attrs.evolve(tool, execute=attrs.evolve(execute, call=_in_thread(self, tool.name, execute.call)))

        async def traced(input: ToolInput) -> ToolOutput:
            with self._tool_span(tool.name, input) as done:
                return done(await execute(input))

        return attrs.evolve(tool, execute=traced)

    def session_storage(self, storage: SessionStorage) -> SessionStorage:
        """``storage`` with spans for reading and writing; those of a turn's session are below the turn."""
        return cast(SessionStorage, _Storage(storage, self, ("save_events", "load_session", "delete_session")))

    def memory_storage(self, storage: MemoryStorage) -> MemoryStorage:
        """``storage`` with spans for searching and saving."""
        return cast(MemoryStorage, _Storage(storage, self, ("search", "save", "delete")))

    @contextmanager
    def _tool_span(self, name: str, input: ToolInput) -> Iterator[Callable[[ToolOutput], ToolOutput]]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": input.call_id,
            "gen_ai.tool.type": "function",
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = to_json(dict(input.arguments))
        with self._span(f"execute_tool {name}", attributes) as span:

            def done(output: ToolOutput) -> ToolOutput:
                if self._content:
                    span.set_attribute("gen_ai.tool.call.result", output.content)
                if output.is_error:
                    self._failed(span, "tool_error", output.content if self._content else "")
                return output

            yield done

    @contextmanager
    def _span(self, name: str, attributes: Mapping[str, Any], parent: Any = None) -> Iterator[Any]:
        """A span that is the current one within the block. Only for blocks of a coroutine or a function."""
        context = None if parent is None else self._trace.set_span_in_context(parent)
        with self._tracer.start_as_current_span(
            name, context, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                self._raised(span, error)
                raise

    def _raised(self, span: Any, error: BaseException) -> None:
        if isinstance(error, trio.Cancelled):
            # Somebody wanted it so: it is not an error of what was cancelled.
            span.set_attribute("youyou.cancelled", True)
        else:
            code = error.code if isinstance(error, AgentError) else type(error).__name__
            self._failed(span, str(code), str(error) if self._content else "")

    def _failed(self, span: Any, kind: str, text: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.StatusCode.ERROR, text or None)


class TracedTurn:
    """A running turn whose span ends with the block. Has what a `youyou.RunningTurn` has.

    Synopsis::

        async with tracing.turn(session, "hello") as turn:
            async for event in turn: ...
            result = await turn.result()

    Entered and left by one task, as any ``async with`` block. Leaving stops the turn if it runs, as it does for a
    `youyou.RunningTurn`.
    """

    def __init__(
        self, tracing: Tracing, session: _Session, input: UserInput | Content, output: Any, queue: bool
    ) -> None:
        self._tracing = tracing
        self._session = session
        self._input = input
        self._output = output
        self._queue = queue
        self._turn: Any = None
        self._span: Any = None
        self._token: Any = None
        self._result: TurnResult | None = None

    async def __aenter__(self) -> TracedTurn:
        """Send the message.

        Cancellation: as of `youyou.Session.send_message`; the span is ended.
        """
        from opentelemetry import context

        tracing = self._tracing
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": tracing._agent_name,
            "gen_ai.conversation.id": self._session.id,
        }
        self._span = tracing._tracer.start_span(f"invoke_agent {tracing._agent_name}", attributes=attributes)
        # The runtime copies the context of the task that sends: from here the span reaches every part of the turn.
        self._token = context.attach(tracing._trace.set_span_in_context(self._span))
        try:
            self._turn = await self._session.send_message(self._input, output=self._output, queue=self._queue)
        except BaseException as error:
            tracing._raised(self._span, error)
            self._end()
            raise
        self._span.set_attribute("youyou.turn.id", self._turn.turn_id)
        tracing._turns[self._session.id] = self._span
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._turn.__aexit__(kind, error, traceback)  # noqa: ASYNC102  bounded by the runtime
        finally:
            if self._turn.status in _FINAL and self._result is None:
                # It has ended: nothing is waited for, and a cancelled block must see how it ended all the same.
                with trio.CancelScope(shield=True):
                    self._result = await self._turn.result()  # noqa: ASYNC102
            self._describe(error)
            self._end()

    def _describe(self, error: BaseException | None) -> None:
        result = self._result
        if result is None:
            if error is not None:
                self._tracing._raised(self._span, error)
            return
        self._span.set_attribute("youyou.turn.status", str(result.status))
        self._span.set_attributes(_usage(result.usage))
        if self._tracing._content:
            self._span.set_attribute("gen_ai.output.messages", result.text)
        if result.status is TurnStatus.FAILED and result.error is not None:
            self._tracing._failed(
                self._span, str(result.error.code), result.error.message if self._tracing._content else ""
            )
        if result.status is TurnStatus.CANCELLED:
            self._span.set_attribute("youyou.cancelled", True)

    def _end(self) -> None:
        from opentelemetry import context

        if self._tracing._turns.get(self._session.id) is self._span:
            del self._tracing._turns[self._session.id]
        self._span.end()
        context.detach(self._token)

    def __aiter__(self) -> TracedTurn:
        return self

    async def __anext__(self) -> AgentEvent:
        event: AgentEvent = await anext(self._turn)
        match event.payload:
            case ContextCompacted(kind=kind, before=before, after=after):
                sizes = {"youyou.tokens.before": before, "youyou.tokens.after": after}
                self._span.add_event("compaction", {"youyou.compaction.kind": kind, **sizes})
            case RetryScheduled(attempt=attempt, delay_ms=delay, error=error):
                retry = {"youyou.attempt": attempt, "youyou.delay_ms": delay, "error.type": str(error.code)}
                self._span.add_event("retry", retry)
            case OutputRejected(attempt=attempt):
                # Without the problems: names of fields in them are content.
                self._span.add_event("output rejected", {"youyou.attempt": attempt})
            case ErrorEvent(error=error):
                self._span.add_event("error", {"error.type": str(error.code)})
            case TurnCancelled(reason=reason):
                self._span.set_attribute("youyou.cancel.reason", reason)
        return event

    async def result(self) -> TurnResult:
        """What is left of the turn, once it has ended. Cancellation: a checkpoint."""
        self._result = await self._turn.result()
        return self._result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_turn"], name)


class _Wrapper:
    """Stands in front of a part; what it does not have itself is the part's, optional methods too."""

    def __init__(self, inner: Any, tracing: Tracing) -> None:
        self._inner = inner
        self._tracing = tracing

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_inner"], name)

    def __repr__(self) -> str:
        return f"traced {self._inner!r}"


class _Provider(_Wrapper):
    def chat(self, request: ChatRequest) -> _Request:
        """One request."""
        return _Request(self._inner, request, self._tracing)


class _Request:
    """One request and its span: a context manager of its own, and the iterator of its events."""

    def __init__(self, provider: ModelProvider, request: ChatRequest, tracing: Tracing) -> None:
        self._provider = provider
        self._request = request
        self._tracing = tracing
        self._span: Any = None
        self._opened: Any = None
        self._iterator: Any = None
        self._began = 0.0
        self._text: list[str] = []
        self._calls: list[ToolCall] = []
        self._first = True

    async def __aenter__(self) -> _Request:
        tracing, request = self._tracing, self._request
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider.id,
            "gen_ai.request.model": request.model_id,
        }
        if request.max_tokens is not None:
            attributes["gen_ai.request.max_tokens"] = request.max_tokens
        if request.temperature is not None:
            attributes["gen_ai.request.temperature"] = request.temperature
        if tracing._content:
            attributes["gen_ai.input.messages"] = f"[{','.join(to_json(message) for message in request.messages)}]"
        self._span = tracing._tracer.start_span(
            f"chat {request.model_id}", kind=tracing._trace.SpanKind.CLIENT, attributes=attributes
        )
        self._began = trio.current_time()
        try:
            with self._current():
                made: Any = self._provider.chat(request)
                if hasattr(made, "__aenter__"):
                    self._opened = made
                    made = await made.__aenter__()
                self._iterator = aiter(made)
        except BaseException as error:
            tracing._raised(self._span, error)
            self._span.end()
            raise
        return self

    def _current(self) -> Any:
        """The span as the current one, while one coroutine runs: spans of an HTTP client come below it."""
        return self._tracing._trace.use_span(
            self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        )

    def __aiter__(self) -> AsyncIterator[ChatEvent]:
        return self

    async def __anext__(self) -> ChatEvent:
        try:
            with self._current():
                event: ChatEvent = await anext(self._iterator)
        except StopAsyncIteration:
            raise
        except BaseException as error:
            self._tracing._raised(self._span, error)
            raise
        self._see(event)
        return event

    def _see(self, event: ChatEvent) -> None:
        if self._first:
            self._first = False
            self._span.set_attribute("gen_ai.response.time_to_first_chunk", trio.current_time() - self._began)
        match event:
            case TextDelta(text=text) if self._tracing._content:
                self._text.append(text)
            case ToolCall():
                self._calls.append(event)
            case Done(usage=usage, stop_reason=reason):
                self._span.set_attribute("gen_ai.response.finish_reasons", [str(reason)])
                if usage is not None:
                    self._span.set_attributes(_usage(usage))

    async def aclose(self) -> None:
        """Close the provider's own iterator."""
        if hasattr(self._iterator, "aclose"):
            await self._iterator.aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        try:
            if self._opened is not None:
                return bool(await self._opened.__aexit__(kind, error, traceback))  # noqa: ASYNC102  the provider's
            return False  # noqa: ASYNC910  nothing of the provider's is left
        finally:
            if error is not None:
                self._tracing._raised(self._span, error)
            if self._calls:
                self._span.set_attribute("youyou.response.tool_calls", len(self._calls))
            if self._tracing._content:
                self._span.set_attribute("gen_ai.output.messages", "".join(self._text))
            self._span.end()


class _ToolHandler(_Wrapper):
    async def execute(self, input: ToolInput) -> ToolOutput:
        """Run it."""
        with self._tracing._tool_span(self._inner.name, input) as done:
            return done(await self._inner.execute(input))


def _in_thread(
    tracing: Tracing, name: str, call: Callable[[ToolInput], ToolOutput]
) -> Callable[[ToolInput], ToolOutput]:
    def traced(input: ToolInput) -> ToolOutput:
        with tracing._tool_span(name, input) as done:
            return done(call(input))

    return traced


class _Storage(_Wrapper):
    """A storage with a span around each of the methods that were named."""

    def __init__(self, inner: Any, tracing: Tracing, methods: Sequence[str]) -> None:
        super().__init__(inner, tracing)
        for name in methods:
            setattr(self, name, self._traced(name, getattr(inner, name)))

    def _traced(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        first = next(iter(inspect.signature(method).parameters), "")

        async def traced(*args: Any, **kwargs: Any) -> Any:
            attributes: dict[str, Any] = {}
            parent = None
            if first == "session_id":
                session_id = args[0] if args else kwargs[first]
                attributes["gen_ai.conversation.id"] = session_id
                # Storages are called by an actor for all sessions, outside of any turn's context.
                parent = self._tracing._turns.get(session_id)
            with self._tracing._span(f"{type(self._inner).__name__}.{name}", attributes, parent):
                return await method(*args, **kwargs)

        return traced


def _usage(usage: TokenUsage) -> dict[str, int]:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }

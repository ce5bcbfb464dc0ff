"""A small language model inside this process: no network, no key (semantics 14; extra ``local``).

    python -m youyou.adapters.local fetch               # once: brings the weights (98 MB) into the cache

    builder.register_model_provider(LocalProvider())    # AgentConfig(default_model="local")

What it is good for, and what not, is in ``docs/local-model.md``. Text streams through the OpenAI adapter from a server
in this process. A request with tools is first put to the model as a page of examples with a grammar; it answers with
one call or chooses words. After a result it answers in words, so there is at most one call for each user input.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs
import trio

from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.chat import ChatEvent, ChatRequest, Done, StopReason, TextDelta, TokenUsage
from ...messages.errors import AgentError, InvalidConfig, ProviderError
from ...messages.history import ToolCall
from ..extras import import_extra
from ..openai import OpenAIProvider
from ..wire.errors import sdk_error
from ..wire.stream import SdkStream
from .server import SLOTS, Address, ServerSettings, serving
from .text import Counted, LineTranslator, Told, in_words
from .tools import (
    ANSWER_GRAMMAR,
    Exchange,
    answer_prompt,
    decision_grammar,
    decision_prompt,
    latest_exchange,
    parse_decision,
    shortlist,
)
from .weights import SMOLLM2, VARIABLE, find_weights

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_CALL_TOKENS = 96
_ANSWER_TOKENS = 160


class LocalProvider:
    """A `ModelProvider` for one model in this process. Its only model is called as the provider: "local".

    Synopsis::

        async with LocalProvider() as provider:             # an agent enters and leaves it by itself
            async with provider.chat(request) as stream:
                async for event in stream: ...

    One provider serves any number of agents with one engine: the first to enter loads it, the last to leave stops it.
    Three requests run at once, the others wait in order of arrival; each can be cancelled at any time.

    Cancellation: leaving a stream closes its connection, and the engine stops decoding at once, reading a prompt
    within about a second.

    Args:
        gguf: a model file; by default what `find_weights` finds.
        id: the id of the provider and of its model.
        context_window: tokens for each of three requests at a time.
        threads: of the engine. More than one only pays with cores to spare.
    """

    def __init__(
        self,
        gguf: str | os.PathLike[str] | None = None,
        *,
        id: str = "local",
        context_window: int = 4096,
        threads: int = 1,
    ) -> None:
        if context_window < 512 or threads < 1:
            raise InvalidConfig("a local model needs context_window >= 512 and threads >= 1")
        self.id = id
        self._gguf = gguf
        self._settings = ServerSettings(context_window, threads)
        self._running: _Running | None = None
        self._stack = AsyncExitStack()
        self._users = 0
        self._changing = trio.Lock()

    def models(self) -> Sequence[ModelInfo]:
        """The one model."""
        return (self._info(ModelCapabilities()),)

    def _info(self, capabilities: ModelCapabilities) -> ModelInfo:
        named = self._gguf or os.environ.get(VARIABLE)
        title = Path(named).stem if named else SMOLLM2.title
        return ModelInfo(self.id, title, self._settings.context_window, capabilities)

    async def __aenter__(self) -> LocalProvider:
        """Load the model, unless another agent has done so.

        Cancellation: a checkpoint; if it raises `trio.Cancelled`, this entry has not happened.

        Raises:
            InvalidConfig: a package or the weights are missing.
            ProviderError: the file cannot be loaded.
        """
        async with self._changing:
            if not self._users:
                async with AsyncExitStack() as stack:
                    self._running = await self._start(stack)
                    self._stack = stack.pop_all()
            self._users += 1
        return self

    async def _start(self, stack: AsyncExitStack) -> _Running:
        sdk = import_extra("openai", "local")
        weights = await trio.to_thread.run_sync(
            find_weights, self._gguf, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
        )
        address = await stack.enter_async_context(serving(weights, self._settings))
        client = _client(sdk, address)
        stack.push_async_callback(_close, client)
        text = OpenAIProvider([self._info(ModelCapabilities(tool_use=False, system_messages=False))], client=client)
        return _Running(sdk, client, text, trio.CapacityLimiter(SLOTS))

    async def __aexit__(  # noqa: ASYNC910  one that is not the last has nothing to wait for
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Counted before any await: a cancelled leaver has left. Nobody can be starting the engine while it has a user.
        self._users -= 1
        if not self._users:
            stack, self._stack, self._running = self._stack, AsyncExitStack(), None
            await stack.aclose()

    def chat(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[ChatEvent]]:
        """One request. See the class for cancellation."""
        if self._running is None:
            raise ProviderError("the local model is not running: use it within 'async with'", retryable=False)
        return self._running.respond(request)


def _client(sdk: ModuleType, address: Address) -> AsyncOpenAI:
    # A proxy named by the environment is for other hosts than this one.
    transport = sdk.DefaultAsyncHttpxClient(trust_env=False)
    client: AsyncOpenAI = sdk.AsyncOpenAI(
        base_url=address.base_url,
        api_key=address.api_key,
        max_retries=0,
        http_client=transport,
        # The engine drops a connection it kept without a word, now and then under the next request.
        default_headers={"Connection": "close"},
    )
    return client


async def _close(client: AsyncOpenAI) -> None:
    with trio.move_on_after(1, shield=True):
        await client.close()


@attrs.frozen(eq=False)
class _Running:
    """What there is while the model runs."""

    sdk: ModuleType
    client: AsyncOpenAI
    text: OpenAIProvider
    places: trio.CapacityLimiter

    @asynccontextmanager
    async def respond(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[ChatEvent]]:
        # The line is kept here and not in the engine: first come, first served, whatever agent it is, and a request
        # that is cancelled while it waits costs nothing. A place is for a request, not for the task that makes it.
        place = object()
        await self.places.acquire_on_behalf_of(place)
        try:
            async with self._respond(request) as stream:
                yield stream
        finally:
            self.places.release_on_behalf_of(place)

    @asynccontextmanager
    async def _respond(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[ChatEvent]]:
        exchange = latest_exchange(request.messages)
        spent = TokenUsage()
        if request.tools and exchange.input and exchange.result is None:
            call, spent = await self._decide(request, exchange)
            if call is not None:
                yield Told(deque((call, Done(spent, StopReason.TOOL_USE))))
                return
        async with self._in_words(request, exchange) as stream:
            yield Counted(stream, spent)

    async def _decide(self, request: ChatRequest, exchange: Exchange) -> tuple[ToolCall | None, TokenUsage]:
        tools = shortlist(request.tools, exchange.input)
        prompt, grammar = decision_prompt(tools, exchange.input), decision_grammar(tools)
        written, usage = "", TokenUsage()
        async with self._complete(prompt, grammar, _CALL_TOKENS) as stream:
            async for event in stream:
                match event:
                    case TextDelta(text=text):
                        written += text
                    case Done(usage=TokenUsage() as usage):
                        pass
        decision = parse_decision(written)
        if decision is None:
            return None, usage
        return ToolCall(f"call_{uuid4().hex[:12]}", decision.tool_name, dict(decision.arguments)), usage

    def _in_words(self, request: ChatRequest, exchange: Exchange) -> SdkStream:
        if exchange.result is not None and request.response_schema is None:
            return self._complete(answer_prompt(exchange), ANSWER_GRAMMAR, request.max_tokens or _ANSWER_TOKENS)
        return self.text.chat(attrs.evolve(request, tools=(), messages=tuple(in_words(request.messages))))

    def _complete(self, prompt: str, grammar: str, most: int) -> SdkStream:
        async def open_stream() -> Any:
            manager = self.client.completions.with_streaming_response.create(
                model="local",
                prompt=prompt,
                max_tokens=most,
                temperature=0,
                stream=True,
                stream_options={"include_usage": True},
                extra_body={"grammar": grammar, "repeat_penalty": 1.0, "cache_prompt": True},
            )
            return await manager.__aenter__()

        return SdkStream(open_stream, LineTranslator(), self._explain)

    def _explain(self, error: Exception, streaming: bool) -> AgentError:
        return sdk_error(self.sdk, error, streaming=streaming)

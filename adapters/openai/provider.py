"""OpenAI and every server that speaks its API, on the official SDK (semantics 4, 14; extra ``openai``).

    OpenAIProvider(["gpt-5-mini"])                                              # key from OPENAI_API_KEY
    OpenAIProvider(["qwen3"], base_url="http://127.0.0.1:8000/v1")              # a server that needs no key
    OpenAIProvider([ModelInfo("gpt-5", "GPT-5", 400_000)], api="responses")

Importing this module is cheap; the SDK is imported when a provider is made. The SDK's own retries are off: the
runtime's policy rules. The body of a request and the meaning of its answer are next door, in ``openai_chat`` and
``openai_responses``.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.chat import ChatRequest
from ...messages.errors import AgentError, InvalidConfig
from ..extras import import_extra
from ..wire.client import ClientHolder, model_infos
from ..wire.errors import sdk_error
from ..wire.stream import SdkStream, Translator
from .chat import ChatTranslator, chat_body
from .responses import ResponsesTranslator, responses_body

if TYPE_CHECKING:
    from openai import AsyncOpenAI, BaseModel

_WINDOW = 128_000


class OpenAIProvider:
    """A `ModelProvider` for the chat completions or the responses API.

    Synopsis::

        async with OpenAIProvider(["gpt-5-mini"]) as provider:      # an agent enters and leaves it by itself
            async with provider.chat(request) as stream:
                async for event in stream: ...

    Args:
        models: what to offer. A bare id stands for a window of 128 000 tokens, with tools, and with vision unless
            ``base_url`` is given; say what is true of yours with a `ModelInfo`. ``system_messages=False`` suits
            servers that want system text only at the start: later notes then travel as user-role text.
        id: the provider's id.
        client: an ``AsyncOpenAI`` of your own. It is not closed, and its retries are not used.
        base_url: another server, by default ``OPENAI_BASE_URL``; then no key is needed.
        api_key: by default ``OPENAI_API_KEY``.
        api: which of the two APIs to speak.

    Raises:
        InvalidConfig: the SDK is not installed, there is no key, or ``api`` is neither.
    """

    def __init__(
        self,
        models: Iterable[ModelInfo | str],
        *,
        id: str = "openai",
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        api: Literal["chat", "responses"] = "chat",
    ) -> None:
        if api not in ("chat", "responses"):
            raise InvalidConfig(f"api={api!r} is neither 'chat' nor 'responses'")
        self.id = id
        self._api = api
        self._sdk = import_extra("openai")
        self._base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        official = self._base_url is None and client is None
        self._models = model_infos(models, _WINDOW, ModelCapabilities(vision=official))
        self._capabilities = {model.id: model.capabilities for model in self._models}
        self._api_key = api_key or os.environ.get("OPENAI_API_KEY") or (None if official else "none")
        if self._api_key is None:
            raise InvalidConfig("no key for OpenAI: set OPENAI_API_KEY, or pass api_key=, base_url= or client=")
        given = None if client is None else client.with_options(max_retries=0)
        self._client = ClientHolder(self._new_client, given)

    def _new_client(self) -> AsyncOpenAI:
        client: AsyncOpenAI = self._sdk.AsyncOpenAI(api_key=self._api_key, base_url=self._base_url, max_retries=0)
        return client

    def models(self) -> Sequence[ModelInfo]:
        """The models on offer."""
        return self._models

    def chat(self, request: ChatRequest) -> SdkStream:
        """One request. Nothing is sent before the stream is entered; see `SdkStream` for cancellation."""
        capabilities = self._capabilities.get(request.model_id, ModelCapabilities())
        client = self._client.get()
        if self._api == "responses":
            return self._stream(client.responses.create, responses_body(request, capabilities), ResponsesTranslator())
        body = chat_body(request, capabilities, limit_name=_limit_name(client.base_url.host))
        return self._stream(client.chat.completions.create, body, ChatTranslator())

    def _stream(self, create: Any, body: dict[str, Any], translator: Translator) -> SdkStream:
        async def open_stream() -> Any:
            response = await create(**body)
            return response if body["stream"] else _Whole(response)

        return SdkStream(open_stream, translator, self._explain)

    def _explain(self, error: Exception, streaming: bool) -> AgentError:
        return sdk_error(self._sdk, error, streaming=streaming)

    async def __aenter__(self) -> OpenAIProvider:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()


def _limit_name(host: str) -> str:
    """OpenAI's newer models refuse ``max_tokens``, many other servers know nothing else."""
    return "max_completion_tokens" if host.endswith(("openai.com", "azure.com")) else "max_tokens"


class _Whole:
    """The answer of a model that does not stream, told as a stream of one event."""

    def __init__(self, answer: BaseModel) -> None:
        self._answer = answer
        self.response = self

    async def aiter_bytes(self) -> AsyncIterator[bytes]:  # noqa: ASYNC900, ASYNC911  holds no scope, waits for nothing
        """The one event."""
        yield b"data: " + json.dumps(self._answer.to_dict(mode="json", warnings=False)).encode() + b"\n\n"  # noqa: ASYNC911  the same

    async def close(self) -> None:
        """Nothing is open."""

"""OpenAI and every server that speaks its API, on the official SDK (semantics 4, 14; extra ``openai``).

    OpenAIProvider(["gpt-5-mini"])                                              # key from OPENAI_API_KEY
    OpenAIProvider(["qwen3"], base_url="http://127.0.0.1:8000/v1")              # a server that needs no key
    OpenAIProvider([ModelInfo("gpt-5", "GPT-5", 400_000)], api="responses")

Importing this module is cheap; the SDK is imported when a provider is made. The SDK's own retries are off: the
runtime's policy rules. What is sent and what an answer means is next door, a body and an events module for each API.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.chat import ChatRequest
from ...messages.errors import InvalidConfig
from ..extras import import_extra
from ..wire.client import checked_key
from ..wire.endpoint import SdkProvider
from ..wire.ids import Ids
from ..wire.origin import Origin
from ..wire.stream import SdkStream, Translator
from . import chat_events, responses_events
from .chat_body import chat_body
from .responses_body import responses_body
from .thoughts import HANDED_BACK

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_WINDOW = 128_000


class OpenAIProvider(SdkProvider):
    """A `ModelProvider` for the chat completions or the responses API.

    Synopsis::

        async with OpenAIProvider(["gpt-5-mini"]) as provider:      # an agent enters and leaves it by itself
            async with provider.chat(request) as stream:
                async for event in stream: ...

    One provider serves any number of agents: they share its client, which closes when the last of them has left.

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
        InvalidConfig: the SDK is not installed, there is no key or one that no header can hold, or ``api`` is neither.
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
        sdk = import_extra("openai")
        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        official = base_url is None and client is None
        key = checked_key(api_key or os.environ.get("OPENAI_API_KEY")) or (None if official else "none")
        if key is None:
            raise InvalidConfig("no key for OpenAI: set OPENAI_API_KEY, or pass api_key=, base_url= or client=")
        self._api = api
        super().__init__(
            sdk,
            "AsyncOpenAI",
            models,
            (_WINDOW, ModelCapabilities(vision=official)),
            id=id,
            client=client,
            api_key=key,
            base_url=base_url,
            fields=HANDED_BACK,
        )

    def chat(self, request: ChatRequest) -> SdkStream:
        """One request. Nothing is sent before the stream is entered; see `SdkStream` for cancellation."""
        capabilities = self._capabilities.get(request.model_id, ModelCapabilities())
        client, base_url = self._endpoint.holder.get(), self._endpoint.base_url
        if self._api == "responses":
            origin = Origin(responses_events.API, self.id, base_url, request.model_id)
            body = responses_body(request, capabilities, origin)
            send = partial(client.responses.with_streaming_response.create, input=[])
            return self._stream(send, body, responses_events.ResponsesTranslator(origin))
        origin = Origin(chat_events.API, self.id, base_url, request.model_id)
        host = urlsplit(base_url).hostname or ""
        body = chat_body(request, capabilities, origin, limit_name=_limit_name(host), ids=_ids(host))
        send = partial(client.chat.completions.with_streaming_response.create, messages=[])
        return self._stream(send, body, chat_events.ChatTranslator(origin))

    def _stream(self, create: Any, body: dict[str, Any], translator: Translator) -> SdkStream:
        # The response comes unread and unparsed: it is taken for what it is, not for what was asked for. The body goes
        # past the SDK's check of types, which looks at each item of the history against each type that it may have:
        # half a second for fifty items.
        def send(body: dict[str, Any]) -> Any:
            return create(model=body["model"], stream=body["stream"], extra_body=body)

        return SdkStream(partial(self._endpoint.open, send, body), translator, self._endpoint.explain)


def _limit_name(host: str) -> str:
    """OpenAI's newer models refuse ``max_tokens``, many other servers know nothing else."""
    return "max_completion_tokens" if host.endswith(("openai.com", "azure.com")) else "max_tokens"


def _ids(host: str) -> Ids:
    """OpenAI takes 40 characters; Mistral's own API nine letters and digits, no more and no less."""
    return Ids(longest=9, exactly=True, plain=True) if host.endswith("mistral.ai") else Ids(longest=40)

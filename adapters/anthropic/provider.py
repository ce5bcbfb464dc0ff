"""Claude, on Anthropic's official SDK (semantics 4, 14; extra ``anthropic``).

    AnthropicProvider(["claude-sonnet-4-6"])            # key from ANTHROPIC_API_KEY

Importing this module is cheap; the SDK is imported when a provider is made. The SDK's own retries are off: the
runtime's policy rules. What is sent and what an answer means is next door, in ``request`` and ``events``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.chat import ChatRequest
from ...messages.errors import AgentError, InvalidConfig
from ..extras import import_extra
from ..wire.client import checked_key
from ..wire.endpoint import SdkProvider
from ..wire.origin import Origin
from ..wire.stream import SdkStream
from .events import MessageTranslator
from .request import API, messages_body

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_WINDOW = 200_000
_CLAUDE = ModelCapabilities(vision=True, system_messages=False)


class AnthropicProvider(SdkProvider):
    """A `ModelProvider` for the messages API.

    Synopsis::

        async with AnthropicProvider(["claude-sonnet-4-6"]) as provider:    # an agent enters and leaves it by itself
            async with provider.chat(request) as stream:
                async for event in stream: ...

    One provider serves any number of agents: they share its client, which closes when the last of them has left.

    ``reasoning_effort`` turns thinking on; its blocks and signatures come back in ``Done.provider_data`` and are sent
    again with the message they belong to. ``max_tokens``, which this API demands, is 8192 unless the request says more.

    Args:
        models: what to offer. A bare id stands for a window of 200 000 tokens, with tools and vision.
        id: the provider's id.
        client: an ``AsyncAnthropic`` of your own. It is not closed, and its retries are not used.
        api_key: by default what the SDK finds, first of all ``ANTHROPIC_API_KEY``.
        base_url: another server that speaks this API.

    Raises:
        InvalidConfig: the SDK is not installed, or the key is one that no header can hold.
    """

    def __init__(
        self,
        models: Iterable[ModelInfo | str],
        *,
        id: str = "anthropic",
        client: AsyncAnthropic | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> None:
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
            checked_key(os.environ.get(name))
        super().__init__(
            import_extra("anthropic"),
            "AsyncAnthropic",
            models,
            (_WINDOW, _CLAUDE),
            id=id,
            client=client,
            api_key=checked_key(api_key),
            base_url=base_url or os.environ.get("ANTHROPIC_BASE_URL"),
        )

    def chat(self, request: ChatRequest) -> SdkStream:
        """One request. Nothing is sent before the stream is entered; see `SdkStream` for cancellation."""
        capabilities = self._capabilities.get(request.model_id, _CLAUDE)
        origin = Origin(API, self.id, self._endpoint.base_url, request.model_id)
        return SdkStream(
            partial(
                self._endpoint.open,
                self._send,
                messages_body(request, capabilities, origin, self._endpoint.sdk.transform_schema),
            ),
            MessageTranslator(origin),
            self._explain,
        )

    def _send(self, body: dict[str, Any]) -> Any:
        required = {name: body[name] for name in ("model", "max_tokens", "stream")}
        # The SDK's own parameters come and go with its versions (temperature went); the API takes them all. And its
        # check of types would look at the whole history with each request.
        create = self._endpoint.holder.get().messages.with_streaming_response.create
        return create(**required, messages=[], extra_body=body)

    def _explain(self, error: Exception, streaming: bool) -> AgentError:
        if isinstance(error, TypeError) and "authentication method" in str(error):  # the SDK looks for a key only now
            return InvalidConfig("no key for Anthropic: set ANTHROPIC_API_KEY, or pass api_key= or client=")
        return self._endpoint.explain(error, streaming)

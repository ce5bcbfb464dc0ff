"""One server behind an SDK: how requests are sent to it, and what its errors say (semantics 4, 14).

Knows no API: a provider, which is an `SdkProvider`, gives it the body and a translator. Owns what was learned of the
server (which options it refuses) and what must never be told (its key).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from types import ModuleType, TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import attrs

from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.errors import AgentError
from .client import ClientHolder, model_infos
from .errors import sdk_error
from .options import SETTINGS, refused_options, without
from .proxy import is_loopback, proxy_for
from .stream import OpenedResponse

logger: logging.Logger = logging.getLogger("youyou.providers")

_REFUSED_WITH = (400, 404, 422)
_MOST_TRIES = 4


@attrs.define(eq=False)
class Endpoint:
    """A server. ``fields`` are names within messages that it may refuse to take back."""

    sdk: ModuleType
    holder: ClientHolder
    fields: tuple[str, ...] = ()
    _refused: defaultdict[str, set[str]] = attrs.field(factory=lambda: defaultdict(set))

    @property
    def base_url(self) -> str:
        """Where the client sends its requests."""
        return str(self.holder.get().base_url)

    async def open(
        self, send: Callable[[dict[str, Any]], AbstractAsyncContextManager[OpenedResponse]], body: dict[str, Any]
    ) -> OpenedResponse:
        """Send, and send again without what is refused by name: a refused request has cost nothing."""
        refused = self._refused[body["model"]]
        for _ in range(_MOST_TRIES):
            try:
                # Left by `SdkStream`, which closes the response by itself.
                return await send(without(body, refused)).__aenter__()
            except self.sdk.APIStatusError as error:
                more = refused_options(f"{error.message} {error.body}", body, self.fields) - refused
                if error.status_code not in _REFUSED_WITH or not more:
                    raise
                refused |= more
                asked = sorted(more & set(SETTINGS))
                logger.log(
                    logging.WARNING if asked else logging.INFO,
                    "the server at %s refuses %s for model %r; sent without from now on",
                    urlsplit(self.base_url).hostname,
                    ", ".join(sorted(more)),
                    body["model"],
                )
        return await send(without(body, refused)).__aenter__()

    def explain(self, error: Exception, streaming: bool) -> AgentError:
        """An exception of the SDK or its transport as an error of youyou, without the key."""
        through = proxy_for(self.base_url) if self.holder.ours else None
        return self._redacted(sdk_error(self.sdk, error, streaming=streaming, through=through))

    def _redacted(self, error: AgentError) -> AgentError:
        message = error.message
        for secret in self._secrets():
            message = message.replace(secret, "***")
        if message == error.message:
            return error
        return AgentError.of(
            error.code, message, retryable=error.retryable, retry_after_ms=getattr(error, "retry_after_ms", None)
        )

    def _secrets(self) -> Iterable[str]:
        client = self.holder.get()
        password = urlsplit(self.base_url).password
        given = (getattr(client, "api_key", None), getattr(client, "auth_token", None), password)
        # A stand-in of a few letters ("none", "k") is not a secret, and is part of many words.
        return (secret for secret in given if isinstance(secret, str) and len(secret) > 5)


def transport_for(sdk: ModuleType, base_url: str | None) -> Any:
    """The transport of a client of our own: one that no proxy stands before if the server is on this machine."""
    return sdk.DefaultAsyncHttpxClient(trust_env=False) if base_url and is_loopback(base_url) else None


class SdkProvider:
    """A server behind an SDK. Entered once for each agent that uses it; the last to leave closes our own client."""

    def __init__(
        self,
        sdk: ModuleType,
        client_class: str,
        models: Iterable[ModelInfo | str],
        usual: tuple[int, ModelCapabilities],
        *,
        id: str,
        client: Any,
        api_key: str | None,
        base_url: str | None,
        fields: tuple[str, ...] = (),
    ) -> None:
        self.id = id
        self._client_class = client_class
        self._models = model_infos(models, *usual)
        self._capabilities = {model.id: model.capabilities for model in self._models}
        self._api_key = api_key
        self._base_url = base_url
        given = None if client is None else client.with_options(max_retries=0)
        self._endpoint = Endpoint(sdk, ClientHolder(self._new_client, given), fields)

    def _new_client(self) -> Any:
        sdk = self._endpoint.sdk
        return getattr(sdk, self._client_class)(
            api_key=self._api_key,
            base_url=self._base_url,
            max_retries=0,
            http_client=transport_for(sdk, self._base_url),
        )

    def models(self) -> Sequence[ModelInfo]:
        """The models on offer."""
        return self._models

    async def __aenter__(self) -> Self:
        self._endpoint.holder.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._endpoint.holder.leave()  # noqa: ASYNC102  leaves before it waits; bounds itself

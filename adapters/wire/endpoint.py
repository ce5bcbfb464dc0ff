"""One server behind an SDK: how requests are sent to it, and what its errors say (semantics 4, 14).

Knows no API: a provider gives it the body and a translator. Owns what was learned of the server (which options it
refuses) and what must never be told (its key).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import attrs

from ...messages.errors import AgentError
from .client import ClientHolder
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

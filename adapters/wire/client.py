"""Whose client it is: the host's is used and never closed, one of our own is made when needed (semantics 14).

Also the small print of the providers' constructors: models by id, and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import trio

from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.errors import InvalidConfig

_CLOSE_SECONDS = 1.0


def model_infos(
    models: Iterable[ModelInfo | str], window: int, capabilities: ModelCapabilities
) -> tuple[ModelInfo, ...]:
    """Models as they were given; a bare id gets ``window`` tokens and ``capabilities``."""
    # A string is an iterable of strings: of one letter each.
    if isinstance(models, str):
        raise InvalidConfig(f"the models are the string {models!r}; pass a list of ids: [{models!r}]")
    return tuple(ModelInfo(model, model, window, capabilities) if isinstance(model, str) else model for model in models)


def checked_key(key: str | None) -> str | None:
    """``key``, if it can stand in a header.

    Raises:
        InvalidConfig: it holds a control character, most often the line break of the file it was read from. The
            transport would quote it in its own error.
    """
    if key is not None and any(ord(sign) < 32 or ord(sign) == 127 for sign in key):
        raise InvalidConfig("the API key holds a line break or another control character; pass key.strip()")
    return key


@attrs.define(eq=False)
class ClientHolder:
    """An SDK client, who uses it, and who closes it: the last one to leave."""

    _make: Callable[[], Any]
    _given: Any = None
    _own: Any = attrs.field(init=False, default=None)
    _users: int = attrs.field(init=False, default=0)

    @property
    def ours(self) -> bool:
        """Whether the client is made here."""
        return self._given is None

    def get(self) -> Any:
        """The client to use now."""
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = self._make()
        return self._own

    def enter(self) -> None:
        """One more uses the client."""
        self._users += 1

    async def leave(self) -> None:
        """One less; the last one closes a client of our own, and a later `get` makes a new one.

        Cancellation: the connections are closed all the same, within a second.
        """
        self._users = max(0, self._users - 1)
        if self._users:
            return
        own, self._own = self._own, None
        if own is not None:
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await own.close()

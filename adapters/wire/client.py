"""Whose client it is: the host's is used and never closed, one of our own is made when needed (semantics 14).

Also the small print of the providers' constructors: models by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import trio

from ...core.ports.protocols import ModelCapabilities, ModelInfo

_CLOSE_SECONDS = 1.0


def model_infos(
    models: Iterable[ModelInfo | str], window: int, capabilities: ModelCapabilities
) -> tuple[ModelInfo, ...]:
    """Models as they were given; a bare id gets ``window`` tokens and ``capabilities``."""
    return tuple(ModelInfo(model, model, window, capabilities) if isinstance(model, str) else model for model in models)


@attrs.define(eq=False)
class ClientHolder:
    """An SDK client and who closes it."""

    _make: Callable[[], Any]
    _given: Any = None
    _own: Any = attrs.field(init=False, default=None)

    def get(self) -> Any:
        """The client to use now."""
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = self._make()
        return self._own

    async def aclose(self) -> None:
        """Close our own client, if there is one; a later `get` makes a new one.

        Cancellation: the connections are closed all the same, within a second.
        """
        own, self._own = self._own, None
        if own is not None:
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await own.close()

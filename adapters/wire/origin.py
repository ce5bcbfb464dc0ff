"""Where an answer came from, so that what only its maker can read goes back to its maker alone (semantics 4).

    origin = Origin("anthropic-messages", "anthropic", "https://api.example.com", "claude-x")
    kept = origin.mark({"content": [...]})          # what `Done` and `ToolCall` carry as ``provider_data``
    origin.own(kept)                                # the same dict; None for what another origin left

Thoughts, signatures and encrypted items of one server are refused, or misread, by another one: a change of the model's
provider, of the kind of API, of the address or of the model itself sends neutral history.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import attrs

from ...messages.jsonvalue import freeze


def _address(url: str) -> str:
    """Without user, password and query: a mark is stored."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"


@attrs.frozen
class Origin:
    """The kind of API, the id of the provider, the base URL and the model."""

    api: str
    provider: str = ""
    base_url: str = attrs.field(default="", converter=_address)
    model: str = ""

    def mark(self, data: dict[str, Any]) -> Any:
        """``data`` as provider data; None if there is none, or if it cannot be kept (too deep, no number)."""
        if not data:
            return None
        try:
            return freeze({**data, "from": attrs.asdict(self)})
        except (TypeError, ValueError, RecursionError):
            # A server's nonsense in a field that is only kept costs that field, never the answer.
            return None

    def own(self, data: Any) -> Any:
        """``data`` if this origin left it, else None."""
        return data if isinstance(data, dict) and data.get("from") == attrs.asdict(self) else None

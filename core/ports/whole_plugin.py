"""A plugin with everything that it left out (semantics 2).

plugin = WholePlugin(registered)
await plugin.initialize(config)         # does nothing if the plugin has no initialize
"""

from __future__ import annotations

from typing import Any

import attrs

from .protocols import Plugin, PluginContext


@attrs.frozen
class WholePlugin:
    """What the runtime calls. Its methods are also the form that those of a plugin must have."""

    plugin: Plugin

    @property
    def id(self) -> str:
        """The plugin's own."""
        return self.plugin.id

    @property
    def display_name(self) -> str:
        """For people."""
        name: str = getattr(self.plugin, "display_name", self.id)
        return name

    @property
    def description(self) -> str:
        """For the system prompt. Empty: the plugin is not mentioned there."""
        text: str = getattr(self.plugin, "description", "")
        return text

    # No checkpoint of its own: the runtime's task for a plugin waits in any case.
    async def initialize(self, config: Any) -> None:  # noqa: ASYNC910  see above
        """Once, when the agent is entered."""
        if (initialize := getattr(self.plugin, "initialize", None)) is not None:
            await initialize(config)

    def apply(self, ctx: PluginContext) -> None:
        """Tap the hooks."""
        if (apply := getattr(self.plugin, "apply", None)) is not None:
            apply(ctx)

    async def shutdown(self) -> None:  # noqa: ASYNC910  see above
        """Once, when the agent is left."""
        if (shutdown := getattr(self.plugin, "shutdown", None)) is not None:
            await shutdown()

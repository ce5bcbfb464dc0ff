"""Asks a person before a tool runs: a plugin on the hook that every call passes.

approval = Approval(ask)                    # ask: async, a call as text -> may it run?
builder.register_plugin(approval)
approval.asking = True
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from ...core.ports.protocols import PluginContext
from ...messages.hook_payloads import Abort, BeforeToolUse, HookResult
from ..base.wording import call_text

CHOICES = "y: run it, n: refuse it, a: run all from now on"
"""What the user may answer."""


@attrs.define(eq=False)
class Approval:
    """Lets a call run once ``ask`` has allowed it, while ``asking`` is set. Calls that run at once may ask at once."""

    ask: Callable[[str], Awaitable[bool]] | None = None
    asking: bool = False
    id: str = "approval"
    display_name: str = "Approval"
    description: str = "The user may refuse a tool call. Do not repeat one that was refused."

    def toggle(self) -> str:
        """Ask from now on, or ask no more; says which."""
        self.asking = not self.asking
        return "every tool is asked for" if self.asking else "tools run unasked"

    async def initialize(self, config: Any) -> None:
        """Nothing to prepare."""

    def apply(self, ctx: PluginContext) -> None:
        """Listen to every call."""
        ctx.tap(BeforeToolUse, self._before)

    async def _before(self, event: BeforeToolUse) -> HookResult:
        if not self.asking or self.ask is None:
            return None
        allowed = await self.ask(call_text(event.tool_name, event.arguments))
        return None if allowed else Abort("the user refused it")

    async def shutdown(self) -> None:
        """Nothing to close."""

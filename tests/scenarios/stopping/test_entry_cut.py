"""Entering an agent that is cut while one of its parts is still initialising."""

from __future__ import annotations

import pytest
import trio
import youyou as y
from youyou.testing import ScriptedProvider


class Hanging:
    """A plugin whose ``initialize`` never returns by itself."""

    id, display_name, description = "hanging", "Hanging", "Never ready."

    async def initialize(self, config):
        await trio.sleep_forever()

    def apply(self, ctx):
        """Nothing to tap."""

    async def shutdown(self):
        """Nothing to do."""


async def test_an_entry_that_is_cut_ends_at_the_grace_and_not_at_the_end_of_the_closing_time(autojump_clock):
    """Nothing of the part that is not ready needs the time that is meant for closing."""
    config = y.AgentConfig("scripted", shutdown_grace_ms=1_000, closing_ms=8_000)
    builder = y.AgentBuilder(config).register_model_provider(ScriptedProvider([])).register_plugin(Hanging())
    begun = trio.current_time()
    with trio.move_on_after(3):
        async with builder.build():
            pytest.fail("it was never ready")

    assert 4.0 == round(trio.current_time() - begun, 3)

"""``youyou profiles``: what a front end needs to know, as JSON (semantics 13, L3). Of this command line's own agent, or
of the builder that ``module:name`` names - a builder, or a function that returns one.
"""

from __future__ import annotations

import msgspec

from ...messages.codec import converter
from ..agent.assembly import agent_builder
from ..agent.builder_loading import load_builder
from ..agent.demo_model import DemoModel
from ..base.exits import OK
from ..base.output import Output
from ..base.signals import Stops


async def profiles(name: str | None, resolved: bool, stops: Stops) -> int:
    """Print them."""
    builder = agent_builder(DemoModel()) if name is None else load_builder(name)
    async with builder.build() as agent:
        found = converter.unstructure(agent.profiles(resolved=resolved))
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    await Output(stops).write(text + "\n")
    return OK

"""``youyou profiles``: what a front end needs to know, as JSON (semantics 13, L3). Of this command line's own agent, or
of the builder that ``module:name`` names - a builder, or a function that returns one.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable

import msgspec

from ...builder import AgentBuilder, HasProvider
from ...messages.codec import converter
from ..agent.assembly import agent_builder
from ..agent.demo_model import DemoModel
from ..base.exits import OK, UsageError
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


def load_builder(name: str) -> AgentBuilder[HasProvider]:
    """The builder that ``module:name`` names.

    Raises:
        UsageError: there is none.
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise UsageError(f"{name!r} is not 'module:builder', for example 'shop.agent:builder'")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"cannot find {name!r}: {error}") from error
    if callable(found) and not _callable_bare(found):
        raise UsageError(f"{name!r} cannot be called without arguments; name a builder, or a function that makes one")
    made = found() if callable(found) else found
    if not isinstance(made, AgentBuilder):
        raise UsageError(f"{name!r} is no AgentBuilder and returns none")
    return made


def _callable_bare(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind()
    except ValueError:  # a builtin that tells nothing
        return True
    except TypeError:
        return False
    return True

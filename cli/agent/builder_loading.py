"""The `AgentBuilder` of somebody's own program, named on the command line as ``module:name``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable

from ...builder import AgentBuilder, HasProvider
from ..base.exits import UsageError


def load_builder(name: str) -> AgentBuilder[HasProvider]:
    """The builder that ``module:name`` names: a builder, or a function without arguments that returns one.

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
        raise UsageError(f"{name!r} is not an AgentBuilder and does not return one")
    return made


def _callable_bare(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind()
    except ValueError:  # a builtin that tells nothing
        return True
    except TypeError:
        return False
    return True

"""The parts of one agent that its actors share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..core.registry import Registry
from .extraction import MemoryExtractor
from .hook_runner import HookRunner
from .lifetime import Lifetime
from .recorder import Recorder
from .tool_pool import ToolPool

if TYPE_CHECKING:
    from .session import SessionActor


@attrs.define(eq=False)
class Now:
    """What is open at the moment, for whoever looks. Written by the guard."""

    session: SessionActor | None = None


@attrs.frozen(eq=False)
class Runtime:
    """Made when the agent is entered; gone when it is left."""

    registry: Registry
    lifetime: Lifetime
    recorder: Recorder
    pool: ToolPool
    hooks: HookRunner
    extractor: MemoryExtractor
    now: Now = attrs.Factory(Now)

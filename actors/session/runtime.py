"""The parts of one agent that its actors share."""

from __future__ import annotations

import attrs

from ...core.registry.registry import Registry
from ..memory.extractor import MemoryExtractor
from ..recorder.claims import Claims
from ..recorder.recorder import Recorder
from ..shared.hook_runner import HookRunner
from ..shared.lifetime import Lifetime
from ..tool_pool.pool import ToolPool


@attrs.frozen(eq=False)
class Runtime:
    """Made when the agent is entered; gone when it is left."""

    registry: Registry
    lifetime: Lifetime
    recorder: Recorder
    claims: Claims
    pool: ToolPool
    hooks: HookRunner
    extractor: MemoryExtractor

"""What tests of logs, compaction and memories share: short forms of events, and a stage that remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from stage import Stage
from youyou import ContextCompacted, ErrorEvent
from youyou.testing import InMemoryMemoryStorage


@pytest.fixture
def kinds() -> Callable[[Iterable[Any]], list[str]]:
    """How the compactions among these payloads were done, in order."""
    return lambda payloads: [payload.kind for payload in payloads if isinstance(payload, ContextCompacted)]


@pytest.fixture
def errors() -> Callable[[Iterable[Any]], list[str]]:
    """The codes of the errors among these payloads, in order."""
    return lambda payloads: [str(payload.error.code) for payload in payloads if isinstance(payload, ErrorEvent)]


@pytest.fixture
def remembering(stage: Stage) -> Stage:
    """A stage with a memory storage."""
    stage.memories = InMemoryMemoryStorage()
    return stage

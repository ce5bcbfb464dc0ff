"""The example of the docs, for the tests that drive it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example of the docs, with an empty shelf: ``desk.tools``, ``desk.profiles``, ``desk.agent``, ``desk.web``."""
    monkeypatch.syspath_prepend(EXAMPLES)
    modules = ("shelf", "tools", "profiles", "agent", "model", "web")
    desk = SimpleNamespace(**{name: import_module(f"writing_desk.{name}") for name in modules})
    desk.shelf.SHELF.__init__()
    monkeypatch.setattr(desk.tools, "TOOLS", (tools := list(desk.tools.TOOLS)))
    monkeypatch.setattr(desk.agent, "TOOLS", tools)
    return desk

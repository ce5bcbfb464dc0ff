"""The benchmarks are not a part of the wheel: they are loaded from the checkout, under their own name."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"

if "benchmarks" not in sys.modules:
    # Not through sys.path: the checkout's folders have names that would hide other modules.
    spec = spec_from_file_location("benchmarks", FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["benchmarks"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)

"""Functions and classes by name, so that another process finds them: ``shop.scenarios:checkout``, ``tests/a.py:check``.

A module of a test suite often cannot be imported by its name there (pytest's ``--import-mode=importlib``), so its file
is what travels.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32


class CannotTravel(ValueError):
    """Something that no other process could find."""


def reference_to(found: Any) -> str:
    """A name under which `resolve` finds ``found`` in every process.

    Raises:
        CannotTravel: it is made inside a function, or is not at the place that its name says.
    """
    name, module = getattr(found, "__qualname__", ""), getattr(found, "__module__", "")
    if not name or not module:
        raise CannotTravel(f"{found!r} has no name: another process cannot find it; write an 'async def' in a module")
    if "<" in name:
        raise CannotTravel(
            f"{name} is made inside another function: another process cannot find it; put it into a module by itself"
        )
    loaded = sys.modules.get(module)
    # A path is found whatever the module is called there; what has no file is a part of the interpreter.
    file = None if loaded is None else getattr(loaded, "__file__", None)
    if file is not None and not _is_installed(module, file):
        module = str(Path(file).resolve())
    try:
        if resolve(f"{module}:{name}") is found:
            return f"{module}:{name}"
    except (ImportError, AttributeError):
        pass
    raise CannotTravel(f"{module}:{name} names something else: another process cannot find {found!r}")


def resolve(reference: str) -> Any:
    """What ``reference`` names.

    Raises:
        ImportError: there is no such module.
        AttributeError: it has no such name.
    """
    module, _, name = reference.rpartition(":")
    found: Any = module_of(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part) if isinstance(found, type) else getattr(found, part)
    return found


def module_of(name: str) -> ModuleType:
    """The module of that name, or in that file (``path/to/file.py``), which need not be on the path.

    The folder of a file is put on the path, for what it imports from its neighbours.
    """
    if not name.endswith(".py"):
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(name)
    path = Path(name).resolve()
    for loaded in list(sys.modules.values()):
        if getattr(loaded, "__file__", None) == str(path):
            return loaded
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").exists():
        root, parts = root.parent, [root.name, *parts]
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    dotted = ".".join(parts)
    if dotted not in sys.modules and len(parts) > 1:
        return importlib.import_module(dotted)
    return _loaded_from(path, dotted)


def _loaded_from(path: Path, dotted: str) -> ModuleType:
    """By its path: two files of one name may both be wanted."""
    name = dotted if dotted not in sys.modules else f"{dotted}_{crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise ImportError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _is_installed(module: str, file: str) -> bool:
    """Whether every process that has the same packages can import it by name."""
    if module == "__main__":
        return False
    return "site-packages" in Path(file).parts or module.partition(".")[0] in sys.stdlib_module_names | {"youyou"}

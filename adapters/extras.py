"""Packages that come with an extra: importing one, and what to do when that fails.

openai = import_extra("openai")                     # the module, or an InvalidConfig that says what to do
print(install_command("demo"))                      # .../python -m pip install '/home/me/youyou[demo]'
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..messages.errors import InvalidConfig

_MISSING_LIBRARY = re.compile(r"\b(lib[\w.+-]+\.so[\w.]*): cannot open shared object file")
_SYSTEM_PACKAGES = {
    "libgomp.so.1": "libgomp1 on Debian and Ubuntu, libgomp on Fedora and Alpine",
    "libstdc++.so.6": "libstdc++6 on Debian and Ubuntu, libstdc++ on Fedora and Alpine",
}


def import_extra(package: str, extra: str | None = None) -> ModuleType:
    """Import a package that an extra brings along.

    Synopsis::

        openai = import_extra("openai")

    Args:
        package: the name to import.
        extra: the extra of youyou, if that is called otherwise.

    Raises:
        InvalidConfig: the package is missing, or it is installed and cannot be loaded. The message tells which of the
            two, what the loader said, and what to install.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name == package:
            raise InvalidConfig(
                f"the package {package!r} is missing; run: {install_command(extra or package)}"
            ) from error
        raise _unloadable(package, extra, error) from error
    except (ImportError, OSError) as error:
        # OSError: packages that load their library with ctypes.
        raise _unloadable(package, extra, error) from error


def _unloadable(package: str, extra: str | None, error: Exception) -> InvalidConfig:
    said = " ".join(str(error).split())
    if found := _MISSING_LIBRARY.search(said):
        library = found[1]
        advice = f"install the system's library {library} ({_SYSTEM_PACKAGES.get(library, 'with its package manager')})"
    else:
        advice = f"install it anew: {install_command(extra or package, '--force-reinstall')}"
    return InvalidConfig(f"the package {package!r} is installed but cannot be loaded: {said}; {advice}")


def install_command(extra: str, *options: str) -> str:
    """The command that installs ``youyou[extra]`` into the environment of this process, from where youyou came."""
    source, editable = _source()
    words = [sys.executable or "python", "-m", "pip", "install", *options, *(["-e"] if editable else [])]
    # The brackets are quoted whether or not the path needs it: zsh would take them for a pattern.
    return f"{shlex.join(words)} '{source}[{extra}]'"


def _source() -> tuple[str, bool]:
    """What to tell pip: the folder that youyou was installed from, if it is still there, or its name in an index."""
    try:
        origin = json.loads(distribution("youyou").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return "youyou", False
    url = urlsplit(str(origin.get("url", "")))
    folder = Path(url2pathname(url.path))
    if url.scheme != "file" or not (folder / "pyproject.toml").is_file():
        return "youyou", False
    return str(folder), bool(origin.get("dir_info", {}).get("editable"))

"""A virtual environment for each of the other runtimes, made when it is first needed.

They live in a folder of the user's cache, one for each version of Python; which packages go into one is in
`environments.toml`. youyou itself, and the floors, run in the environment of the command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

PACKAGES: dict[str, list[str]] = {
    name: table["packages"]
    for name, table in tomllib.loads(Path(__file__).with_name("environments.toml").read_text()).items()
}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "youyou-benchmarks"


@dataclass(frozen=True)
class Environment:
    """An interpreter, and what is installed beside it."""

    python: str
    versions: dict[str, str]
    """Package: version, of everything installed."""
    mib: float
    """Of the installed packages, byte code left out."""


def ensure(name: str, folder: Path = CACHE) -> Environment:
    """The environment of a runtime; ``youyou`` and the floors: the one that this command runs in.

    Raises:
        subprocess.CalledProcessError: the packages could not be installed; pip has said why.
    """
    if name not in PACKAGES:
        return look_at(sys.executable)
    place = folder / f"{sys.version_info.major}.{sys.version_info.minor}" / name
    python, stamp = place / "bin" / "python", place / "packages.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != PACKAGES[name]:
        print(f"installing {' '.join(PACKAGES[name])}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*install, *PACKAGES[name]], check=True)
        stamp.write_text(json.dumps(PACKAGES[name]))
    return look_at(str(python))


LOOK = """
import importlib.metadata as metadata, json, os
versions, size = {}, 0
for found in metadata.distributions():
    if found.name in ("pip", "setuptools"):
        continue
    versions[found.name] = found.version
    for file in found.files or ():
        if file.suffix != ".pyc":
            try:
                size += os.lstat(file.locate()).st_blocks * 512
            except OSError:
                pass
print(json.dumps([versions, size / 2**20]))
"""


def look_at(python: str) -> Environment:
    """What is installed beside an interpreter."""
    found = subprocess.run([python, "-c", LOOK], check=True, capture_output=True, text=True)
    versions, mib = json.loads(found.stdout)
    return Environment(python, versions, mib)

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

from .results import Results

TABLES = tomllib.loads(Path(__file__).with_name("environments.toml").read_text())
PACKAGES: dict[str, list[str]] = {name: table["packages"] for name, table in TABLES.items()}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "youyou-benchmarks"


@dataclass(frozen=True)
class Environment:
    """An interpreter, and what is installed beside it."""

    python: str
    versions: dict[str, str]
    """Package: version, of everything installed."""
    packages: int
    """How many the runtime needs, itself included; what else is installed does not count."""
    mib: float
    """What these take, byte code left out."""


def ensure(name: str, folder: Path = CACHE) -> Environment:
    """The environment of a runtime; ``youyou`` and the floors: the one that this command runs in.

    Raises:
        subprocess.CalledProcessError: the packages could not be installed; pip has said why.
    """
    if name not in PACKAGES:
        return look_at(sys.executable, ["youyou"] if name == "youyou" else ["trio"])
    place = folder / f"{sys.version_info.major}.{sys.version_info.minor}" / name
    python, stamp = place / "bin" / "python", place / "packages.json"
    wanted = PACKAGES[name] + TABLES[name].get("storage", [])
    if not stamp.exists() or json.loads(stamp.read_text()) != wanted:
        print(f"installing {' '.join(wanted)}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*install, *wanted], check=True)
        stamp.write_text(json.dumps(wanted))
    return look_at(str(python), [one.partition("==")[0] for one in PACKAGES[name]])


def tell(environments: dict[str, Environment], results: Results) -> None:
    """Note the versions of what is measured, and what has to be installed for it."""
    for program, found in environments.items():
        wanted = [one.partition("==")[0] for one in PACKAGES.get(program, ["youyou", "trio", "attrs", "apsw"])]
        versions = results.about.setdefault("versions", {})
        versions |= {name: found.versions[name] for name in wanted if name in found.versions}
        sizes = results.about.setdefault("environments", {})
        sizes[program] = {"packages": found.packages, "mib": found.mib}


LOOK = """
import importlib.metadata as metadata, json, os, re, sys
named = lambda name: re.sub("[-_.]+", "-", name).lower()
found = {named(one.name): one for one in metadata.distributions()}
needed, open_ = set(), [named(name) for name in sys.argv[1:]]
while open_:
    name = open_.pop()
    if name in found and name not in needed:
        needed.add(name)
        for line in found[name].requires or ():
            if "extra ==" not in line:
                open_.append(named(re.match("[A-Za-z0-9._-]+", line).group()))
size = 0
for name in needed:
    for file in found[name].files or ():
        if file.suffix != ".pyc":
            try:
                size += os.lstat(file.locate()).st_blocks * 512
            except OSError:
                pass
print(json.dumps([{one.name: one.version for one in found.values()}, len(needed), size / 2**20]))
"""


def look_at(python: str, names: list[str]) -> Environment:
    """What is installed beside an interpreter, and how much of it the packages of these names need."""
    found = subprocess.run([python, "-c", LOOK, *names], check=True, capture_output=True, text=True)
    return Environment(python, *json.loads(found.stdout))

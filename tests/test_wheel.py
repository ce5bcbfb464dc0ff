"""What a user gets from ``pip install``: every package, its types, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NOT_SHIPPED = {"tests", "docs", "benchmarks", "scripts", "build", "dist", "youyou.egg-info"}


def packages() -> set[str]:
    """Every folder of the tree that is a package."""
    folders = [
        path.parent.relative_to(ROOT)
        for path in ROOT.rglob("__init__.py")
        if not NOT_SHIPPED & set(path.relative_to(ROOT).parts) and not any(p.startswith(".") for p in path.parts)
    ]
    return {".".join(["youyou", *folder.parts]) for folder in folders}


def modules() -> list[Path]:
    """Every module of the tree that is to be shipped, whether or not its folder is a package."""
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*.py")]
    return [p for p in paths if not NOT_SHIPPED & set(p.parts) and not any(part.startswith(".") for part in p.parts)]


def package_of(path: Path) -> str:
    """The package that a module, given relative to the root, would be in."""
    return ".".join(["youyou", *path.parent.parts])


def test_every_package_is_listed():
    """The list in pyproject.toml names each folder that is a package, and no other."""
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages()


def test_every_module_is_in_a_listed_package():
    """No folder of modules lacks its ``__init__.py``: such a folder would be left out of the wheel."""
    assert [path for path in modules() if package_of(path) not in PROJECT["tool"]["setuptools"]["packages"]] == []


def test_the_runtime_dependencies_are_the_agreed_ones():
    """Seven, none pinned from above; everything else is an extra."""
    names = {dependency.split(">=")[0] for dependency in PROJECT["project"]["dependencies"]}
    assert names == {"trio", "trio-util", "attrs", "cattrs", "msgspec", "jsonschema-rs", "typing-extensions"}
    assert not any(sign in text for text in PROJECT["project"]["dependencies"] for sign in ("<", "=="))


@pytest.mark.long
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path):
    """All modules and ``py.typed`` are in it; tests, documents and benchmarks are not."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "tests", "__pycache__", "*.egg-info", "build"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(tree)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (wheel,) = tmp_path.glob("youyou-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = {name.rsplit("/", 1)[-1] for name in archive.namelist() if ".dist-info/" in name}

    listed = PROJECT["tool"]["setuptools"]["package-data"].items()
    data = {
        str(Path("youyou", path.relative_to(ROOT)))
        for package, patterns in listed
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }
    assert "youyou/py.typed" in data
    assert held == {str(Path("youyou", path)) for path in modules()} | data
    assert {"METADATA", "WHEEL", "RECORD", "LICENSE", "entry_points.txt"} <= metadata

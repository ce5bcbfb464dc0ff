"""A package that an extra brings along: missing, broken, and the command that helps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from youyou.adapters import extras
from youyou.adapters.extras import import_extra, install_command
from youyou.messages.errors import InvalidConfig


def broken_package(folder: Path, name: str, body: str) -> None:
    """A package that is installed and whose import does this."""
    (folder / f"{name}.py").write_text(body)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "raise ImportError('libgomp.so.1: cannot open shared object file: No such file or directory')",
            "install the system's library libgomp.so.1 (libgomp1 on Debian",
        ),
        (
            "raise OSError('libodd-2.so.7: cannot open shared object file: No such file')",
            "install the system's library libodd-2.so.7 (with its package manager)",
        ),
        (
            'raise ImportError("/lib/libc.so.6: version `GLIBC_2.39\' not found")',
            "version `GLIBC_2.39' not found; install it anew",
        ),
        ("import no_such_part_of_it", "No module named 'no_such_part_of_it'; install it anew"),
    ],
)
def test_what_cannot_be_loaded_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, says: str
) -> None:
    """The loader's own words, and what to install: a library of the system, or the package anew."""
    broken_package(tmp_path, "broken_of_test", body)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(InvalidConfig) as caught:
        import_extra("broken_of_test", "demo")

    assert "'broken_of_test' is installed but cannot be loaded: " in caught.value.message
    assert says in caught.value.message
    assert "missing" not in caught.value.message


def test_a_missing_package_is_called_missing() -> None:
    """With the command that brings it."""
    with pytest.raises(InvalidConfig) as caught:
        import_extra("no_such_package", "cli")

    assert f"the package 'no_such_package' is missing; run: {install_command('cli')}" == caught.value.message


@pytest.mark.parametrize(
    ("origin", "editable", "source"),
    [
        ('{{"url": "file://{clone}", "dir_info": {{"editable": true}}}}', ["-e"], "{clone}"),
        ('{{"url": "file://{clone}", "dir_info": {{}}}}', [], "{clone}"),
        ('{{"url": "file:///gone/since", "dir_info": {{}}}}', [], "youyou"),
        ('{{"url": "https://example.org/youyou-0.1.whl", "archive_info": {{}}}}', [], "youyou"),
        ("not JSON", [], "youyou"),
        (None, [], "youyou"),
    ],
)
def test_the_command_installs_from_where_youyou_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str | None, editable: list[str], source: str
) -> None:
    """A clone that is still there is named, and otherwise the name in an index."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    (clone / "pyproject.toml").write_text("")
    text = None if origin is None else origin.format(clone=str(clone).replace(" ", "%20"))
    monkeypatch.setattr(extras, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))

    command = install_command("demo")

    words = [sys.executable, "-m", "pip", "install", *editable]
    assert f"{' '.join(words)} '{source.format(clone=clone)}[demo]'" == command


@pytest.mark.long
def test_the_command_is_one_that_pip_takes() -> None:
    """Pip resolves what the command names, word for word, and changes nothing."""
    command = install_command("cli", "--dry-run", "--no-deps", "-q")

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)

    assert 0 == done.returncode, done.stderr

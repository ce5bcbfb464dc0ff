"""The documentation site: it is built without a warning and without a network, and it leaves nothing out."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest
import youyou
import youyou.testing
from youyou.cli.parser import build_parser
from youyou.core.config import AgentConfig, EnvironmentContext, Notices, RetryPolicy, SessionConfig
from youyou.messages.errors import TABLE, AgentError, ErrorCode, ErrorSource

DOCS = Path(__file__).parents[2] / "docs"
DIRECTIVE = re.compile(r"^\.\. auto(?:class|function|data|exception):: ([\w.]+)$", re.MULTILINE)
ADAPTERS = ["openai", "anthropic", "sqlite", "local", "mcp", "otel", "postgres", "ray", "offload"]


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text(encoding="utf-8")


def field_tables():
    """The script that makes the tables."""
    spec = importlib.util.spec_from_file_location("field_tables_of_docs", DOCS / "field_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_public_name_is_missing_from_the_reference():
    """Everything that may be imported is in the API reference, once, and nothing else is."""
    named = [name for file in DOCS.glob("reference/*.md") for name in DIRECTIVE.findall(file.read_text())]
    public = [f"youyou.{name}" for name in youyou.__all__]
    public += [f"youyou.testing.{name}" for name in youyou.testing.__all__]
    for name in ("hosting", *(f"adapters.{adapter}" for adapter in ADAPTERS)):
        module = importlib.import_module(f"youyou.{name}")
        public += [f"{module.__name__}.{name}" for name in module.__all__]

    assert sorted(public) == sorted(named)


@pytest.mark.parametrize("name", ["configuration.md", "events.md"])
def test_the_tables_of_fields_are_those_of_the_classes(name):
    """Fields, defaults and meanings stand as in the source; ``python docs/field_tables.py`` makes them anew."""
    assert field_tables().with_tables(page(name)) == page(name)


def test_every_field_of_the_configuration_has_a_meaning():
    """Each field of the five classes stands in the page, with words."""
    text = page("configuration.md")
    for kind in (AgentConfig, SessionConfig, RetryPolicy, Notices, EnvironmentContext):
        assert f"<!-- fields: {kind.__name__} -->" in text
        for field in attrs.fields(kind):
            assert re.search(rf"^\| `{field.name}` \| .+ \| \S.+ \|$", text, re.MULTILINE), field.name


def test_every_event_stands_in_its_page():
    """Each kind of payload, with its fields."""
    kinds = youyou.AgentEventPayload.__args__

    assert [] == [kind.__name__ for kind in kinds if f"<!-- fields: {kind.__name__} -->" not in page("events.md")]


def test_every_error_code_stands_in_its_page():
    """With its class, where it comes from, what to do, and whether a retry may help."""
    rows = re.findall(r"^\| `([A-Z_]+)` \| `(\w+)` \| (.+) \| (.+) \| (yes|no) \|$", page("errors.md"), re.MULTILINE)
    usual = {code: TABLE.get(code, (ErrorSource.AGENT, False))[1] for code in ErrorCode}

    assert [(code, AgentError.by_code[code].__name__, "yes" if usual[code] else "no") for code in ErrorCode] == [
        (code, name, retryable) for code, name, _, _, retryable in rows
    ]


def parsers(parser: argparse.ArgumentParser, name: str = "youyou"):
    """Every command with its parser."""
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in nested:
        for word, below in action.choices.items():
            yield from parsers(below, f"{name} {word}")
    if not nested:
        yield name, parser


def test_every_command_and_option_stands_in_its_page():
    """The page of the command line names them all."""
    text = page("command-line.md")
    for name, parser in parsers(build_parser()):
        assert f"`{name}`" in text
        for option in parser._option_string_actions:
            assert f"`{option}`" in text, f"{option} of {name}"


def test_every_page_is_reached_from_the_index():
    """No page lies beside the site: each is in a table of contents."""
    listed = {DOCS / "index.md"}
    for file in [DOCS / "index.md", DOCS / "reference" / "index.md"]:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", file.read_text(), re.DOTALL):
            for line in tree.splitlines():
                listed |= set(file.parent.glob(f"{line}.md")) if line and not line.startswith(":") else set()
    listed |= set(DOCS.glob("decisions/*.md"))

    assert [] == sorted(
        str(path.relative_to(DOCS)) for path in set(DOCS.rglob("*.md")) - listed if "examples" not in path.parts
    )


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_without_a_network(tmp_path):
    """Warnings are errors, among them every link inside the site that leads nowhere; no socket may be opened."""
    pytest.importorskip("sphinx", reason="needs the extra docs")
    (tmp_path / "sitecustomize.py").write_text(
        "import socket\ndef refuse(*_): raise OSError('the site is to be built without a network')\n"
        "socket.socket.connect = refuse\n"
    )
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path / "site")]

    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=False
    )

    assert ("", 0) == (done.stderr, done.returncode)
    assert "AgentBuilder" in (tmp_path / "site" / "searchindex.js").read_text()

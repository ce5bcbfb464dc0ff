"""The texts that the runtime writes: defaults as the requirements have them, and each language whole."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import attrs
import pytest
from youyou import AgentBuilder, AgentConfig, Notices
from youyou.testing import ScriptedProvider

ROOT = Path(__file__).parents[2]
HAN = re.compile(r"[\u4e00-\u9fff]")
PLACES = ("docs/**/*.md", "docs/examples/**/*.py", "cli/**/*.py")
EXAMPLES = [ROOT / "README.md", *(path for place in PLACES for path in sorted(ROOT.glob(place)))]
# Those that exist to be refused or looked at, not to run an agent.
NOT_RUN = {"docs/first-mistakes.md"}


def test_the_defaults_are_those_of_the_requirements():
    """Chinese and English mixed, as they were asked for."""
    mixed = {name for name, text in attrs.asdict(Notices()).items() if not HAN.search(text)}

    assert {"aborted_tool", "timed_out_tool", "truncated"} == mixed
    assert ("Tool aborted by hook: {reason}", "Tool timed out after {ms}ms", "\n\n[output truncated at 1MB]") == (
        Notices().aborted_tool,
        Notices().timed_out_tool,
        Notices().truncated,
    )


def test_each_language_is_whole():
    """No Chinese in English, and nothing without Chinese in Chinese."""
    assert [] == [text for text in attrs.asdict(Notices.english()).values() if HAN.search(text)]
    assert [] == [text for text in attrs.asdict(Notices.chinese()).values() if not HAN.search(text)]


@pytest.mark.parametrize("notices", [Notices(), Notices.english(), Notices.chinese()])
def test_each_can_be_filled_in(notices):
    """An agent is built with them."""
    config = AgentConfig(default_model="scripted", notices=notices)

    AgentBuilder(config).register_model_provider(ScriptedProvider([])).build()


def configurations(path: Path) -> list[ast.Call]:
    """Every ``AgentConfig(...)`` in the code of a page or a module."""
    text = path.read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if path.suffix == ".md" else [text]
    calls = [node for block in code for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    return [node for node in calls if ast.unparse(node.func).split(".")[-1] == "AgentConfig"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_example_chooses_in_so_many_words(path):
    """``Notices.english()`` or ``Notices.chinese()`` stands in each configuration that readers may copy."""
    missing = [
        ast.unparse(node)
        for node in configurations(path)
        if not re.search(r"notices=(youyou\.)?Notices\.(english|chinese)\(\)", ast.unparse(node))
    ]

    assert [] == missing or str(path.relative_to(ROOT)) in NOT_RUN

"""What a type checker says of a turn whose answer must be something (semantics 13.1)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest
import youyou

SNIPPET = """
from dataclasses import dataclass
from typing import Any, TypedDict

import attrs
from typing_extensions import assert_type
from youyou import Abort, Agent, AgentBuilder, BeforeToolUse, HasProvider, HookResult, ModelProvider, PluginContext
from youyou import RunningTurn, Session, TurnResult, ask, ask_sync


@attrs.frozen
class Person:
    name: str


@dataclass
class Page:
    title: str


class Place(TypedDict):
    city: str


async def of_messages(session: Session) -> None:
    assert_type(await session.send_message("hi", output=Person), RunningTurn[Person])
    result = await (await session.send_message("hi", output=Page)).result()
    assert_type(result, TurnResult[Page])
    assert_type(result.output, Page | None)
    result.output.title                                                             # refused: it may be None
    place = await (await session.send_message("hi", output=Place, queue=True)).result()
    assert_type(place.output, Place | None)
    free = await (await session.send_message("hi")).result()
    assert_type(free, TurnResult[Any])
    data = await (await session.send_message("hi", output={"type": "object"})).result()
    assert_type(data, TurnResult[Any])
    await session.send_message("hi", output=3)                                      # refused: not a class


async def of_sessions(agent: Agent) -> Person | None:
    async with agent.new_session(output=Person) as session:
        assert_type(session, Session[Person])
        assert_type(await session.continue_pipeline(), RunningTurn[Person])
        async with await session.send_message("hi") as turn:
            assert_type(turn, RunningTurn[Person])
            other = await (await session.send_message("hi", output=Place)).result()
            assert_type(other.output, Place | None)
            return (await turn.result()).output


async def of_openings(agent: Agent) -> None:
    assert_type(await agent.new_session(), Session[Any])
    assert_type(await agent.resume_session("id", output=Page, steal=True), Session[Page])
    async with await agent.new_session() as first, agent.resume_session("id") as second:
        bare: Session = first
        assert_type(second, Session[Any])
        await bare.send_message("hi")
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A program of a host beside the package."""
    (tmp_path / "host.py").write_text(SNIPPET)
    # A link, because a checker does not look into editable installs.
    (tmp_path / "youyou").symlink_to(Path(youyou.__file__).parent, target_is_directory=True)
    return tmp_path


MARKED = {number for number, line in enumerate(SNIPPET.splitlines(), 1) if "# refused" in line}


@pytest.mark.long
def test_mypy_knows_what_an_answer_is(host):
    """Each line marked "refused" is an error, and no other line is."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "host.py"]
    run = subprocess.run(command, cwd=host, capture_output=True, text=True, check=False)
    refused = {int(line.split(":")[1]) for line in run.stdout.splitlines() if ": error:" in line}

    assert refused == MARKED, run.stdout + run.stderr


@pytest.mark.long
def test_pyright_knows_what_an_answer_is(host):
    """As mypy does."""
    pyright = which("pyright") or which("pyright", path=str(Path(sys.executable).parent))
    if pyright is None:
        pytest.skip("needs pyright, of the extra check")
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "host.py"]
    run = subprocess.run(command, cwd=host, capture_output=True, text=True, check=False)
    found = json.loads(run.stdout)["generalDiagnostics"]
    refused = {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}

    assert refused == MARKED, found

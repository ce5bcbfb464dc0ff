"""A type checker refuses to build an agent that has no model provider (semantics 1.1)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import youyou

SNIPPET = '''
import trio
from youyou import AgentBuilder, AgentConfig, HasProvider, ModelProvider, NoProvider, tool

@tool
async def weather(city: str) -> str:
    """Weather."""
    return city

async def host(provider: ModelProvider, nursery: trio.Nursery) -> None:
    bare: AgentBuilder[NoProvider] = AgentBuilder(AgentConfig("m"))
    bare.build()                                                                    # refused
    bare.register_tool(weather).build()                                             # refused
    await nursery.start(bare.serve)                                                 # refused
    ready: AgentBuilder[HasProvider] = bare.register_model_provider(provider)
    ready.register_tool(weather).build()
    async with AgentBuilder(AgentConfig("m")).register_tool(weather).register_model_provider(provider).build() as agent:
        async with await agent.new_session() as session:
            turn = await session.send_message("hi")
            turn.result().text                                                      # refused: it is awaited
    await nursery.start(ready.serve)
    ready.register_tool(5)                                                          # refused
    ready.register_model_provider(weather)                                          # refused
'''


@pytest.mark.long
def test_mypy_refuses_build_without_a_provider(tmp_path):
    """Each line marked "refused" is an error, and no other line is."""
    (tmp_path / "host.py").write_text(SNIPPET)
    # A link, because a checker does not look into editable installs.
    (tmp_path / "youyou").symlink_to(Path(youyou.__file__).parent, target_is_directory=True)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "host.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    refused = {int(line.split(":")[1]) for line in run.stdout.splitlines() if ": error:" in line}
    marked = {number for number, line in enumerate(SNIPPET.splitlines(), 1) if "# refused" in line}
    assert refused == marked, run.stdout + run.stderr


async def test_at_run_time_it_is_refused_too():
    """A host that uses no type checker is told what to register."""
    builder = youyou.AgentBuilder(youyou.AgentConfig("m"))
    with pytest.raises(youyou.NoModelProvider, match="register_model_provider"):
        builder.build()

"""Published servers, and bad ones, in processes of their own and over HTTP."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import youyou
from youyou.adapters.mcp import MCPServer, MCPTools

NPM = {
    "everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "filesystem": "@modelcontextprotocol/server-filesystem",
    "memory": "@modelcontextprotocol/server-memory",
}
BOUND = 6.0
PYTHON = """
import os, signal, sys, time
from mcp.server import MCPServer
import anyio
server = MCPServer("own")
@server.tool()
def pid() -> int:
    return os.getpid()
@server.tool()
async def hang() -> str:
    await anyio.sleep(600)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
server.run()
if "stubborn" in sys.argv:
    time.sleep(600)
"""


def given(**arguments: Any) -> youyou.ToolInput:
    """What a tool is called with."""
    return youyou.ToolInput("1", "x", arguments)


def own(folder: Path, *arguments: str) -> MCPServer:
    """A small server of ours in a process."""
    program = folder / "own_server.py"
    program.write_text(PYTHON)
    return MCPServer.stdio("own", [sys.executable, str(program), *arguments])


def alive(pid: int) -> bool:
    """Whether this process runs."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


@pytest.mark.long
async def test_a_killed_server_fails_one_call_and_comes_back_with_the_next(tmp_path: Path) -> None:
    """The call in flight is told that its outcome is unknown; the next one starts the server again."""
    async with MCPTools(own(tmp_path)) as mcp:
        pid, hang = mcp.tools
        first = int((await pid.execute(given())).content)

        async def kill() -> None:
            await trio.sleep(0.2)
            os.kill(first, signal.SIGKILL)

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(kill)
                with pytest.raises(youyou.ToolExecutionError, match="MCP server 'own' was lost during the call"):
                    await hang.execute(given())
            second = int((await pid.execute(given())).content)

    assert first != second
    assert [False, False] == [alive(first), alive(second)]


@pytest.mark.long
async def test_a_stubborn_server_is_gone_within_the_bound(tmp_path: Path) -> None:
    """It ignores the end of its stdin and SIGTERM; a cancelled host waits for it no longer than is said."""
    with trio.CancelScope() as scope:
        async with MCPTools(own(tmp_path, "stubborn")) as mcp:
            pid = int((await mcp.tools[0].execute(given())).content)
            began = time.monotonic()
            scope.cancel()

    assert time.monotonic() - began < BOUND
    assert not alive(pid)


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["no-such-program"], "FileNotFoundError"),
        ([sys.executable, "-c", "import sys; sys.exit('I am broken')"], "it said: I am broken"),
        ([sys.executable, "-c", "print('not a protocol'); import time; time.sleep(600)"], "did not answer within 2 s"),
    ],
)
async def test_a_server_that_does_not_come_up_is_told_bare(command: list[str], says: str) -> None:
    """One error with the server's name and its last words; nothing of it is left."""
    with pytest.raises(youyou.ToolExecutionError, match=says) as caught:
        async with MCPTools(MCPServer.stdio("bad", command, connect_timeout_ms=2_000)):
            raise AssertionError("not reached")

    assert "MCP server 'bad' cannot be reached: " in caught.value.message


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The published servers, installed by npm where there is one."""
    if shutil.which("npm") is None:
        pytest.skip("npm is missing: the published servers written for node are not tried")
    folder = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *NPM.values()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm cannot install the published servers: {done.stderr.strip().splitlines()[-1:]}")
    yield folder / "node_modules" / ".bin"


@pytest.mark.long
async def test_three_published_servers_at_once(programs: Path, tmp_path: Path) -> None:
    """Their tools are listed and called concurrently, read-only ones by their own word; closing ends every process."""
    (tmp_path / "hello.txt").write_text("hello")
    servers = [
        MCPServer.stdio("everything", [programs / "mcp-server-everything"]),
        MCPServer.stdio("filesystem", [programs / "mcp-server-filesystem", tmp_path]),
        MCPServer.stdio("memory", [programs / "mcp-server-memory"], env={"MEMORY_FILE_PATH": str(tmp_path / "m.json")}),
    ]
    async with MCPTools(*servers) as mcp:
        tools = {tool.name: tool for tool in mcp.tools}
        echoed = await tools["echo"].execute(given(message="hi"))
        listed = await tools["list_directory"].execute(given(path=str(tmp_path)))
        refused = await tools["echo"].execute(given(massage="hi"))
        entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
        await tools["create_entities"].execute(given(entities=[entity]))
        found = await tools["search_nodes"].execute(given(query="tea"))
        with trio.move_on_after(0.3):
            await tools["trigger-long-running-operation"].execute(given(duration=60, steps=60))
        began = time.monotonic()

    assert time.monotonic() - began < BOUND
    assert ("Echo: hi", "[FILE] hello.txt", True) == (echoed.content, listed.content.splitlines()[0], refused.is_error)
    assert "likes tea" in found.content
    assert (False, True) == (tools["read_text_file"].mutating, tools["write_file"].mutating)


@pytest.mark.long
# The SDK's HTTP client leaves the generators of a broken response to the garbage collector, and Trio says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_server_over_http_that_goes_away_takes_nothing_with_it(programs: Path) -> None:
    """The call in flight fails, the block goes on, and a server that is there again is used again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [programs / "mcp-server-everything", "streamableHttp"],
            env=os.environ | {"PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    process = start()
    try:
        await _listening(port)
        async with MCPTools(MCPServer.http("far", f"http://127.0.0.1:{port}/mcp", connect_timeout_ms=5_000)) as mcp:
            tools = {tool.name: tool for tool in mcp.tools}
            assert "Echo: 1" == (await tools["echo"].execute(given(message="1"))).content
            process.kill()
            process.wait()
            with trio.fail_after(30), pytest.raises(youyou.ToolExecutionError, match="MCP server 'far'"):
                await tools["echo"].execute(given(message="2"))
            process = start()
            await _listening(port)
            with trio.fail_after(60):
                while True:
                    try:
                        output = await tools["echo"].execute(given(message="3"))
                        break
                    except youyou.ToolExecutionError:
                        continue
            assert "Echo: 3" == output.content
    finally:
        process.kill()
        process.wait()


async def _listening(port: int) -> None:
    with trio.fail_after(60):
        while True:
            try:
                stream = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                await trio.lowlevel.checkpoint()
                continue
            await stream.aclose()
            return

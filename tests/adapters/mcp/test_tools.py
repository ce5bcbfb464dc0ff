"""Tools of MCP servers, as an agent sees them. The servers are the SDK's own, in this process."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import youyou
from mcp.server import MCPServer as Server
from mcp.server.mcpserver import Context, Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from youyou.adapters.mcp import MCPServer, MCPTools
from youyou.testing import ScriptedProvider, call, calls, say


def notes_server() -> Server:
    """A server with tools of several kinds."""
    server = Server("notes")

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True))
    def count(text: str) -> int:
        """Count the letters."""
        return len(text)

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ToolError("there is no paper")

    @server.tool(name="draw.picture")
    def draw() -> Image:
        """Draw."""
        return Image(data=b"123456", format="png")

    @server.tool()
    async def slow(ctx: Context, seconds: float) -> str:
        """Take time, and tell how far it is."""
        await ctx.report_progress(1, 2, "half")
        await trio.sleep(seconds)
        return "done"

    return server


def shelf_server() -> Server:
    """A server with a tool of the same name."""
    server = Server("shelf")

    @server.tool()
    def count(shelf: int) -> str:
        """Count the books."""
        return "seven"

    return server


def given(**arguments: Any) -> youyou.ToolInput:
    """What a tool is called with."""
    return youyou.ToolInput("1", "x", arguments)


async def test_tools_have_names_schemas_and_hints() -> None:
    """Descriptions and schemas are the server's; what is not read-only by its word is mutating."""
    async with MCPTools(MCPServer("notes", notes_server())) as mcp:
        tools = {tool.name: tool for tool in mcp.tools}

    assert ["count", "fail", "draw_picture", "slow"] == list(tools)
    assert [False, True, True, True] == [tool.mutating for tool in tools.values()]
    assert ("Count the letters.", ["text"]) == (tools["count"].description, list(tools["count"].parameters["required"]))
    assert ("mcp", "notes") == tools["count"].tags


async def test_names_that_collide_get_their_servers_name() -> None:
    """Each of the two, so that neither depends on the order of the servers."""
    async with MCPTools(MCPServer("notes", notes_server(), only=("count",)), MCPServer("shelf", shelf_server())) as mcp:
        names = [tool.name for tool in mcp.tools]
        (output, _) = [await tool.execute(given(text="abc")) for tool in mcp.tools]

    assert ["notes_count", "shelf_count"] == names
    assert ("3", {"result": 3}) == (output.content, dict(output.metadata["structured_content"]))


async def test_an_agent_uses_them() -> None:
    """Results, errors and contents that are not text come back as results of calls."""
    rounds = [calls(call("count", {"text": "abcd"}), "fail", "draw_picture"), say("Done.")]
    async with MCPTools(MCPServer("notes", notes_server())) as mcp:
        builder = youyou.AgentBuilder(youyou.AgentConfig("scripted")).register_model_provider(ScriptedProvider(rounds))
        for tool in mcp.tools:
            builder.register_tool(tool)
        async with builder.build() as agent, await agent.new_session() as session:
            result = await (await session.send_message("Go")).result()

    counted, failed, drawn = result.tool_results
    assert (youyou.ToolOutcome.OK, "4") == (counted.outcome, counted.content)
    assert youyou.ToolOutcome.FAILED is failed.outcome
    assert "there is no paper" in failed.content
    assert "[image image/png, 6 bytes, not shown]" == drawn.content


async def test_progress_is_reported() -> None:
    """What the server tells while it works is the call's progress."""
    told: list[Any] = []
    async with MCPTools(MCPServer("notes", notes_server())) as mcp:
        slow = mcp.tools[3]
        await slow.execute(youyou.ToolInput("1", "slow", {"seconds": 0}, told.append))

    assert [{"done": 1, "total": 2, "message": "half"}] == told


async def test_a_cancelled_call_leaves_the_connection_whole() -> None:
    """Trio's cancellation ends the wait at once, fifty times, and the next call works."""
    async with MCPTools(MCPServer("notes", notes_server())) as mcp:
        for _ in range(50):
            with trio.move_on_after(0.001) as scope:
                await mcp.tools[3].execute(given(seconds=600))
            assert scope.cancelled_caught
        output = await mcp.tools[0].execute(given(text="abc"))

    assert "3" == output.content


async def test_a_call_that_takes_too_long_is_a_time_out() -> None:
    """With the server's name and the limit."""
    async with MCPTools(MCPServer("notes", notes_server(), call_timeout_ms=50)) as mcp:
        with pytest.raises(youyou.ToolTimeout, match="MCP server 'notes' did not answer within 50 ms"):
            await mcp.tools[3].execute(given(seconds=600))


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt(), youyou.ProviderError("no")])
async def test_exceptions_of_the_block_stay_bare(error: BaseException) -> None:
    """None of the groups in which the SDK's client would wrap them reaches the host."""
    with pytest.raises(type(error)) as caught:
        async with MCPTools(MCPServer("notes", notes_server()), MCPServer("shelf", shelf_server())):
            raise error

    assert error is caught.value


async def test_a_cancelled_block_is_left_as_any_other() -> None:
    """The scope catches its cancellation; no group, no error."""
    with trio.move_on_after(0.05) as scope:
        async with MCPTools(MCPServer("notes", notes_server())):
            await trio.sleep_forever()

    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MCPTools(MCPServer("a", "http://x"), MCPServer("a", "http://y")), "2 MCP servers are called 'a'"),
        (lambda: MCPServer.stdio("a", "mcp-server-time"), "write a list: \\['program', 'argument'\\]"),
        (lambda: MCPServer.http("a", "localhost:8000"), "it begins with http:// or https://"),
    ],
)
def test_what_is_wrong_is_said_at_once(make: Any, says: str) -> None:
    """Before anything is started."""
    with pytest.raises(youyou.InvalidConfig, match=says):
        make()


async def test_a_tool_that_is_not_there_is_named() -> None:
    """With those that are."""
    with pytest.raises(youyou.InvalidConfig, match=r"has no tool 'paint'; it has count, fail, draw\.picture, slow"):
        async with MCPTools(MCPServer("notes", notes_server(), only=("paint",))):
            raise AssertionError("not reached")

"""Tools of MCP servers as tools of an agent, through the official SDK on Trio. Extra ``mcp``.

    servers = [MCPServer.stdio("time", ["mcp-server-time"]), MCPServer.http("docs", "http://127.0.0.1:3000/mcp")]
    async with MCPTools(*servers) as mcp:
        for tool in mcp.tools:
            builder.register_tool(tool)
        async with builder.build() as agent: ...

The runtime knows nothing of it: what an agent gets are tools.
"""

from __future__ import annotations

from .servers import MCPServer
from .toolset import MCPTools

__all__ = ["MCPServer", "MCPTools"]

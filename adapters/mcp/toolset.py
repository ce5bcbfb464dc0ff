"""The tools of several servers, under names that do not collide, and what their results become."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import trio

from ...core.ports.protocols import ToolInput
from ...core.tools.declaration import Tool
from ...messages.errors import AgentError, InvalidConfig
from ...messages.events import ToolOutput
from ..extras import import_extra
from .connection import Connection
from .servers import MCPServer

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64


class MCPTools:
    """Connections to MCP servers, and their tools.

    Synopsis::

        async with MCPTools(MCPServer.stdio("time", ["mcp-server-time"])) as mcp:
            for tool in mcp.tools:
                builder.register_tool(tool)

    Enter it before the agent and leave it after: tools are known when the agent is built. A server that is lost while
    it is open is connected again by the next call; a call that it was lost in fails, and nothing else does.

    A tool counts as mutating unless the server says ``readOnlyHint``. A name that two servers use gets the server's
    name in front, for each of them; characters that models refuse in names become ``_``.

    Cancellation: entering and leaving are checkpoints. Leaving ends the servers' processes, all at once, and takes 6
    seconds at most, also when it is cancelled: a process that does not go when its stdin is closed has two seconds, and
    then two after SIGTERM.

    Args:
        servers: with names of their own.

    Raises:
        InvalidConfig: two servers have one name, or the extra is not installed.
        ToolExecutionError: from entering, when a server cannot be reached; what was started is ended.
    """

    def __init__(self, *servers: MCPServer) -> None:
        import_extra("mcp")
        for name, times in Counter(server.name for server in servers).items():
            if times > 1:
                raise InvalidConfig(f"{times} MCP servers are called {name!r}; give each a name of its own")
        self._connections = [Connection(server) for server in servers]
        self._manager: Any = None
        self._nursery: Any = None
        self._tools: tuple[Tool, ...] = ()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools of all servers, in the order of the servers and of their lists. Known once it is entered."""
        return self._tools

    async def __aenter__(self) -> Self:
        self._manager = trio.open_nursery()
        # Not an `async with` block: it would put the exceptions of the user's block into a group.
        self._nursery = await self._manager.__aenter__()
        try:
            for connection in self._connections:
                self._nursery.start_soon(connection.own, name=f"MCP server {connection.server.name}")
            self._tools = _tools(await self._listed())
        except BaseException:
            await self._leave()  # noqa: ASYNC102  shielded and bounded, see there
            raise
        return self

    async def _listed(self) -> list[tuple[Connection, list[Any]]]:
        """The tools of each server; the servers start at once."""
        listed: dict[Connection, list[Any]] = {}
        errors: list[AgentError] = []

        async def ask(connection: Connection) -> None:
            try:
                listed[connection] = await _list_tools(connection)
            except AgentError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            for connection in self._connections:
                nursery.start_soon(ask, connection)
        if errors:
            raise errors[0]
        return [(connection, listed[connection]) for connection in self._connections]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave()  # noqa: ASYNC102  shielded and bounded, see there

    async def _leave(self) -> None:
        for connection in self._connections:
            connection.close()
        # The SDK bounds each closing. Without the shield a cancelled host would leave processes behind.
        with trio.CancelScope(shield=True):
            for connection in self._connections:
                await connection.closed.wait()
        # Nothing runs in it any more; cancelled, it raises nothing into the user's own exception.
        self._nursery.cancel_scope.cancel(reason="MCPTools was left")
        await self._manager.__aexit__(None, None, None)


async def _list_tools(connection: Connection) -> list[Any]:
    client = await connection.client()
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    only = connection.server.only
    if only is None:
        return found
    if unknown := set(only) - {tool.name for tool in found}:
        have = ", ".join(tool.name for tool in found)
        raise InvalidConfig(f"MCP server {connection.server.name!r} has no tool {min(unknown)!r}; it has {have}")
    return [tool for tool in found if tool.name in only]


def _tools(listed: list[tuple[Connection, list[Any]]]) -> tuple[Tool, ...]:
    plain = Counter(_name(tool.name) for _, tools in listed for tool in tools)
    made = []
    for connection, tools in listed:
        for each in tools:
            name = _name(each.name)
            if plain[name] > 1:
                name = _name(f"{connection.server.name}_{each.name}")
            made.append(_tool(connection, each, name))
    for name, times in Counter(tool.name for tool in made).items():
        if times > 1:
            raise InvalidConfig(f"{times} MCP tools would be called {name!r}; name the servers otherwise, or use only=")
    return tuple(made)


def _name(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text)[:_LONGEST_NAME]


def _tool(connection: Connection, described: Any, name: str) -> Tool:
    hints = described.annotations

    async def execute(input: ToolInput) -> ToolOutput:
        result = await connection.call(described.name, dict(input.arguments), input.report)
        return output_of(result)

    return Tool(
        name,
        described.description or described.title or name,
        described.input_schema,
        execute=execute,
        mutating=not (hints is not None and hints.read_only_hint),
        tags=("mcp", connection.server.name),
        label=described.title or name,
        # A little longer than the server has: its own answer to the time-out is the better one.
        timeout_ms=connection.server.call_timeout_ms + 1_000,
    )


def output_of(result: Any) -> ToolOutput:
    """What a tool's result is for the model: its texts; other contents are named. Structured content is metadata."""
    texts = [_text(block) for block in result.content]
    structured = result.structured_content
    if not texts and structured is not None:
        texts = [json.dumps(structured, ensure_ascii=False)]
    metadata = {"structured_content": structured} if structured is not None else None
    return ToolOutput("\n".join(texts), is_error=bool(result.is_error), metadata=metadata)


def _text(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]"
        case "resource":
            text = getattr(block.resource, "text", None)
            return f"[resource {block.resource.uri}]" if text is None else f"[resource {block.resource.uri}]\n{text}"
        case "resource_link":
            return f"[resource {block.uri}: {block.name}]"
    return f"[{block.type}]"

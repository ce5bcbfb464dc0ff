"""Which server, and how it is reached."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...messages.errors import InvalidConfig
from ..extras import import_extra


@attrs.frozen
class MCPServer:
    """One MCP server, by the name that its tools are told apart with.

    Synopsis::

        MCPServer.stdio("time", ["mcp-server-time", "--local-timezone", "Europe/Oslo"])
        MCPServer.http("docs", "http://127.0.0.1:3000/mcp")
    """

    name: str
    """Unique among the servers of an `MCPTools`."""
    target: Any = attrs.field(repr=False)
    """What the SDK's ``Client`` takes: a URL, ``StdioServerParameters``, a transport, a server in this process."""
    only: tuple[str, ...] | None = None
    """Names of the tools to offer. None: all of them."""
    call_timeout_ms: int = 60_000
    """Milliseconds that a call may take, after which the server is told that it is cancelled."""
    connect_timeout_ms: int = 30_000
    """Milliseconds until the server must have said what it can, when it is started and when it is started again."""

    @classmethod
    def stdio(
        cls,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> MCPServer:
        """A server that is a process of ours, spoken to through its stdin and stdout.

        Args:
            command: the program and its arguments.
            env: variables besides the few that such a process gets (``PATH``, ``HOME`` and their like).
            cwd: its working directory.
            settings: further fields of `MCPServer`.

        Raises:
            InvalidConfig: the command is empty or a single string, or the extra is not installed.
        """
        if isinstance(command, str) or not command:
            raise InvalidConfig(
                f"the command of MCP server {name!r} is {command!r}; write a list: ['program', 'argument']"
            )
        mcp: Any = import_extra("mcp")
        program, *arguments = [os.fspath(word) for word in command]
        parameters = mcp.StdioServerParameters(
            command=program, args=arguments, env=None if env is None else dict(env), cwd=cwd
        )
        return cls(name, parameters, **settings)

    @classmethod
    def http(cls, name: str, url: str, **settings: Any) -> MCPServer:
        """A server reached by streamable HTTP. ``settings``: further fields of `MCPServer`.

        Raises:
            InvalidConfig: that is not a URL.
        """
        if not url.startswith(("http://", "https://")):
            raise InvalidConfig(f"the URL of MCP server {name!r} is {url!r}; it begins with http:// or https://")
        return cls(name, url, **settings)

"""One server and the task that owns the connection to it.

The SDK's client holds a nursery open from its entry to its exit, so one task enters and leaves it. A lost server
cancels that nursery and everything in it: therefore the owner has a scope of its own, calls wait in the tasks of their
tools, and what they are told is an error of that one call. Exceptions of the SDK come in groups in groups; here they
become bare.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from ...messages.errors import ToolExecutionError, ToolTimeout
from ..extras import import_extra
from .servers import MCPServer

logger: logging.Logger = logging.getLogger("youyou.mcp")

_CONNECTION_CLOSED = -32000
_REQUEST_TIMEOUT = -32001
_LAST_WORDS = 500


@attrs.define(eq=False)
class Connection:
    """Connects when somebody wants it, again after a loss, and serves calls of any task."""

    server: MCPServer
    _client: Any = None
    _failure: BaseException | None = None
    _wanted: trio.Event = attrs.Factory(trio.Event)
    _settled: trio.Event = attrs.Factory(trio.Event)
    _lost: trio.Event = attrs.Factory(trio.Event)
    _calls: set[trio.CancelScope] = attrs.Factory(set)
    _stderr: str = ""

    closed: trio.Event = attrs.Factory(trio.Event)
    """Set once the owner has ended, and with it the server's process."""
    _scope: trio.CancelScope = attrs.Factory(trio.CancelScope)

    def close(self) -> None:
        """End the connection. Sync; `closed` is set within 5 seconds: the SDK gives a server's process two when it
        closes its stdin, and two after SIGTERM, under a shield."""
        self._scope.cancel(reason="MCPTools was left")

    async def own(self) -> None:
        """Keep the connection, until `close`; run it as a task of its own. Raises nothing."""
        try:
            with self._scope:
                await self._serve()
        finally:
            self.closed.set()

    async def _serve(self) -> None:
        while True:
            await self._wanted.wait()
            # A task that finds the connection lost from now on asks for the next one, with events of its own.
            self._wanted, settled = trio.Event(), self._settled
            self._failure = None
            try:
                await self._connect_and_keep()
            except Exception as error:
                self._failure = bare(error)
                logger.debug("MCP server %r was lost", self.server.name, exc_info=error)
            finally:
                self._client = None
                settled.set()
                for call in self._calls:
                    call.cancel(reason="the MCP server was lost")

    async def _connect_and_keep(self) -> None:
        limit = self.server.connect_timeout_ms / 1000
        with trio.CancelScope(deadline=trio.current_time() + limit) as connecting:
            async with self._target() as target, _client_class()(target) as client:
                connecting.deadline = float("inf")
                self._client, self._lost = client, trio.Event()
                self._settled.set()
                await self._lost.wait()
        if connecting.cancelled_caught:
            raise TimeoutError(f"it did not answer within {limit:g} s")

    @asynccontextmanager
    async def _target(self) -> AsyncIterator[Any]:
        """What to connect to. What a process writes to stderr is logged, and its last words are kept."""
        if type(self.server.target).__name__ != "StdioServerParameters":
            yield self.server.target
            return
        stdio: Any = import_extra("mcp.client.stdio", "mcp")
        reading, writing = os.pipe()
        with os.fdopen(writing, "w") as errlog:
            async with trio.lowlevel.FdStream(reading) as stderr, trio.open_nursery() as nursery:
                nursery.start_soon(self._drain, stderr)
                yield stdio.stdio_client(self.server.target, errlog=errlog)
                nursery.cancel_scope.cancel(reason="the server has ended")

    async def _drain(self, stderr: trio.lowlevel.FdStream) -> None:
        self._stderr = ""
        async for data in stderr:
            text = data.decode("utf-8", "replace")
            self._stderr = (self._stderr + text)[-_LAST_WORDS:]
            logger.debug("MCP server %r: %s", self.server.name, text.rstrip())

    async def client(self) -> Any:
        """The SDK's client, connected.

        Cancellation: a checkpoint if there is something to wait for.

        Raises:
            ToolExecutionError: the server cannot be reached.
        """
        if self._client is None:
            if self._settled.is_set():
                self._settled = trio.Event()
            self._wanted.set()
            await self._settled.wait()
        if self._client is None:
            said = f"; it said: {' '.join(self._stderr.split())}" if self._stderr.strip() else ""
            raise ToolExecutionError(
                f"MCP server {self.server.name!r} cannot be reached: {_words(self._failure)}{said}"
            ) from self._failure
        return self._client

    async def call(self, tool: str, arguments: dict[str, Any], report: Callable[[object], None]) -> Any:
        """Call a tool of the server; its result.

        Cancellation: the server is told that the call is cancelled; whether it stops is its own affair.

        Raises:
            ToolExecutionError: the server refused the call, or was lost; it is connected again with the next call.
            ToolTimeout: it took too long.
        """
        client = await self.client()
        limit = self.server.call_timeout_ms / 1000

        async def progress(done: float, total: float | None, message: str | None) -> None:
            report({"done": done, "total": total, "message": message})

        lost = self._lost
        with trio.CancelScope() as scope:
            self._calls.add(scope)
            try:
                return await client.call_tool(tool, arguments, limit, progress)
            except Exception as error:
                raise self._told(bare(error), lost) from error
            finally:
                self._calls.discard(scope)
        raise ToolExecutionError(f"MCP server {self.server.name!r} was lost during the call: its outcome is unknown")

    def _told(self, error: BaseException, lost: trio.Event) -> Exception:
        code = getattr(error, "code", None)
        if code == _REQUEST_TIMEOUT:
            return ToolTimeout(
                f"MCP server {self.server.name!r} did not answer within {self.server.call_timeout_ms} ms"
            )
        if code is None or code == _CONNECTION_CLOSED:
            # Before its owner has run: the very next call must not meet the dead connection.
            self._client = None if lost is self._lost else self._client
            lost.set()
            return ToolExecutionError(
                f"MCP server {self.server.name!r} was lost during the call: {_words(error)}; the outcome is unknown"
            )
        return ToolExecutionError(f"MCP server {self.server.name!r} refused the call: {error}")


def _client_class() -> Any:
    module: Any = import_extra("mcp")
    return module.Client


def bare(error: BaseException) -> BaseException:
    """The exception inside nested groups of one, or the first that is not a consequence of the others."""
    while isinstance(error, BaseExceptionGroup):
        error = next((each for each in error.exceptions if not _is_cancelled(each)), error.exceptions[0])
    return error


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_cancelled, error.exceptions))
    return isinstance(error, trio.Cancelled)


def _words(error: BaseException | None) -> str:
    return "it ended" if error is None else f"{type(error).__name__}: {error}".rstrip(": ")

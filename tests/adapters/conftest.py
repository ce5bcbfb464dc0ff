"""A real HTTP server on the loopback that says, byte for byte, what a test wrote down."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import attrs
import h11
import pytest
import trio
from youyou.core.ports.protocols import ModelProvider
from youyou.messages.chat import ChatEvent, ChatRequest, Progress, SystemPrompt, ToolCallDelta
from youyou.messages.history import Message, UserMessage


@attrs.frozen
class Seen:
    """A request as the server got it."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@attrs.frozen
class Reply:
    """What to answer: pieces of the body as they go over the wire, with "stall" or "cut" in between."""

    pieces: tuple[bytes | str, ...] = attrs.field(converter=tuple)
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)


class _Gone(Exception):
    """The client has closed the connection."""


@attrs.define(eq=False)
class ApiServer:
    """Answers requests with its replies, in order, and notes what it saw."""

    url: str
    replies: list[Reply] = attrs.field(factory=list)
    otherwise: Reply | None = None
    seen: list[Seen] = attrs.field(factory=list)
    stalled: int = 0
    hung_up: int = 0
    connections: int = 0
    _changed: trio.Event = attrs.field(factory=trio.Event)

    def say(self, *pieces: bytes | str, status: int = 200, **headers: str) -> None:
        """Queue a reply."""
        self.replies.append(Reply(pieces, status, {name.replace("_", "-"): text for name, text in headers.items()}))

    def always(self, *pieces: bytes) -> None:
        """Whatever is asked when no reply is left, answer this."""
        self.otherwise = Reply(pieces)

    def refuse(self, status: int, body: object, **headers: str) -> None:
        """Queue an error in JSON."""
        self.say(json.dumps(body).encode(), status=status, content_type="application/json", **headers)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds, looking whenever something happened."""
        while not condition():
            await self._changed.wait()

    def _notify(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, for as many requests as the client likes."""
        self.connections += 1
        connection = h11.Connection(h11.SERVER)
        async with stream:
            try:
                while await self._exchange(connection, stream):
                    connection.start_next_cycle()
            except (trio.BrokenResourceError, _Gone):
                self.hung_up += 1
                self._notify()

    async def _exchange(self, connection: h11.Connection, stream: trio.SocketStream) -> bool:
        if (request := await self._receive(connection, stream)) is None:
            return False
        self.seen.append(request)
        self._notify()
        reply = self.otherwise if self.otherwise and not self.replies else self.replies.pop(0)
        headers = {"content-type": "text/event-stream", **reply.headers}
        await stream.send_all(connection.send(h11.Response(status_code=reply.status, headers=list(headers.items()))))
        for piece in reply.pieces:
            if piece == "cut":
                return False
            if isinstance(piece, bytes):
                await stream.send_all(connection.send(h11.Data(data=piece)))
            else:
                await self._stall(stream)
        await stream.send_all(connection.send(h11.EndOfMessage()))
        return connection.our_state is h11.DONE

    async def _stall(self, stream: trio.SocketStream) -> None:
        self.stalled += 1
        self._notify()
        if await stream.receive_some() == b"":
            raise _Gone

    async def _receive(self, connection: h11.Connection, stream: trio.SocketStream) -> Seen | None:
        head, body = None, b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode(): text.decode() for name, text in head.headers}
                return Seen(head.target.decode(), headers, json.loads(body))
            else:
                return None


@pytest.fixture
async def server(nursery: trio.Nursery) -> AsyncIterator[ApiServer]:
    """The server, listening on a port of its own."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = ApiServer(f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}")
    nursery.start_soon(partial(trio.serve_listeners, server.serve, listeners))
    yield server
    gc.collect(1)  # what the test dropped warns while the test is still to blame
    nursery.cancel_scope.cancel(reason="the test is over")


@pytest.fixture
def ask() -> Callable[..., ChatRequest]:
    """Make a request: messages, and whatever else differs from the plainest one."""

    def make(*messages: Message, model_id: str = "m1", system: SystemPrompt | None = None, **more: Any) -> ChatRequest:
        said = messages or (UserMessage("hello"),)
        return ChatRequest(model_id, system or SystemPrompt(), said, **more)

    return make


@pytest.fixture
def hear() -> Callable[..., Any]:
    """Send a request and collect what its answer comes to; with ``pieces`` also the signs of work on the way."""

    async def collect(provider: ModelProvider, request: ChatRequest, *, pieces: bool = False) -> list[ChatEvent]:
        async with provider.chat(request) as stream:  # type: ignore[union-attr]  # the SDK providers return managers
            events = [event async for event in stream]
        return [event for event in events if pieces or not isinstance(event, ToolCallDelta | Progress)]

    return collect

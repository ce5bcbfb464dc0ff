"""A real HTTP server on the loopback that says, byte for byte, what a test wrote down."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any

import attrs
import h11
import httpx2
import pytest
import trio
import trio.testing
from youyou.core.ports.protocols import ModelProvider
from youyou.messages.chat import ChatEvent, ChatRequest, Progress, SystemPrompt, ToolCallDelta
from youyou.messages.history import Message, UserMessage

from .dialects import DIALECTS, WHOLE, Dialect, cut


@attrs.frozen
class Seen:
    """A request as the server got it."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@attrs.frozen
class Reply:
    """What to answer: pieces of the body as they go over the wire, with waits in between.

    A number of seconds, "stall" (until the client hangs up), "hold" (until the test says so), or "cut".
    """

    pieces: tuple[bytes | str | float, ...] = attrs.field(converter=tuple)
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)

    def then(self, *more: bytes | str | float) -> Reply:
        """The same with more at its end."""
        return attrs.evolve(self, pieces=(*self.pieces, *more))


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
    held: trio.Event = attrs.field(factory=trio.Event)
    _changed: trio.Event = attrs.field(factory=trio.Event)

    def say(self, *pieces: bytes | str | float, status: int = 200, **headers: str) -> None:
        """Queue a reply."""
        self.replies.append(Reply(pieces, status, {name.replace("_", "-"): text for name, text in headers.items()}))

    def always(self, *pieces: bytes) -> None:
        """Whatever is asked when no reply is left, answer this."""
        self.otherwise = Reply(pieces)

    def refuse(self, status: int, body: object, **headers: str) -> None:
        """Queue an error in JSON."""
        self.say(json.dumps(body).encode(), status=status, content_type="application/json", **headers)

    def stream(self, events: Iterable[str], size: int = WHOLE, *, status: int = 200, **headers: str) -> None:
        """Queue an answer in pieces of ``size`` bytes."""
        self.say(*cut(events, size), status=status, **headers)

    def paced(self, events: Iterable[str], *, seconds: float, last: int = 1_000, **headers: str) -> Reply:
        """An answer with a pause before each of its ``last`` events."""
        told = list(events)
        pauses = [()] * (len(told) - last) + [(seconds,)] * min(last, len(told))
        pieces = [piece for pause, event in zip(pauses, told, strict=True) for piece in (*pause, event.encode())]
        return Reply(pieces, headers={name.replace("_", "-"): text for name, text in headers.items()})

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
        # Each piece is a chunk of its own, which the client gets as such however many arrive in one packet.
        for is_data, pieces in groupby(reply.pieces, lambda piece: isinstance(piece, bytes)):
            if is_data:
                await stream.send_all(b"".join(connection.send(h11.Data(data=piece)) or b"" for piece in pieces))
                continue
            for piece in pieces:
                match piece:
                    case "cut":
                        return False
                    case "hold":
                        await self.held.wait()
                    case int() | float():
                        await trio.sleep(piece)
                    case _:
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


@pytest.fixture
async def http_client() -> AsyncIterator[httpx2.AsyncClient]:
    """A transport that reads no certificates, which would take longer than most tests."""
    async with httpx2.AsyncClient(verify=False) as client:
        yield client


@pytest.fixture
def provider_of(server: ApiServer, http_client: httpx2.AsyncClient) -> Callable[..., Any]:
    """Make a provider for one of the three APIs, at the test's server unless ``url`` says otherwise."""

    def make(api: str, *models: Any, url: str = "", **more: Any) -> Any:
        # The SDKs are slow to import, and only some tests of this folder need them.
        if api == "messages":
            from anthropic import AsyncAnthropic
            from youyou.adapters.anthropic import AnthropicProvider

            anthropic = AsyncAnthropic(base_url=url or server.url, api_key="sesame", http_client=http_client)
            return AnthropicProvider(models or ["m1"], client=anthropic, **more)
        from openai import AsyncOpenAI
        from youyou.adapters.openai import OpenAIProvider

        client = AsyncOpenAI(base_url=f"{url or server.url}/v1", api_key="sesame", http_client=http_client)
        return OpenAIProvider(models or ["m1"], client=client, api=api, **more)  # type: ignore[arg-type]

    return make


@pytest.fixture(params=list(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """Each of the three APIs."""
    return DIALECTS[request.param]


@pytest.fixture
def provider(dialect: Dialect, provider_of: Callable[..., Any]) -> Any:
    """A provider for the API of the test."""
    return provider_of(dialect.name)


@pytest.fixture(params=[(7,), pytest.param((WHOLE, 1, 4096), marks=pytest.mark.long)], ids=["7", "whole, 1, 4096"])
def sizes(request: pytest.FixtureRequest) -> tuple[int, ...]:
    """How an answer is cut into pieces."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def waiting_is_over() -> trio.testing.MockClock:
    """A clock that jumps when nothing moves any more, on the wire either."""
    # What one socket of this process sends, the other one has at once; the cushion is for a machine that is busy.
    return trio.testing.MockClock(autojump_threshold=0.05)

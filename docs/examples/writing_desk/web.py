"""The agent behind a page: an ASGI application without a framework, served by hypercorn on Trio.

    GET  /profiles      what the agent can be, as JSON; all that the page knows comes from here
    POST /turns         {"domain", "skill", "message"}: a turn's events as server-sent events
    POST /continue      the same for a pipeline that was stopped
    POST /cancel        stop the running turn
    POST /steer         {"message"}: put a message into the running turn

One reader, one conversation: choosing another domain or skill begins a new session, once no turn runs. A browser that
goes away stops its turn. Knows nothing of the tools and profiles that there are.

Only the page itself is obeyed: a request must name this server as its host, and this server's page as its origin where
it has one, since any page that a reader has open may send requests to 127.0.0.1, and a name of its own may lead there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import msgspec
import trio
import youyou

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

HERE = Path(__file__).parent
FILES = {"/": ("index.html", "text/html"), "/page.js": ("page.js", "text/javascript")}
JSON = "application/json"
LONGEST_BODY = 1024 * 1024
OVER = (youyou.TurnStatus.COMPLETED, youyou.TurnStatus.FAILED, youyou.TurnStatus.CANCELLED)
OF_THE_REQUEST = (
    youyou.ErrorCode.INVALID_INPUT,
    youyou.ErrorCode.CONTENT_NOT_SUPPORTED,
    youyou.ErrorCode.SKILL_NOT_FOUND,
    youyou.ErrorCode.PROFILE_NOT_FOUND,
)
"""What is wrong with the request itself; other errors are about when it came."""


class Refused(Exception):
    """A request that is answered with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def served_at(port: int) -> frozenset[str]:
    """What a browser on this computer calls a server on this port."""
    return frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})


@attrs.frozen
class Answer:
    """A whole response."""

    status: int
    body: bytes
    media_type: str = JSON

    @classmethod
    def of(cls, value: object, status: int = 200) -> Answer:
        """``value`` as JSON."""
        return cls(status, msgspec.json.encode(youyou.converter.unstructure(value)))


@attrs.define(eq=False)
class Front:
    """The ASGI application in front of one running agent."""

    agent: youyou.Agent
    hosts: frozenset[str] = served_at(8000)
    session: youyou.Session | None = None
    turn: youyou.RunningTurn | None = None
    chosen: tuple[str | None, str | None] = (None, None)
    _one_at_a_time: trio.Lock = attrs.Factory(trio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await stay(receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # before it was accepted: the handshake is answered with 403
            return
        try:
            check_sender(scope, self.hosts)
            answer = await self._answer(scope, receive, send)
        except youyou.AgentError as error:
            answer = Answer.of(error, 400 if error.code in OF_THE_REQUEST else 409)
        except Refused as error:
            answer = Answer.of({"message": str(error)}, error.status)
        if answer is not None:
            await begin(send, answer.status, answer.media_type)
            await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Answer | None:
        match scope["method"], scope["path"]:
            case "GET", ("/" | "/page.js") as path:
                name, media_type = FILES[path]
                return Answer(200, (HERE / name).read_bytes(), media_type)
            case "GET", "/profiles":
                return Answer.of(self.agent.profiles())
            case "POST", path if not takes_json(scope):
                return Answer.of({"message": f"send {path} as {JSON}"}, 415)
            case "POST", "/cancel":
                return Answer.of({"cancelled": self.turn is not None and self.turn.cancel()})
            case "POST", "/steer":
                asked = await asked_of(receive)
                return Answer.of({"taken": self.turn is not None and self.turn.steer(asked.message)})
            case "POST", "/turns":
                await self._stream(await self._begin(await asked_of(receive)), receive, send)
            case "POST", "/continue" if self.session is not None:
                self.turn = await self.session.continue_pipeline()
                await self._stream(self.turn, receive, send)
            case _:
                return Answer.of({"message": "there is nothing here"}, 404)
        return None

    async def _begin(self, asked: Asked) -> youyou.RunningTurn:
        """A turn of the session of this domain and skill: the open one, or a new one in its place.

        All that may be wrong is looked at before anything is closed: a slip of one reader must not stop another.
        """
        chosen = (asked.domain, asked.skill)
        async with self._one_at_a_time:
            if self.turn is not None and self.turn.status not in OVER:
                raise youyou.TurnBusy("another turn is running: wait for it, or cancel it")
            if self.session is None or self.chosen != chosen:
                self._check_profiles(asked)
                if self.session is not None:
                    await self.session.close(grace=1)
                    self.session = None
                config = youyou.SessionConfig(domain=asked.domain, skill=asked.skill)
                self.session = await self.agent.new_session(config)
                self.chosen = chosen
            self.turn = await self.session.send_message(asked.message)
            return self.turn

    def _check_profiles(self, asked: Asked) -> None:
        known = {profile.id for profile in self.agent.profiles()}
        for wanted in (asked.domain, asked.skill):
            if wanted is not None and wanted not in known:
                raise youyou.ProfileNotFound(
                    f"there is no profile {wanted!r}; GET /profiles tells those that there are"
                )

    async def _stream(self, turn: youyou.RunningTurn, receive: Receive, send: Send) -> None:
        async with turn, trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when_gone, receive, turn)
            await begin(send, 200, "text/event-stream")
            async for event in turn:
                data = f"data: {youyou.to_json(event)}\n\n".encode()
                await send({"type": "http.response.body", "body": data, "more_body": True})
            nursery.cancel_scope.cancel(reason="the turn is over")
        await send({"type": "http.response.body", "body": b""})


async def stay(receive: Receive, send: Send) -> None:
    """There is nothing to start or to stop here: the agent is older than the server, and outlives it."""
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})


async def cancel_when_gone(receive: Receive, turn: youyou.RunningTurn) -> None:
    """Stop the turn when nobody is left to read it."""
    while (await receive())["type"] != "http.disconnect":
        pass
    turn.cancel()


async def begin(send: Send, status: int, media_type: str) -> None:
    """The head of a response."""
    headers = [(b"content-type", f"{media_type}; charset=utf-8".encode()), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


def takes_json(scope: Scope) -> bool:
    """Whether the request says that it is JSON, which a form of another site cannot."""
    return any(name == b"content-type" and value.startswith(JSON.encode()) for name, value in scope["headers"])


def check_sender(scope: Scope, hosts: frozenset[str]) -> None:
    """Refuse what does not come from a page of this server, whatever name led the browser here."""
    headers = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    host = [value for name, value in headers if name == b"host"]
    if len(host) != 1 or host[0].lower() not in hosts:
        raise Refused(403, f"this server is {' or '.join(sorted(hosts))}")
    if any(value.lower() not in {f"http://{each}" for each in hosts} for name, value in headers if name == b"origin"):
        raise Refused(403, "only the page of this server may ask")


class Asked(msgspec.Struct):
    """What a turn, or a message into it, is asked with."""

    message: str
    domain: str | None = None
    skill: str | None = None

    def __post_init__(self) -> None:
        if not self.message.strip():
            raise ValueError("the message is empty")


async def asked_of(receive: Receive) -> Asked:
    """The JSON object that was sent."""
    whole = bytearray()
    while (part := await receive())["type"] == "http.request":
        whole += part.get("body", b"")
        if len(whole) > LONGEST_BODY:
            raise Refused(413, f"more than {LONGEST_BODY} bytes are not read")
        if not part.get("more_body"):
            break
    try:
        return msgspec.json.decode(whole, type=Asked)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise Refused(400, f"not what this address takes: {error}") from error

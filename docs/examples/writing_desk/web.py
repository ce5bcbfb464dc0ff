"""The agent behind a page: an ASGI application without a framework, served by hypercorn on Trio.

    GET  /profiles      what the agent can be, as JSON; all that the page knows comes from here
    POST /turns         {"domain", "skill", "message"}: a turn's events as server-sent events
    POST /continue      the same for a pipeline that was stopped
    POST /cancel        stop the running turn
    POST /steer         {"message"}: put a message into the running turn

One reader, one conversation: choosing another domain or skill begins a new session. A browser that goes away stops its
turn. Knows nothing of the tools and profiles that there are.
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
    session: youyou.Session | None = None
    turn: youyou.RunningTurn | None = None
    chosen: tuple[str | None, str | None] = (None, None)
    _one_at_a_time: trio.Lock = attrs.Factory(trio.Lock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await stay(receive, send)
            return
        try:
            answer = await self._answer(scope, receive, send)
        except youyou.AgentError as error:
            answer = Answer.of(error, 409)
        except (KeyError, msgspec.MsgspecError) as error:
            answer = Answer.of({"message": f"not what this address takes: {error}"}, 400)
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
                message = (await body_of(receive))["message"]
                return Answer.of({"taken": self.turn is not None and self.turn.steer(message)})
            case "POST", "/turns":
                asked = await body_of(receive)
                session = await self._session(asked.get("domain"), asked.get("skill"))
                await self._stream(await session.send_message(asked["message"]), receive, send)
            case "POST", "/continue" if self.session is not None:
                await self._stream(await self.session.continue_pipeline(), receive, send)
            case _:
                return Answer.of({"message": "there is nothing here"}, 404)
        return None

    async def _session(self, domain: str | None, skill: str | None) -> youyou.Session:
        """The session of this domain and skill: the open one, or a new one in its place."""
        async with self._one_at_a_time:
            if self.session is None or self.chosen != (domain, skill):
                if self.session is not None:
                    await self.session.close(grace=1)
                    self.session = None
                self.session = await self.agent.new_session(youyou.SessionConfig(domain=domain, skill=skill))
                self.chosen = (domain, skill)
            return self.session

    async def _stream(self, turn: youyou.RunningTurn, receive: Receive, send: Send) -> None:
        self.turn = turn
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


async def body_of(receive: Receive) -> dict[str, Any]:
    """The JSON object that was sent."""
    whole = b""
    while (part := await receive())["type"] == "http.request":
        whole += part.get("body", b"")
        if not part.get("more_body"):
            break
    return msgspec.json.decode(whole, type=dict[str, Any])

"""The example of the docs runs: every profile, every tool, its web front end without a network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import jsonschema_rs
import pytest
import trio
import youyou
from youyou import SessionConfig, StepEnd, ToolCallEnd, TurnStatus
from youyou.core.profiles.discovery_schema import discovery_schema
from youyou.testing import InMemorySessionStorage


@pytest.mark.parametrize(
    ("skill", "steps", "tools"),
    [
        ("outline", [], ["outline"]),
        ("split-chapter", ["outline", "split"], ["outline", "split_chapter"]),
        ("concept-cards", ["read", "points", "cards"], ["split_chapter", "concept_cards"]),
        ("review-questions", ["tidy", "ask"], ["outline", "review_questions"]),
        ("blurb", [], []),
    ],
)
async def test_each_skill_runs(desk: Any, autojump_clock: Any, skill: str, steps: list[str], tools: list[str]) -> None:
    """With the stand-in for a model each flow comes to its end by its steps, each with its own tools."""
    async with (
        desk.agent.desk_agent(desk.model.StandIn()).build() as agent,
        await agent.new_session(SessionConfig(domain="study-notes", skill=skill)) as session,
    ):
        turn = await session.send_message("the chapter tides")
        events = [event.payload async for event in turn]

    assert TurnStatus.COMPLETED == events[-1].status
    assert steps == [event.step for event in events if isinstance(event, StepEnd) and event.success]
    assert tools == [event.tool_name for event in events if isinstance(event, ToolCallEnd) and event.success]
    kept = (len(desk.shelf.SHELF.cards), len(desk.shelf.SHELF.questions))
    assert (int("concept_cards" in tools), int("review_questions" in tools)) == kept


async def test_a_flow_goes_on_after_the_program_died(desk: Any, autojump_clock: Any) -> None:
    """Stopped in its last step and opened by another agent, only that step is carried out."""
    storage = InMemorySessionStorage()
    async with (
        desk.agent.desk_agent(desk.model.StandIn(), storage).build() as agent,
        await agent.new_session(SessionConfig(skill="concept-cards")) as session,
    ):
        turn = await session.send_message("the chapter tides")
        async for event in turn:
            if isinstance(event.payload, StepEnd) and event.payload.step == "points":
                turn.cancel()
    async with (
        desk.agent.desk_agent(desk.model.StandIn(), storage).build() as agent,
        await agent.resume_session(session.id) as again,
    ):
        turn = await again.continue_pipeline()
        steps = [event.payload.step async for event in turn if isinstance(event.payload, StepEnd)]

    assert (["cards"], 1) == (steps, len(desk.shelf.SHELF.cards))


@pytest.mark.parametrize("chapter", ["", "tides", "lighthouse"])
async def test_the_tools_read_the_shelf(desk: Any, chapter: str) -> None:
    """Each chapter has headings, and an unknown one is answered with those that there are."""
    assert 3 == len(await desk.tools.outline(chapter))
    with pytest.raises(LookupError, match="there are: tides, lighthouse"):
        await desk.tools.outline("moon")


@attrs.define(eq=False)
class Client:
    """A browser of the ASGI application. ``gone``: set when it goes away."""

    app: Any
    gone: trio.Event = attrs.Factory(trio.Event)
    status: int = 0
    media_type: str = ""
    body: bytes = b""

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: bytes = b"application/json",
        headers: Sequence[tuple[bytes, bytes]] = ((b"host", b"127.0.0.1:8000"),),
    ) -> Any:
        """One request to its end: the JSON that came back, or the payloads of the events."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = [{"type": "http.request", "body": data}]
        scope = {"type": "http", "method": method, "path": path, "headers": [(b"content-type", content_type), *headers]}

        async def receive() -> Any:
            if sent:
                return sent.pop()
            await self.gone.wait()
            return {"type": "http.disconnect"}

        self.body = b""
        await self.app(scope, receive, self._take)
        if self.media_type.startswith("text/event-stream"):
            return [json.loads(each[6:])["payload"] for each in self.body.decode().split("\n\n")[:-1]]
        return json.loads(self.body) if self.media_type.startswith("application/json") else self.body.decode()

    async def _take(self, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.media_type = dict(message["headers"])[b"content-type"].decode()
        else:
            self.body += message["body"]


@pytest.fixture
def served(desk: Any) -> Any:
    """Opens clients of the running application."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[Any]:
        async with desk.agent.desk_agent(desk.model.StandIn()).build() as agent:
            front = desk.web.Front(agent)
            yield lambda: Client(front)

    return serve


async def test_the_page_comes_with_its_script(served: Any, autojump_clock: Any) -> None:
    """Both files, each with its type; nothing else is there."""
    async with served() as client:
        asking = client()
        page = await asking.ask("GET", "/")
        assert (200, "text/html; charset=utf-8") == (asking.status, asking.media_type)
        assert 'src="page.js"' in page
        script = await asking.ask("GET", "/page.js")
        assert (200, "text/javascript; charset=utf-8") == (asking.status, asking.media_type)
        assert 'fetch("profiles")' in script
        await asking.ask("GET", "/../shelf.py")
        assert 404 == asking.status


async def test_profiles_are_told_by_the_schema(served: Any, autojump_clock: Any) -> None:
    """What the page gets is what the shipped schema describes."""
    async with served() as client:
        told = await client().ask("GET", "/profiles")

    assert jsonschema_rs.validator_for(discovery_schema()).is_valid(told)
    assert 8 == len(told)


async def test_a_turn_is_streamed(served: Any, autojump_clock: Any) -> None:
    """All events of the turn, the terminal one last."""
    async with served() as client:
        events = await client().ask("POST", "/turns", {"skill": "concept-cards", "message": "tides"})

    kinds = [event["type"] for event in events]
    assert ["read", "points", "cards"] == [event["step"] for event in events if event["type"] == "StepStart"]
    assert ("TurnComplete", "completed") == (kinds[-1], events[-1]["status"])


async def test_a_turn_is_stopped_and_goes_on(served: Any, autojump_clock: Any) -> None:
    """Another request cancels it; its stream ends with the terminal event; the pipeline can go on."""
    async with served() as client, trio.open_nursery() as nursery:
        reading, seen = client(), []

        async def read() -> None:
            seen.extend(await reading.ask("POST", "/turns", {"skill": "concept-cards", "message": "tides"}))

        nursery.start_soon(read)
        await trio.sleep(3)
        cancelled = await client().ask("POST", "/cancel", {})
        await trio.sleep(1)
        assert ({"cancelled": True}, "TurnCancelled") == (cancelled, seen[-1]["type"])
        went_on = await client().ask("POST", "/continue", {})

    finished = [event["step"] for event in seen if event["type"] == "StepEnd" and event["success"]]
    later = [event["step"] for event in went_on if event["type"] == "StepEnd"]
    assert ["read", "points", "cards"] == finished + later
    assert finished and later


async def test_a_browser_that_goes_away_stops_its_turn(served: Any, autojump_clock: Any) -> None:
    """The turn is cancelled, and the next one can begin."""
    async with served() as client, trio.open_nursery() as nursery:
        leaving = client()
        nursery.start_soon(leaving.ask, "POST", "/turns", {"message": "tides"})
        await trio.sleep(0.1)
        leaving.gone.set()
        await trio.sleep(0.1)
        events = await client().ask("POST", "/turns", {"message": "again"})

    assert b"TurnCancelled" in leaving.body
    assert "completed" == events[-1]["status"]


async def test_a_message_is_put_into_the_running_turn(served: Any, autojump_clock: Any) -> None:
    """While a turn runs it is taken; afterwards it is not."""
    async with served() as client, trio.open_nursery() as nursery:
        reading = client()
        nursery.start_soon(reading.ask, "POST", "/turns", {"message": "tides"})
        await trio.sleep(0.1)
        taken = await client().ask("POST", "/steer", {"message": "and this"})
        await trio.sleep(60)
        late = await client().ask("POST", "/steer", {"message": "too late"})

    assert ({"taken": True}, {"taken": False}) == (taken, late)


async def test_a_second_turn_is_refused_while_one_runs(served: Any, autojump_clock: Any) -> None:
    """What the runtime refuses comes back as its error."""
    async with served() as client, trio.open_nursery() as nursery:
        reading, second = client(), client()
        nursery.start_soon(reading.ask, "POST", "/turns", {"message": "tides"})
        await trio.sleep(0.1)
        refused = await second.ask("POST", "/turns", {"message": "again"})
        reading.gone.set()

    assert (409, "TURN_BUSY") == (second.status, refused["code"])


@pytest.mark.parametrize(
    ("path", "body", "content_type", "status"),
    [
        ("/turns", {"message": ""}, b"application/json", 400),
        ("/turns", {"message": "x", "skill": "nothing"}, b"application/json", 400),
        ("/turns", {"message": "x", "skill": 7}, b"application/json", 400),
        ("/turns", {"message": ["x"]}, b"application/json", 400),
        ("/turns", b"", b"application/json", 400),
        ("/turns", b"\xff", b"application/json", 400),
        ("/turns", b'{"message": "\\ud800"}', b"application/json", 400),
        ("/turns", b'{"message": "x", "other": ' + b"[" * 5_000, b"application/json", 400),
        ("/turns", b"x" * (1024 * 1024 + 1), b"application/json", 413),
        ("/steer", {"message": 7}, b"application/json", 400),
        ("/turns", {}, b"application/json", 400),
        ("/turns", [], b"application/json", 400),
        ("/turns", {"message": "x"}, b"text/plain", 415),
        ("/cancel", {}, b"application/x-www-form-urlencoded", 415),
        ("/continue", {}, b"application/json", 404),
        ("/nothing", {}, b"application/json", 404),
    ],
)
async def test_what_makes_no_sense_is_refused(
    served: Any, autojump_clock: Any, path: str, body: Any, content_type: bytes, status: int
) -> None:
    """With a status and a sentence, and the next request is answered."""
    async with served() as client:
        asking = client()
        answer = await asking.ask("POST", path, body, content_type)
        assert (status, True) == (asking.status, bool(answer["message"]))
        await asking.ask("GET", "/profiles")
        assert 200 == asking.status


async def test_another_skill_begins_another_session(served: Any, autojump_clock: Any) -> None:
    """Choosing differently closes the open session; choosing the same goes on with it."""
    async with served() as client:
        await client().ask("POST", "/turns", {"message": "one"})
        first = client().app.session.id
        await client().ask("POST", "/turns", {"message": "two", "domain": None})
        same = client().app.session.id
        await client().ask("POST", "/turns", {"message": "three", "skill": "outline"})
        other = client().app.session

    assert first == same != other.id
    assert isinstance(other, youyou.Session)


ELSEWHERE = [
    ((b"host", b"evil.example:8000"),),
    ((b"host", b"127.0.0.1:8001"),),
    ((b"host", b"127.0.0.1:8000.evil.example"),),
    (),
    ((b"host", b"127.0.0.1:8000"), (b"host", b"evil.example")),
    ((b"host", b"127.0.0.1:8000"), (b"origin", b"http://evil.example")),
    ((b"host", b"127.0.0.1:8000"), (b"origin", b"null")),
    ((b"host", b"127.0.0.1:8000"), (b"origin", b"https://127.0.0.1:8000")),
]


@pytest.mark.parametrize("headers", ELSEWHERE)
async def test_another_page_is_not_obeyed(served: Any, autojump_clock: Any, headers: Any) -> None:
    """Neither under another name for this computer, nor from another origin; the turn that runs is not stopped."""
    async with served() as client, trio.open_nursery() as nursery:
        reading, other = client(), client()
        nursery.start_soon(reading.ask, "POST", "/turns", {"message": "tides"})
        await trio.sleep(0.1)
        for method, path in (("POST", "/cancel"), ("POST", "/turns"), ("GET", "/profiles"), ("GET", "/")):
            await other.ask(method, path, {"message": "x"}, headers=headers)
            assert 403 == other.status

    assert b'"status":"completed"' in reading.body


async def test_the_page_itself_is_obeyed(served: Any, autojump_clock: Any) -> None:
    """With the origin that a browser sends, under both names of the computer."""
    async with served() as client:
        for host in (b"127.0.0.1:8000", b"localhost:8000"):
            asking = client()
            headers = ((b"host", host), (b"origin", b"http://" + host))
            await asking.ask("POST", "/cancel", {}, headers=headers)
            assert 200 == asking.status


@pytest.mark.parametrize(
    ("asked", "status"),
    [({"skill": "no-such", "message": "x"}, 409), ({"message": " "}, 400), ({"skill": "outline", "message": "x"}, 409)],
)
async def test_a_second_request_never_ends_a_running_turn(
    served: Any, autojump_clock: Any, asked: Any, status: int
) -> None:
    """Good or bad: what it asks for waits until the turn is over."""
    async with served() as client, trio.open_nursery() as nursery:
        reading, second = client(), client()
        nursery.start_soon(reading.ask, "POST", "/turns", {"message": "tides"})
        await trio.sleep(0.1)
        await second.ask("POST", "/turns", asked)
        assert status == second.status

    assert b'"status":"completed"' in reading.body


async def test_a_bad_choice_leaves_the_open_session_alone(served: Any, autojump_clock: Any) -> None:
    """A profile that there is not is found out before anything is closed."""
    async with served() as client:
        await client().ask("POST", "/turns", {"message": "one"})
        before = client().app.session
        await client().ask("POST", "/turns", {"message": "two", "skill": "no-such"})

        assert (before, True) == (client().app.session, before.is_open)


async def test_a_handshake_of_a_websocket_is_refused(served: Any) -> None:
    """Before it is accepted, which servers answer with 403."""
    sent = []

    async def take(message: Any) -> None:
        sent.append(message)

    async with served() as client:
        await client().app({"type": "websocket", "path": "/", "headers": []}, trio.sleep_forever, take)

    assert [{"type": "websocket.close"}] == sent

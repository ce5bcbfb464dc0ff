"""google-adk: `InMemoryRunner` and its session service; stop: `run_async(abort_signal=asyncio.Event())`.

Killed and resumed: `SqliteSessionService`. Tools run at once; there is no documented way to run them one after another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from .world import Item, World

NAME = "google_adk"
WAYS = ["abort_signal.set()"]
DURABLE = True
WITHOUT = {"retry": "no retry of its own: left to the HTTP client"}


def items(contents: Any) -> list[Item]:
    """A request in the world's words."""
    found: list[Item] = []
    for content in contents:
        parts = content.parts or []
        text = "".join(part.text or "" for part in parts)
        calls = [part.function_call.id for part in parts if part.function_call]
        results = [part.function_response for part in parts if part.function_response]
        found += [("result", result.id, str(result.response)) for result in results]
        if content.role == "model":
            found.append(("assistant", text, calls))
        elif text or not results:
            found.append(("user", text))
    return found


class Fake(BaseLlm):
    """The world's model."""

    model: str = "fake"
    world: Any = None

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        text, calls = "", []
        async for event in self.world.model(items(llm_request.contents)):
            if event[0] == "text":
                text += event[1]
                content = types.Content(role="model", parts=[types.Part(text=event[1])])
                yield LlmResponse(content=content, partial=True)
            else:
                call = types.FunctionCall(id=event[1], name=event[2], args={"x": event[3]})
                calls.append(types.Part(function_call=call))
        parts = ([types.Part(text=text)] if text else []) + calls
        content = types.Content(role="model", parts=parts)
        yield LlmResponse(content=content, partial=False, finish_reason=types.FinishReason.STOP)


class Session:
    """One runner and one session of its service."""

    def __init__(self, world: World, way: str, folder: Path | None = None) -> None:
        async def read(x: int) -> str:
            """Reads."""
            return await world.tool("read", x)

        async def slow(x: int) -> str:
            """Takes long."""
            return await world.tool("slow", x)

        async def write(x: int) -> str:
            """Writes."""
            return await world.tool("write", x)

        def block(x: int) -> str:
            """Blocks its thread."""
            return world.block(x)

        agent = LlmAgent(name="a", model=Fake(world=world), instruction="help", tools=[read, slow, write, block])
        if folder:
            service = SqliteSessionService(str(folder / "sessions.db"))
            self.runner = Runner(agent=agent, app_name="app", session_service=service)
        else:
            self.runner = InMemoryRunner(agent=agent, app_name="app")
        self.id: str | None = None

    async def turn(self, text: str, saw: Callable[[str], None]) -> str:
        self.abort = asyncio.Event()
        if self.id is None:
            service, who = self.runner.session_service, {"app_name": "app", "user_id": "u"}
            found = await service.get_session(session_id="s", **who)
            self.id = (found or await service.create_session(session_id="s", **who)).id
        async for event in self.runner.run_async(
            user_id="u",
            session_id=self.id,
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
            abort_signal=self.abort,
            new_message=types.Content(role="user", parts=[types.Part(text=text)]),
        ):
            parts = event.content.parts if event.content and event.content.parts and event.partial else []
            saw("".join(part.text or "" for part in parts))
            if event.error_code:
                return f"error {event.error_code}"
        return "returned"

    def stop(self) -> bool:
        self.abort.set()
        return True

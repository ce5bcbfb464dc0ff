"""A house of many sessions for tests: one storage, one provider that counts how often it is entered, virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import trio
import youyou
from youyou.hosting import SessionHost
from youyou.messages.content import text_of
from youyou.testing import InMemorySessionStorage


@attrs.define(eq=False)
class EnteredProvider:
    """Answers "echo: ..." after ``seconds``, or asks for a tool that the message names; counts its lives."""

    house: House
    id: str = "echo"
    entered: int = 0
    left: int = 0

    def models(self) -> list[youyou.ModelInfo]:
        return [youyou.ModelInfo("echo", "Echo", 100_000, youyou.ModelCapabilities())]

    async def __aenter__(self) -> EnteredProvider:
        self.entered += 1
        self.house.log.append("provider enters")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.left += 1
        self.house.log.append("provider leaves")

    async def chat(self, request: youyou.ChatRequest) -> Any:
        last = request.messages[-1]
        await trio.sleep(self.house.seconds)
        if isinstance(last, youyou.UserMessage) and (said := text_of(last.content)).startswith("call "):
            yield youyou.ToolCall("c1", said.removeprefix("call "), {})
            yield youyou.Done(None, youyou.StopReason.TOOL_USE)
            return
        yield youyou.TextDelta(f"answer {sum(isinstance(m, youyou.UserMessage) for m in request.messages)}")
        yield youyou.Done()


@attrs.define(eq=False)
class Ear:
    """A plugin that tells when it begins and ends, and what its agent does."""

    house: House
    id: str = "ear"
    display_name: str = "Ear"
    description: str = ""

    async def initialize(self, config: Any) -> None:
        self.house.ears.append(self)
        if self.house.breaks:
            raise self.house.breaks.pop()
        self.house.log.append("plugin begins")

    def apply(self, ctx: Any) -> None:
        ctx.tap(youyou.SessionEnd, self.ends)

    async def ends(self, event: youyou.SessionEnd) -> None:
        self.house.log.append(f"end of {event.session_id}")

    async def shutdown(self) -> None:
        self.house.log.append("plugin ends")


@attrs.define(eq=False)
class House:
    """What the hosts of a test are made of."""

    storage: Any = attrs.Factory(InMemorySessionStorage)
    memory: Any = None
    seconds: float = 1.0
    log: list[str] = attrs.Factory(list)
    ears: list[Ear] = attrs.Factory(list)
    breaks: list[BaseException] = attrs.Factory(list)
    tools: list[Any] = attrs.Factory(list)
    providers: list[EnteredProvider] = attrs.Factory(list)
    config: dict[str, Any] = attrs.Factory(dict)

    def builder(self) -> Any:
        """A builder with parts of its own, but for the storages."""
        self.providers.append(EnteredProvider(self))
        builder = youyou.AgentBuilder(youyou.AgentConfig("echo", **self.config))
        builder.register_model_provider(self.providers[-1]).register_plugin(Ear(self))
        builder.register_session_storage(self.storage)
        if self.memory is not None:
            builder.register_memory_storage(self.memory)
        for tool in self.tools:
            builder.register_tool(tool)
        return builder

    def host(self, **options: Any) -> SessionHost:
        """A host that is not entered."""
        return SessionHost(self.builder, **options)


async def answer(session: youyou.Session, text: str = "hi") -> str:
    """One whole turn: the text of its answer."""
    result = await (await session.send_message(text)).result()
    assert result.status is youyou.TurnStatus.COMPLETED, result.error
    last = session.history[-1]
    assert isinstance(last, youyou.AssistantMessage)
    return text_of(last.content)


@pytest.fixture
def house() -> Iterator[House]:
    """Parts for hosts."""
    yield House()


@pytest.fixture
def say() -> Any:
    """One whole turn."""
    return answer

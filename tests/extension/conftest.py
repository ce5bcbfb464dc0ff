"""The stage for profiles, modes and steering: one agent whose profiles, tools and answers a test writes down.

    async def test_something(stage, autojump_clock):
        stage.profile("writer", tools=("save",))
        stage.says(say("hello"))
        async with stage.session(skill="writer") as session:
            assert ["save"] == stage.offered(await stage.turn(session))

After each test the stage looks at what is left: no request broke semantics 5 and no stream is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio
from youyou import (
    Agent,
    AgentBuilder,
    AgentConfig,
    AgentProfile,
    AssistantMessage,
    ChatRequest,
    Message,
    Metadata,
    Notices,
    Pipeline,
    ProfileKind,
    RetryPolicy,
    Session,
    SessionConfig,
    Step,
    SystemMessage,
    Tool,
    ToolCall,
    ToolInput,
    ToolOutput,
    ToolResult,
    TurnResult,
    UserMessage,
)
from youyou.messages.content import text_of
from youyou.testing import InMemorySessionStorage, StrictProvider
from youyou.testing.agents.scripted import Round

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
QUICK_RETRY = RetryPolicy(jitter=0.0)


class AnsweringProvider(StrictProvider):
    """A strict provider whose answer depends on the request, for runs that may begin anywhere."""

    def __init__(self, answer: Callable[[ChatRequest], Round]) -> None:
        super().__init__([])
        self._answer = answer

    def chat(self, request: ChatRequest) -> Any:
        self._rounds.append(self._answer(request))
        return super().chat(request)


@attrs.define(eq=False)
class Tap:
    """A plugin with one hook."""

    id: str
    event_class: type[Any]
    handler: Callable[[Any], Awaitable[Any]]
    display_name: str = "Tap"
    description: str = "Taps one hook."

    async def initialize(self, config: Any) -> None:
        """Nothing to prepare."""

    def apply(self, ctx: Any) -> None:
        """Tap the hook."""
        ctx.tap(self.event_class, self.handler)

    async def shutdown(self) -> None:
        """Nothing to leave."""


@attrs.define(eq=False)
class Stage:
    """Parts are added before the agent is opened; several agents may follow each other on one store."""

    provider: StrictProvider = attrs.Factory(lambda: StrictProvider([]))
    store: Any = attrs.Factory(InMemorySessionStorage)
    tools: dict[str, Tool] = attrs.Factory(dict)
    profiles: list[AgentProfile] = attrs.Factory(list)
    plugins: list[Tap] = attrs.Factory(list)
    runs: Counter[str] = attrs.Factory(Counter)
    """How often each tool has run."""
    config: AgentConfig = attrs.Factory(lambda: AgentConfig("scripted", notices=Notices.english(), retry=QUICK_RETRY))

    def says(self, *rounds: Round) -> None:
        """What the model answers next, a round for each request."""
        self.provider._rounds.extend(rounds)

    def answers(self, answer: Callable[[ChatRequest], Round]) -> None:
        """The model answers each request as ``answer`` says."""
        self.provider = AnsweringProvider(answer)

    def configure(self, **changes: Any) -> None:
        """Change the agent's configuration."""
        self.config = attrs.evolve(self.config, **changes)

    def tool(self, name: str, *tags: str, takes: float = 0.0, mutating: bool = False) -> None:
        """Register a tool that counts its runs."""

        async def execute(given: ToolInput) -> ToolOutput:
            self.runs[name] += 1
            await trio.sleep(takes)
            return ToolOutput(f"{name} ran")

        self.tools[name] = Tool(name, f"Does {name}.", {"type": "object"}, execute, mutating, tags)

    def profile(self, id: str, kind: ProfileKind = ProfileKind.SKILL, **fields: Any) -> AgentProfile:
        """Register a profile."""
        self.profiles.append(AgentProfile(id, kind, id.title(), f"About {id}.", **fields))
        return self.profiles[-1]

    def pipeline(self, *steps: Step, id: str = "flow", **fields: Any) -> None:
        """Register a skill that follows these steps."""
        self.profile(id, mode=Pipeline(steps), **fields)

    def on(self, event_class: type[Any], handler: Callable[[Any], Awaitable[Any]]) -> None:
        """Tap a hook."""
        self.plugins.append(Tap(f"tap{len(self.plugins)}", event_class, handler))

    def builder(self) -> Any:
        """A builder with all parts registered."""
        builder: Any = AgentBuilder(self.config).register_model_provider(self.provider)
        for tool in self.tools.values():
            builder.register_tool(tool)
        for profile in self.profiles:
            builder.register_profile(profile)
        for plugin in self.plugins:
            builder.register_plugin(plugin)
        return builder.register_session_storage(self.store)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Agent]:
        """A running agent."""
        with trio.fail_after(3600):
            async with self.builder().build() as agent:
                yield agent

    @asynccontextmanager
    async def session(self, **config: Any) -> AsyncIterator[Session]:
        """A new session of a new agent; by default of the skill ``flow`` if there is one."""
        if not config and any(each.id == "flow" for each in self.profiles):
            config = {"skill": "flow"}
        async with self.agent() as agent, await agent.new_session(SessionConfig(**config)) as session:
            yield session

    @asynccontextmanager
    async def resumed(self, session_id: str) -> AsyncIterator[Session]:
        """A stored session in a new agent."""
        async with self.agent() as agent, await agent.resume_session(session_id) as session:
            yield session

    async def turn(self, session: Session, text: str = "go") -> TurnResult:
        """One turn to its end."""
        return await (await session.send_message(text)).result()

    @property
    def requests(self) -> list[ChatRequest]:
        """The requests so far."""
        return self.provider.requests

    def asked(self) -> list[str]:
        """The newest user text of each request."""
        return [
            [text_of(message.content) for message in request.messages if isinstance(message, UserMessage)][-1]
            for request in self.requests
        ]

    def offered(self) -> list[tuple[str, ...]]:
        """The names of the tools in each request."""
        return [tuple(spec.name for spec in request.tools) for request in self.requests]

    def facts(self, key: str, session_id: str) -> list[Any]:
        """The stored values of one `Metadata` key."""
        stored = [event.payload for event in self.store.events(session_id)]
        return [fact.value for fact in stored if isinstance(fact, Metadata) and fact.key == key]


def line(message: Message) -> str:
    """A message in short."""
    match message:
        case UserMessage():
            return f"user: {text_of(message.content)}"
        case AssistantMessage():
            return f"assistant: {message.text}" + (f" [{message.cause}]" if message.cause else "")
        case ToolCall():
            return f"call {message.tool_name}"
        case ToolResult():
            return f"{message.outcome} {message.content}"
        case SystemMessage():
            return f"note: {message.content}"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example of the docs, with an empty shelf: ``desk.tools``, ``desk.profiles``, ``desk.agent``, ``desk.web``."""
    monkeypatch.syspath_prepend(EXAMPLES)
    modules = ("shelf", "tools", "profiles", "agent", "model", "web")
    desk = SimpleNamespace(**{name: import_module(f"writing_desk.{name}") for name in modules})
    desk.shelf.SHELF.__init__()
    monkeypatch.setattr(desk.tools, "TOOLS", (tools := list(desk.tools.TOOLS)))
    monkeypatch.setattr(desk.agent, "TOOLS", tools)
    return desk


@pytest.fixture
def lines() -> Callable[[Iterable[Message]], list[str]]:
    """Messages in short: ``user: hello``, ``assistant: hi``, ``call save``, ``ok save ran``, ``note: ...``."""
    return lambda messages: [line(message) for message in messages]


@pytest.fixture
def make_stage() -> type[Stage]:
    """Makes a stage of its own for each simulated run; nobody looks at it afterwards."""
    return Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A stage to set up, looked at closely once the test is over."""
    stage = Stage()
    yield stage
    assert stage.provider.violations == []
    assert stage.provider.opened == stage.provider.closed

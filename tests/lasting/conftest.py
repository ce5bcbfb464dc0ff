"""The stage for what must last: a model with its own window, a store that fails when told, agents one after another.

    async def test_something(lasting, autojump_clock):
        lasting.says(calls("write"), say("done"))
        async with lasting.session() as session:
            await lasting.turn(session)
        async with lasting.resumed(session.id) as session:
            ...

Summaries and extractions are told from conversation: each of the three has its answers and its list of requests.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
import trio
from youyou import (
    Agent,
    AgentBuilder,
    AgentConfig,
    AssistantMessage,
    ChatRequest,
    ContextCompacted,
    ErrorEvent,
    Message,
    Metadata,
    ModelInfo,
    Notices,
    RetryPolicy,
    Session,
    SessionEvent,
    SystemMessage,
    Tool,
    ToolCall,
    ToolInput,
    ToolOutput,
    ToolResult,
    TurnResult,
    UserMessage,
)
from youyou.core.compaction.compaction_texts import SUMMARY_PROMPT
from youyou.core.history.tokens import fixed_tokens, message_tokens
from youyou.core.memory.extraction import extraction_prompt
from youyou.messages.content import text_of
from youyou.messages.errors import ContextLengthExceeded
from youyou.testing import InMemoryMemoryStorage, InMemorySessionStorage, StrictProvider
from youyou.testing.agents.scripted import Round, say

EXTRACTION = extraction_prompt()
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Model(StrictProvider):
    """Tells conversation, summaries and extractions apart, and overflows at its own count of tokens.

    ``limit``: tokens of a request that it takes at most; None: any number. ``answer``: what it says once its script is
    used up.
    """

    summary_prefix = SUMMARY_PROMPT.strip()[:40]
    """How a request for a summary begins."""

    def __init__(self, window: int = 100_000) -> None:
        super().__init__([], models=[ModelInfo("scripted", "Scripted", window)])
        self.limit: int | None = None
        self.answer: Callable[[ChatRequest], Round] | None = None
        self.summaries: deque[Round] = deque()
        self.summary: Callable[[ChatRequest], Round] = lambda _: say("SUMMARY")
        self.notes: deque[Round] = deque()
        self.asked: list[ChatRequest] = []
        """The requests of conversations."""
        self.summarised: list[ChatRequest] = []
        """The requests for a summary."""
        self.extracted: list[ChatRequest] = []
        """The requests for memories."""
        self.overflows = 0
        """Requests refused as too long."""

    @staticmethod
    def size(request: ChatRequest) -> int:
        """The tokens of a request, a tenth more than the runtime would estimate."""
        tokens = fixed_tokens(request.system, request.tools) + sum(map(message_tokens, request.messages))
        return tokens * 11 // 10

    def chat(self, request: ChatRequest) -> Any:
        if self.limit is not None and self.size(request) > self.limit:
            self.overflows += 1
            self._rounds.appendleft([ContextLengthExceeded("the request is too long")])
            self._kind(request).append(request)
            return super().chat(request)
        kind = self._kind(request)
        kind.append(request)
        if kind is self.summarised:
            self._rounds.appendleft(self.summaries.popleft() if self.summaries else self.summary(request))
        elif kind is self.extracted:
            self._rounds.appendleft(self.notes.popleft() if self.notes else say("[]"))
        elif not self._rounds and self.answer is not None:
            self._rounds.append(self.answer(request))
        return super().chat(request)

    def _kind(self, request: ChatRequest) -> list[ChatRequest]:
        if request.system.stable == EXTRACTION:
            return self.extracted
        first = request.messages[0] if request.messages else None
        if isinstance(first, UserMessage) and text_of(first.content).startswith(self.summary_prefix):
            return self.summarised
        return self.asked


@attrs.define(eq=False, slots=False)
class Store(InMemorySessionStorage):
    """Fails the writes that ``breaks`` names, by number from 1. ``how``: "raises", "loses" the answer, or "hangs"."""

    breaks: Callable[[int], bool] = lambda _: False
    how: str = "raises"
    batches: list[tuple[str, tuple[SessionEvent, ...]]] = attrs.field(factory=list, init=False)
    """Every batch that was tried, in order."""
    writing: int = attrs.field(default=0, init=False)
    at_once: int = attrs.field(default=0, init=False)
    """The most writes that were ever under way at a time."""

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        self.batches.append((session_id, tuple(events)))
        self.writing += 1
        self.at_once = max(self.at_once, self.writing)
        try:
            await self._save(session_id, events, len(self.batches))
        finally:
            self.writing -= 1

    async def _save(self, session_id: str, events: Sequence[SessionEvent], number: int) -> None:
        if not self.breaks(number):
            return await super().save_events(session_id, events)
        if self.how == "loses":
            await super().save_events(session_id, events)
        if self.how == "hangs":
            await trio.sleep_forever()
        raise OSError(f"write {number} failed")


@attrs.define(eq=False, slots=False)
class Lasting:
    """Parts are added before an agent is opened; several agents may follow each other on the same stores."""

    model: Model = attrs.Factory(Model)
    store: Any = attrs.Factory(Store)
    memories: Any = None
    tools: dict[str, Tool] = attrs.Factory(dict)
    plugins: list[Any] = attrs.Factory(list)
    runs: Counter[str] = attrs.Factory(Counter)
    """How often each tool has run: what the world outside would see."""
    config: AgentConfig = attrs.Factory(
        lambda: AgentConfig("scripted", notices=Notices.english(), retry=RetryPolicy(jitter=0.0))
    )

    def says(self, *rounds: Round) -> None:
        """What the model answers next in conversation."""
        self.model._rounds.extend(rounds)

    def window(self, tokens: int, *, limit: bool = False) -> None:
        """A new model with this window, that refuses what is longer if there is a ``limit``."""
        self.model = Model(tokens)
        self.model.limit = tokens if limit else None

    def configure(self, **changes: Any) -> None:
        """Change the agent's configuration."""
        self.config = attrs.evolve(self.config, **changes)

    def tool(
        self,
        name: str,
        *,
        takes: float = 0.0,
        mutating: bool = False,
        does: Callable[[ToolInput], Awaitable[str | None]] | None = None,
    ) -> None:
        """Register a tool that counts its runs and may ``does`` something."""

        async def execute(given: ToolInput) -> ToolOutput:
            self.runs[name] += 1
            await trio.sleep(takes)
            said = None if does is None else await does(given)
            return ToolOutput(said or f"{name} ran")

        self.tools[name] = Tool(name, f"Does {name}.", {"type": "object"}, execute, mutating)

    def on(self, event_class: type[Any], does: Callable[[Any], Awaitable[Any]]) -> None:
        """Tap a hook."""
        self.plugins.append(Tap(f"tap{len(self.plugins)}", event_class, does))

    def builder(self) -> Any:
        """A builder with all parts registered."""
        builder: Any = AgentBuilder(self.config).register_model_provider(self.model)
        for tool in self.tools.values():
            builder.register_tool(tool)
        for plugin in self.plugins:
            builder.register_plugin(plugin)
        if self.store is not None:
            builder.register_session_storage(self.store)
        return builder if self.memories is None else builder.register_memory_storage(self.memories)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Agent]:
        """A running agent, with a watchdog in virtual time."""
        with trio.fail_after(100_000):
            async with self.builder().build() as agent:
                yield agent

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A new session of a new agent."""
        async with self.agent() as agent, await agent.new_session() as session:
            yield session

    @asynccontextmanager
    async def resumed(self, session_id: str) -> AsyncIterator[Session]:
        """A stored session in a new agent."""
        async with self.agent() as agent, await agent.resume_session(session_id) as session:
            yield session

    @asynccontextmanager
    async def session_of(self, session_id: str | None) -> AsyncIterator[Session]:
        """The stored session of this id in a new agent, or a new one for None."""
        async with self.agent() as agent:
            opening = agent.resume_session(session_id) if session_id else agent.new_session()
            async with await opening as session:
                yield session

    async def turn(self, session: Session, text: str = "go") -> TurnResult:
        """One turn to its end."""
        return await (await session.send_message(text)).result()

    async def payloads(self, session: Session, text: str = "go") -> list[Any]:
        """One turn to its end: what its events say."""
        return [event.payload async for event in await session.send_message(text)]

    def facts(self, key: str, session_id: str) -> list[Any]:
        """The stored values of one `Metadata` key."""
        stored = [event.payload for event in self.store.events(session_id)]
        return [fact.value for fact in stored if isinstance(fact, Metadata) and fact.key == key]

    def stored(self, session_id: str) -> list[str]:
        """The stored messages, in short."""
        return lines_of(e.payload for e in self.store.events(session_id) if not isinstance(e.payload, Metadata))

    def log(self, session_id: str) -> list[str]:
        """The whole log, in short: messages, and metadata by key."""
        return [
            event.payload.key if isinstance(event.payload, Metadata) else line_of(event.payload)
            for event in self.store.events(session_id)
        ]

    async def keep(self, session_id: str, *payloads: Message | Metadata) -> None:
        """Store a log as an earlier process may have left it."""
        stored = len(self.store.events(session_id))
        events = [SessionEvent(seq, LONG_AGO, payload) for seq, payload in enumerate(payloads, stored + 1)]
        await self.store.save_events(session_id, events)


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


def line_of(message: Message) -> str:
    """A message in short."""
    match message:
        case UserMessage():
            return f"user: {text_of(message.content)}"
        case AssistantMessage():
            return f"assistant: {message.text}" + (f" [{message.cause}]" if message.cause else "")
        case ToolCall():
            return f"call {message.call_id}"
        case ToolResult():
            return f"{message.outcome} {message.call_id}"
        case SystemMessage():
            return f"note: {message.content}"


def lines_of(messages: Iterable[Message]) -> list[str]:
    """Messages in short."""
    return [line_of(message) for message in messages]


@pytest.fixture
def lines() -> Callable[[Iterable[Message]], list[str]]:
    """Messages in short: ``user: hello``, ``assistant: hi``, ``call a``, ``ok a``, ``note: ...``."""
    return lines_of


@pytest.fixture
def kinds() -> Callable[[Iterable[Any]], list[str]]:
    """How the compactions among these payloads were done, in order."""
    return lambda payloads: [payload.kind for payload in payloads if isinstance(payload, ContextCompacted)]


@pytest.fixture
def errors() -> Callable[[Iterable[Any]], list[str]]:
    """The codes of the errors among these payloads, in order."""
    return lambda payloads: [str(payload.error.code) for payload in payloads if isinstance(payload, ErrorEvent)]


@pytest.fixture
def lasting() -> Iterator[Lasting]:
    """A stage to set up, looked at closely once the test is over."""
    stage = Lasting()
    yield stage
    assert stage.model.violations == []
    assert stage.model.opened == stage.model.closed


@pytest.fixture
def remembering(lasting: Lasting) -> Lasting:
    """A stage with a memory storage."""
    lasting.memories = InMemoryMemoryStorage()
    return lasting

"""The stage on which the runtime is tested: a strict provider, stores, tools that keep a log, and virtual time.

    async def test_something(conversation, autojump_clock):
        write = conversation.tool("write", takes=2.0, mutating=True)
        conversation.says(calls("write"), say("done"))
        async with conversation.session() as session:
            turn = await session.send_message("go")
            await trio.sleep(1)
            turn.cancel()
            assert ["user: go", "call write", "ok write"] == conversation.lines(session.history)

After each test the fixture looks at what is left: no request broke semantics 5, no stream is open, and in every stored
session each call has one result and each turn one end. A test that loses part of the log on purpose says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock
from youyou import (
    Agent,
    AgentBuilder,
    AgentConfig,
    AgentEvent,
    AssistantMessage,
    Message,
    Metadata,
    Notices,
    RetryPolicy,
    RunningTurn,
    Session,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    ToolInput,
    ToolOutput,
    ToolResult,
    TurnCancelled,
    TurnComplete,
    UserMessage,
)
from youyou.messages.content import text_of
from youyou.testing.agents.scripted import Round, StrictProvider
from youyou.testing.agents.stores import InMemoryMemoryStorage, InMemorySessionStorage

WATCHDOG = 3600.0
"""Virtual seconds after which a test has hung."""


@attrs.define(eq=False)
class LoggedTool:
    """A tool that takes ``takes`` seconds, or does what ``does`` says, and remembers what became of each run."""

    name: str
    takes: float = 0.0
    mutating: bool = False
    timeout_ms: int | None = None
    does: Callable[[ToolInput], Awaitable[object]] | None = None
    description: str = "Keeps a log."
    parameters: Any = attrs.Factory(lambda: {"type": "object"})
    runs: list[dict[str, Any]] = attrs.Factory(list)
    """The arguments of each run that began."""
    finished: int = 0
    """Runs that came to their end."""
    cut: int = 0
    """Runs that were left by an exception."""
    started: trio.Event = attrs.Factory(trio.Event)
    """Set when the first run begins."""

    async def execute(self, input: ToolInput) -> ToolOutput:
        self.runs.append(input.arguments)
        self.started.set()
        try:
            await trio.sleep(self.takes)
            answer = None if self.does is None else await self.does(input)
        except BaseException:
            self.cut += 1
            raise
        self.finished += 1
        return answer if isinstance(answer, ToolOutput) else ToolOutput(f"{self.name} done")


@attrs.define(eq=False)
class LoggedPlugin:
    """A plugin that taps what it is told, and remembers the order of what happens to it in a log it may share."""

    id: str
    log: list[str]
    takes: float = 0.0
    display_name: str = "Logged"
    description: str = "Keeps a log."
    starting: Callable[[], Awaitable[object]] | None = None
    stopping: Callable[[], Awaitable[object]] | None = None
    taps: list[tuple[type[Any], Callable[[Any], Awaitable[Any]], int]] = attrs.Factory(list)

    async def initialize(self, config: Any) -> None:
        self.log.append(f"{self.id} begins")
        if self.starting is not None:
            await self.starting()

    def apply(self, ctx: Any) -> None:
        for event_class, handler, stage in self.taps:
            ctx.tap(event_class, handler, stage=stage)

    async def shutdown(self) -> None:
        self.log.append(f"{self.id} ends")
        if self.stopping is not None:
            await self.stopping()
        self.log.append(f"{self.id} ended")


@attrs.define(eq=False)
class Conversation:
    """Everything a test needs to talk with an agent. Parts are added before it is opened."""

    provider: StrictProvider = attrs.Factory(lambda: StrictProvider([]))
    store: InMemorySessionStorage = attrs.Factory(InMemorySessionStorage)
    memories: InMemoryMemoryStorage | None = None
    tools: dict[str, LoggedTool] = attrs.Factory(dict)
    plugins: list[LoggedPlugin] = attrs.Factory(list)
    log: list[str] = attrs.Factory(list)
    """What happened to plugins and hooks, in order."""
    ports: dict[str, Any] = attrs.Factory(dict)
    """Stand-ins for "provider", "store" and "memories", such as faulty ones around them."""
    config: AgentConfig = attrs.Factory(
        lambda: AgentConfig("scripted", notices=Notices.english(), retry=RetryPolicy(jitter=0.0))
    )
    loses_log: bool = False
    """The test cuts the log off on purpose: stored turns may lack their end, and calls their result."""
    leaves_streams: bool = False
    """The test's provider never comes back from a stream."""

    def says(self, *rounds: Round) -> None:
        """What the model answers next, a round for each request."""
        self.provider._rounds.extend(rounds)

    def configure(self, **changes: Any) -> None:
        """Change the agent's configuration."""
        self.config = attrs.evolve(self.config, **changes)

    def tool(self, name: str, **fields: Any) -> LoggedTool:
        """Register a tool that keeps a log."""
        self.tools[name] = LoggedTool(name, **fields)
        return self.tools[name]

    def plugin(self, id: str, **fields: Any) -> LoggedPlugin:
        """Register a plugin that keeps a log."""
        self.plugins.append(LoggedPlugin(id, self.log, **fields))
        return self.plugins[-1]

    def on(
        self, event_class: type[Any], does: Callable[[Any], Awaitable[Any]] | None = None, *, stage: int = 0
    ) -> None:
        """Tap a hook, in a plugin of its own. Its beginning and end go into the log."""

        async def handler(event: Any) -> Any:
            self.log.append(f"{event_class.__name__} begins")
            answer = None if does is None else await does(event)
            self.log.append(f"{event_class.__name__} ended")
            return answer

        plugin = LoggedPlugin(f"hook{len(self.plugins)}", [])
        plugin.taps.append((event_class, handler, stage))
        self.plugins.append(plugin)

    def builder(self, *extra_tools: Any) -> Any:
        """A builder with all parts registered."""
        builder: Any = AgentBuilder(self.config).register_model_provider(self.ports.get("provider", self.provider))
        for tool in (*self.tools.values(), *extra_tools):
            builder.register_tool(tool)
        for plugin in self.plugins:
            builder.register_plugin(plugin)
        builder.register_session_storage(self.ports.get("store", self.store))
        memories = self.ports.get("memories", self.memories)
        return builder if memories is None else builder.register_memory_storage(memories)

    @asynccontextmanager
    async def agent(self, *extra_tools: Any) -> AsyncIterator[Agent]:
        """A running agent, with a watchdog in virtual time."""
        assert isinstance(trio.lowlevel.current_clock(), MockClock), "ask for autojump_clock or steady_clock"
        with trio.fail_after(WATCHDOG):
            async with self.builder(*extra_tools).build() as agent:
                yield agent

    @asynccontextmanager
    async def session(self, *extra_tools: Any) -> AsyncIterator[Session]:
        """A new session of a new agent."""
        async with self.agent(*extra_tools) as agent, await agent.new_session() as session:
            yield session

    async def events(self, turn: RunningTurn) -> list[Any]:
        """Read a turn to its end: the payloads, after a look at what holds for every turn (semantics 6)."""
        seen = [event async for event in turn]
        assert event_problems(seen) == []
        return [event.payload for event in seen]

    def lines(self, messages: Iterable[Message]) -> list[str]:
        """Messages in short: ``user: hello``, ``assistant: hi``, ``call write``, ``ok write``, ``note: ...``."""
        return [_line(message) for message in messages]

    def stored(self, session_id: str | None = None) -> list[str]:
        """The stored messages of the only session, or of this one, in short."""
        return self.lines(e.payload for e in self.events_stored(session_id) if not isinstance(e.payload, Metadata))

    def facts(self, key: str, session_id: str | None = None) -> list[Any]:
        """The stored values of one `Metadata` key."""
        stored = [event.payload for event in self.events_stored(session_id)]
        return [fact.value for fact in stored if isinstance(fact, Metadata) and fact.key == key]

    def events_stored(self, session_id: str | None = None) -> tuple[SessionEvent, ...]:
        """The log of the only session, or of this one."""
        if session_id is None:
            (session_id,) = self.store._sessions
        return self.store.events(session_id)

    @contextmanager
    def takes(self, seconds: float, *, at_most: bool = False) -> Iterator[None]:
        """What is inside takes exactly, or at most, so many virtual seconds."""
        start = trio.current_time()
        yield
        took = trio.current_time() - start
        assert (took <= seconds + 1e-6) if at_most else took == pytest.approx(seconds, abs=1e-6), took

    def verify(self) -> None:
        """What must hold after any conversation."""
        assert self.provider.violations == []
        assert self.leaves_streams or self.provider.opened == self.provider.closed
        for session_id in self.store._sessions:
            assert log_problems(self.store.events(session_id), whole=not self.loses_log) == []


def event_problems(events: list[AgentEvent]) -> list[str]:
    """What is wrong with the events of one turn."""
    payloads = [event.payload for event in events]
    starts = [payload.call_id for payload in payloads if isinstance(payload, ToolCallStart)]
    ends = [payload.call_id for payload in payloads if isinstance(payload, ToolCallEnd)]
    terminal = [isinstance(payload, TurnComplete | TurnCancelled) for payload in payloads]
    first = events[0].sequence if events else 0
    wrong = {
        "a turn has one terminal event": terminal.count(True) != 1,
        "the terminal event is the last": not terminal or not terminal[-1],
        "sequence grows by one": [event.sequence for event in events] != list(range(first, first + len(events))),
        "each start has one end": sorted(starts) != sorted(ends),
        "no call starts twice": len(starts) != len(set(starts)),
    }
    return [rule for rule, broken in wrong.items() if broken]


def log_problems(events: tuple[SessionEvent, ...], *, whole: bool) -> list[str]:
    """What is wrong with the log of one session. ``whole``: nothing was cut off at its end."""
    payloads = [event.payload for event in events]
    messages = [payload for payload in payloads if not isinstance(payload, Metadata)]
    results = Counter(message.call_id for message in messages if isinstance(message, ToolResult))
    called = Counter(message.call_id for message in messages if isinstance(message, ToolCall))
    begun, ended = (
        [fact.value["turn_id"] for fact in payloads if isinstance(fact, Metadata) and fact.key == key]
        for key in ("turn_started", "turn_ended")
    )
    wrong = {
        "events are numbered without a gap": [event.seq for event in events] != list(range(1, len(events) + 1)),
        "no call has two results": any(count > 1 for count in results.values()),
        "no result lacks its call": bool(results - called),
        "ids of calls are unique": any(count > 1 for count in called.values()),
        "turns end in their order": begun[: len(ended)] != ended,
        "each call has a result": whole and called != results,
        "each turn ended": whole and begun != ended,
        "no assistant message is blank": any(m.blank for m in messages if isinstance(m, AssistantMessage)),
    }
    return [rule for rule, broken in wrong.items() if broken]


def _line(message: Message) -> str:
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


@pytest.fixture
def conversation() -> Iterator[Conversation]:
    """A conversation to set up and to open, looked at closely once the test is over."""
    talk = Conversation()
    yield talk
    talk.verify()


@pytest.fixture
def steady_clock() -> MockClock:
    """Time that passes by itself, five times as fast as real: threads are invisible to the clock that jumps."""
    return MockClock(rate=5)

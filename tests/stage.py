"""The stage on which the whole runtime is tested: a strict model, a store that fails when told, tools that keep a log.

    async def test_something(stage, autojump_clock):
        write = stage.tool("write", takes=2.0, mutating=True)
        stage.says(calls("write"), say("done"))
        async with stage.session() as session:
            turn = await session.send_message("go")
            await trio.sleep(1)
            turn.cancel()
            assert ["user: go", "call write", "ok write"] == stage.lines(session.history)
        async with stage.resumed(session.id) as session:
            ...

Parts are added before an agent is opened; several agents may follow each other on the same store. Requests for
summaries and for memories are told from conversation: each of the three has its answers and its list of requests.

After each test the fixture looks at what is left: no request broke semantics 5, no stream is open, and in every stored
session each call has one result and each turn one end. A test that loses part of the log on purpose says so.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
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
    AgentProfile,
    AssistantMessage,
    ChatRequest,
    Message,
    Metadata,
    ModelInfo,
    Notices,
    Pipeline,
    ProfileKind,
    RetryPolicy,
    RunningTurn,
    Session,
    SessionConfig,
    SessionEvent,
    Step,
    SystemMessage,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    ToolInput,
    ToolOutput,
    ToolResult,
    TurnCancelled,
    TurnComplete,
    TurnResult,
    UserMessage,
)
from youyou.core.compaction.compaction_texts import SUMMARY_PROMPT
from youyou.core.history.tokens import fixed_tokens, message_tokens
from youyou.core.memory.extraction import extraction_prompt
from youyou.messages.content import text_of
from youyou.messages.errors import ContextLengthExceeded
from youyou.testing import InMemorySessionStorage, StrictProvider
from youyou.testing.agents.scripted import Round, say

WATCHDOG = 100_000.0
"""Virtual seconds after which a test has hung."""
REAL_WATCHDOG = 60.0
"""Real seconds after which a test has hung that has no clock of its own."""
EXTRACTION = extraction_prompt()
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Model(StrictProvider):
    """A strict provider that overflows at its own count of tokens, and knows a summary from conversation.

    ``window``: None for the scripted model that sees. ``limit``: tokens of a request that it takes at most; None: any
    number. ``answer``: what it says once its script is used up.
    """

    summary_prefix = SUMMARY_PROMPT.strip()[:40]
    """How a request for a summary begins."""

    def __init__(self, window: int | None = None) -> None:
        super().__init__([], models=None if window is None else [ModelInfo("scripted", "Scripted", window)])
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
        kind = self._kind(request)
        kind.append(request)
        if self.limit is not None and self.size(request) > self.limit:
            self.overflows += 1
            self._rounds.appendleft([ContextLengthExceeded("the request is too long")])
        elif kind is self.summarised:
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

    async def save_events(self, session_id: str, events: Any) -> None:
        self.batches.append((session_id, tuple(events)))
        self.writing += 1
        self.at_once = max(self.at_once, self.writing)
        try:
            await self._save(session_id, events, len(self.batches))
        finally:
            self.writing -= 1

    async def _save(self, session_id: str, events: Any, number: int) -> None:
        if not self.breaks(number):
            return await super().save_events(session_id, events)
        if self.how == "loses":
            await super().save_events(session_id, events)
        if self.how == "hangs":
            await trio.sleep_forever()
        raise OSError(f"write {number} failed")


@attrs.define(eq=False)
class LoggedTool:
    """A tool that takes ``takes`` seconds, then does what ``does`` says, and remembers what became of each run."""

    name: str
    takes: float = 0.0
    mutating: bool = False
    timeout_ms: int | None = None
    does: Callable[[ToolInput], Awaitable[object]] | None = None
    """Returns an output, or its text, or None for "NAME done"."""
    begins: Callable[[ToolInput], object] | None = None
    """What it does before it takes its time."""
    description: str = "Keeps a log."
    parameters: Any = attrs.Factory(lambda: {"type": "object"})
    tags: tuple[str, ...] = ()
    runs: list[dict[str, Any]] = attrs.Factory(list)
    """The arguments of each run that began."""
    calls: list[str] = attrs.Factory(list)
    """The id of the call of each run that began."""
    finished: int = 0
    """Runs that came to their end."""
    cut: int = 0
    """Runs that were left by an exception."""
    started: trio.Event = attrs.Factory(trio.Event)
    """Set when the first run begins."""

    async def execute(self, input: ToolInput) -> ToolOutput:
        self.runs.append(input.arguments)
        self.calls.append(input.call_id)
        self.started.set()
        if self.begins is not None:
            self.begins(input)
        try:
            await trio.sleep(self.takes)
            answer = None if self.does is None else await self.does(input)
        except BaseException:
            self.cut += 1
            raise
        self.finished += 1
        if isinstance(answer, ToolOutput):
            return answer
        return ToolOutput(answer if isinstance(answer, str) else f"{self.name} done")


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


def english(model_id: str = "scripted", **config: Any) -> AgentConfig:
    """A configuration with English notices, whose retries wait for exactly what they say."""
    return AgentConfig(model_id, **{"notices": Notices.english(), "retry": RetryPolicy(jitter=0.0), **config})


@attrs.define(eq=False, slots=False)
class Stage:
    """Everything a test needs to talk with an agent."""

    provider: Any = attrs.Factory(Model)
    store: Any = attrs.Factory(Store)
    memories: Any = None
    tools: dict[str, Any] = attrs.Factory(dict)
    profiles: list[AgentProfile] = attrs.Factory(list)
    plugins: list[Any] = attrs.Factory(list)
    log: list[str] = attrs.Factory(list)
    """What happened to plugins and hooks, in order."""
    ports: dict[str, Any] = attrs.Factory(dict)
    """Stand-ins for "provider", "store" and "memories", such as faulty ones around them."""
    config: AgentConfig = attrs.Factory(english)
    earlier: set[str] = attrs.Factory(set)
    """Sessions whose log a test has written itself: nobody says that it is whole."""
    loses_log: bool = False
    """The test cuts the log off on purpose: stored turns may lack their end, and calls their result."""
    leaves_streams: bool = False
    """The test's provider never comes back from a stream."""

    # What there is, before an agent is opened.

    def says(self, *rounds: Round) -> None:
        """What the model answers next in conversation, a round for each request."""
        self.provider._rounds.extend(rounds)

    def extracts(self, *rounds: Round) -> None:
        """What the model answers next when it is asked for memories; by default that there are none."""
        self.provider.notes.extend(rounds)

    def answers(self, answer: Callable[[ChatRequest], Round]) -> None:
        """A new model that answers each request as ``answer`` says, for runs that may begin anywhere."""
        self.provider = Model()
        self.provider.answer = answer

    def window(self, tokens: int, *, limit: bool = False) -> None:
        """A new model with this window, that refuses what is longer if there is a ``limit``."""
        self.provider = Model(tokens)
        self.provider.limit = tokens if limit else None

    def configure(self, **changes: Any) -> None:
        """Change the agent's configuration."""
        self.config = attrs.evolve(self.config, **changes)

    def tool(self, name: str, *tags: str, **fields: Any) -> LoggedTool:
        """Register a tool that keeps a log."""
        self.tools[name] = tool = LoggedTool(name, tags=tags, **fields)
        return tool

    def profile(self, id: str, kind: ProfileKind = ProfileKind.SKILL, **fields: Any) -> AgentProfile:
        """Register a profile."""
        self.profiles.append(AgentProfile(id, kind, id.title(), f"About {id}.", **fields))
        return self.profiles[-1]

    def pipeline(self, *steps: Step, id: str = "flow", **fields: Any) -> None:
        """Register a skill that follows these steps."""
        self.profile(id, mode=Pipeline(steps), **fields)

    def plugin(self, id: str, **fields: Any) -> LoggedPlugin:
        """Register a plugin that keeps a log."""
        self.plugins.append(LoggedPlugin(id, self.log, **fields))
        return self.plugins[-1]  # type: ignore[no-any-return]

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

    async def keep(self, session_id: str, *payloads: Message | Metadata) -> None:
        """Store a log as an earlier process may have left it."""
        self.earlier.add(session_id)
        stored = len(self.store.events(session_id))
        events = [SessionEvent(seq, LONG_AGO, payload) for seq, payload in enumerate(payloads, stored + 1)]
        await self.store.save_events(session_id, events)

    # Agents, sessions, turns.

    def builder(self, *extra_tools: Any) -> Any:
        """A builder with all parts registered."""
        builder: Any = AgentBuilder(self.config).register_model_provider(self.ports.get("provider", self.provider))
        for tool in (*self.tools.values(), *extra_tools):
            builder.register_tool(tool)
        for profile in self.profiles:
            builder.register_profile(profile)
        for plugin in self.plugins:
            builder.register_plugin(plugin)
        store, memories = self.ports.get("store", self.store), self.ports.get("memories", self.memories)
        if store is not None:
            builder.register_session_storage(store)
        return builder if memories is None else builder.register_memory_storage(memories)

    @asynccontextmanager
    async def agent(self, *extra_tools: Any) -> AsyncIterator[Agent]:
        """A running agent, with a watchdog."""
        virtual = isinstance(trio.lowlevel.current_clock(), MockClock)
        with trio.fail_after(WATCHDOG if virtual else REAL_WATCHDOG):
            async with self.builder(*extra_tools).build() as agent:
                yield agent

    @asynccontextmanager
    async def session(self, *extra_tools: Any, **config: Any) -> AsyncIterator[Session]:
        """A new session of a new agent; by default of the skill ``flow`` if there is one."""
        if not config and any(each.id == "flow" for each in self.profiles):
            config = {"skill": "flow"}
        async with self.agent(*extra_tools) as agent, await agent.new_session(SessionConfig(**config)) as session:
            yield session

    @asynccontextmanager
    async def resumed(self, session_id: str) -> AsyncIterator[Session]:
        """A stored session in a new agent."""
        async with self.agent() as agent, await agent.resume_session(session_id) as session:
            yield session

    @asynccontextmanager
    async def session_of(self, session_id: str | None) -> AsyncIterator[Session]:
        """The stored session of this id in a new agent, or a new one for None."""
        async with self.resumed(session_id) if session_id else self.session() as session:
            yield session

    async def turn(self, session: Session, text: str = "go") -> TurnResult:
        """One turn to its end."""
        return await (await session.send_message(text)).result()

    async def events(self, turn: RunningTurn) -> list[Any]:
        """Read a turn to its end: the payloads, after a look at what holds for every turn (semantics 6)."""
        seen = [event async for event in turn]
        assert event_problems(seen) == []
        return [event.payload for event in seen]

    async def payloads(self, session: Session, text: str = "go") -> list[Any]:
        """One turn to its end: what its events say."""
        return await self.events(await session.send_message(text))

    # What came of it.

    @property
    def requests(self) -> list[ChatRequest]:
        """The requests so far."""
        return self.provider.requests  # type: ignore[no-any-return]

    @property
    def runs(self) -> Counter[str]:
        """How often each tool has run: what the world outside would see."""
        return Counter({name: len(tool.runs) for name, tool in self.tools.items() if tool.runs})

    def asked(self) -> list[str]:
        """The newest user text of each request."""
        return [
            [text_of(message.content) for message in request.messages if isinstance(message, UserMessage)][-1]
            for request in self.requests
        ]

    def offered(self) -> list[tuple[str, ...]]:
        """The names of the tools in each request."""
        return [tuple(spec.name for spec in request.tools) for request in self.requests]

    def lines(self, messages: Iterable[Message]) -> list[str]:
        """Messages in short: ``user: hello``, ``assistant: hi``, ``call write``, ``ok write``, ``note: ...``."""
        return [line(message) for message in messages]

    def logged(self, session_id: str | None = None) -> list[str]:
        """The whole log of the only session, or of this one, in short: messages, and metadata by key."""
        payloads = [event.payload for event in self.events_stored(session_id)]
        return [each.key if isinstance(each, Metadata) else line(each) for each in payloads]

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
        return self.store.events(session_id)  # type: ignore[no-any-return]

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
        for session_id in set(getattr(self.store, "_sessions", ())) - self.earlier:
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


def line(message: Message) -> str:
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


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A stage to set up and to open, looked at closely once the test is over."""
    stage = Stage()
    yield stage
    stage.verify()


@pytest.fixture
def make_stage() -> type[Stage]:
    """Makes a stage of its own for each simulated run; nobody looks at it afterwards."""
    return Stage


@pytest.fixture
def steady_clock() -> MockClock:
    """Time that passes by itself, five times as fast as real: threads are invisible to the clock that jumps."""
    return MockClock(rate=5)

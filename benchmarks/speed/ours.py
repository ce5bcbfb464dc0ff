"""Workloads that only youyou runs: storage, memory, and how cost grows with calls, plugins, tools, text and history."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import trio
import trio.testing
import youyou
from youyou import (
    AgentBuilder,
    AgentConfig,
    AssistantMessage,
    ChatEvent,
    ChatRequest,
    Continue,
    Done,
    Message,
    ModelInfo,
    PluginContext,
    RunningTurn,
    SessionEvent,
    TextDelta,
    Tool,
    ToolInput,
    ToolOutput,
    UserMessage,
)
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.testing import InMemorySessionStorage

from . import with_youyou
from .driver import Figures, cancelled, memory, repeat
from .plan import CALLS, DELTAS
from .with_youyou import Model, Session, builder, opened


# ------------------------------------------------------------------------------------------------------- storage (W7)
class Shared:
    """One storage for many agents, which none of them enters or leaves; counts the events that are stored."""

    def __init__(self, storage: SQLiteSessionStorage) -> None:
        self.storage, self.stored = storage, 0

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        """Counted once it is stored."""
        await self.storage.save_events(session_id, events)
        self.stored += len(events)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.storage, name)


async def stored_turns(synchronous: str, seconds: float) -> Figures:
    """W2 with an SQLite file: milliseconds a turn."""
    with tempfile.TemporaryDirectory() as folder:
        storage = SQLiteSessionStorage(Path(folder) / "sessions.db", synchronous=synchronous)
        async with opened("tools", storage) as session:
            return await repeat(lambda: session.turn("hello"), seconds)


async def stored_load(synchronous: str, agents: int, seconds: float) -> Figures:
    """W2 of so many agents at once on one file: events a second that are stored."""
    ready, warm, stop = trio.Event(), 0, False

    async def one(shared: Shared) -> None:
        nonlocal warm
        async with opened("tools", shared) as session:
            await session.turn("hello")
            warm += 1
            if warm == agents:
                ready.set()
            await ready.wait()
            while not stop:
                await session.turn("hello")

    with tempfile.TemporaryDirectory() as folder:
        async with SQLiteSessionStorage(Path(folder) / "sessions.db", synchronous=synchronous) as storage:
            shared = Shared(storage)
            async with trio.open_nursery() as nursery:
                for _ in range(agents):
                    nursery.start_soon(one, shared)
                await ready.wait()
                before, started = shared.stored, time.perf_counter()
                await trio.sleep(seconds)
                figures = {"events_a_second": (shared.stored - before) / (time.perf_counter() - started)}
                stop = True
    return figures


def bare_apsw(synchronous: str, batch: int, seconds: float) -> Figures:
    """The floor: rows of the same size, so many in each transaction, on the thread that makes them."""
    import apsw

    body = '{"type":"SessionEvent","seq":345,"payload":{"type":"ToolResult","call_id":"c1","content":"ok"}}' + " " * 100
    with tempfile.TemporaryDirectory() as folder:
        database = apsw.Connection(str(Path(folder) / "events.db"))
        database.execute("pragma journal_mode=wal").get  # noqa: B018
        database.execute(f"pragma synchronous={synchronous}")
        database.execute("create table events(session integer, seq integer, checksum integer, body text) strict")
        database.execute("create unique index by_seq on events(session, seq)")
        written, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            rows = [(written + number, 12345678, body) for number in range(batch)]
            with database:
                database.executemany("insert into events values(1,?,?,?)", rows)
            written += batch
        taken = time.perf_counter() - started
        database.close()
    return {"events_a_second": written / taken}


# ------------------------------------------------------------------------------------------ memory, import (W4, W5)
async def idle(agents: int) -> Figures:
    """KiB of memory for an agent with an open session that has nothing to do."""
    ready, stop = trio.Event(), trio.Event()
    open_ = 0

    async def one() -> None:
        nonlocal open_
        async with opened("tools"):
            open_ += 1
            if open_ == agents:
                ready.set()
            await stop.wait()

    async with opened("tools") as session:
        await session.turn("warm up")
    gc.collect()
    before = memory("VmRSS")
    async with trio.open_nursery() as nursery:
        for _ in range(agents):
            nursery.start_soon(one)
        await ready.wait()
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        kib = (memory("VmRSS") - before) / agents
        stop.set()
    return {"kib": kib}


DEPENDENCIES = "import trio, trio_util, attrs, cattrs, msgspec, jsonschema_rs"


def imports() -> Figures:
    """CPU time of a process that imports youyou, as a multiple of one that imports its dependencies."""

    def cost(code: str) -> float:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    pairs = [(cost("import youyou"), cost(DEPENDENCIES)) for _ in range(8)][1:]
    return {"ratio": statistics.median(ours / theirs for ours, theirs in pairs)}


# -------------------------------------------------------------------------------------------------------- stopping (W6)
class Passes(trio.abc.Instrument):
    """How often the loop went round."""

    count = 0

    def after_io_wait(self, _: float) -> None:
        """Once more."""
        self.count += 1


async def stopped_tools(times: int) -> Figures:
    """A cancel waits for 8 tools that end by themselves: from the last one's end to the terminal event."""
    return await cancelled(with_youyou, "ending", times)


async def passes_after_tools(times: int) -> Figures:
    """The same in passes of the loop, the reader's own waking included. The tools end one by one."""
    counter, seen = Passes(), []
    gates: list[trio.Event] = []
    ended = 0

    @youyou.tool
    async def noop(x: int) -> str:
        """Ends when it is told."""
        nonlocal ended
        await gates[x].wait()
        ended = counter.count
        return "ok"

    async def stop(turn: RunningTurn) -> None:
        await trio.testing.wait_all_tasks_blocked()
        turn.cancel()
        for gate in gates:
            await trio.testing.wait_all_tasks_blocked()
            gate.set()

    model = Model("tools")
    trio.lowlevel.add_instrument(counter)
    async with builder(model, tools=[noop]).build() as agent, await agent.new_session() as session:
        for _ in range(times):
            gates[:] = [trio.Event() for _ in range(CALLS["tools"])]
            turn = await session.send_message("go")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop, turn)
                async for _ in turn:
                    terminal = counter.count
                seen.append(terminal - ended)
    trio.lowlevel.remove_instrument(counter)
    return {"passes": statistics.median(seen), "passes_most": max(seen)}


# ------------------------------------------------------------------------------------------------------------- growth
async def calls(count: int, seconds: float) -> Figures:
    """A turn of one batch of so many calls."""
    CALLS["calls"], DELTAS["calls"] = count, 1
    async with opened("calls") as session:
        return await repeat(lambda: session.turn("hello"), seconds)


class Tapping:
    """A plugin that taps every hook and changes nothing."""

    display_name = description = "Looks."

    def __init__(self, number: int) -> None:
        self.id = f"tapping {number}"

    async def initialize(self, config: Any) -> None:
        """Nothing to do."""

    async def shutdown(self) -> None:
        """Nothing to do."""

    def apply(self, context: PluginContext) -> None:
        """All seven."""

        async def look(_: Any) -> Continue:
            return Continue()

        for hook in (
            youyou.SessionStart,
            youyou.TurnStart,
            youyou.BeforeToolUse,
            youyou.AfterToolUse,
            youyou.BeforeCompact,
            youyou.TurnEnd,
            youyou.SessionEnd,
        ):
            context.tap(hook, look)


async def plugins(count: int, seconds: float) -> Figures:
    """W2 with so many plugins that tap every hook."""
    model = Model("tools")
    making = builder(model)
    for number in range(count):
        making.register_plugin(Tapping(number))
    async with making.build() as agent, await agent.new_session() as session:
        return await repeat(lambda: Session(model, session).turn("hello"), seconds)


async def tools(count: int, seconds: float) -> Figures:
    """So many registered tools: opening a session, and a turn that uses none of them."""
    model = Model("short")

    def named(number: int) -> Tool:
        async def run(_: ToolInput) -> ToolOutput:
            return ToolOutput("ok")

        schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
        return Tool(f"tool_{number}", f"Tool number {number}, with a line of description.", schema, run)

    async with builder(model, tools=[named(number) for number in range(count)]).build() as agent:

        async def opening() -> None:
            async with await agent.new_session():
                pass

        opened_in = await repeat(opening, seconds)
        async with await agent.new_session() as session:
            turn = await repeat(lambda: Session(model, session).turn("hello"), seconds)
    return {"open_ms": opened_in["ms"], "turn_ms": turn["ms"]}


class Saying:
    """A model that says one text."""

    id = "saying"

    def __init__(self, text: str, window: int = 10**9) -> None:
        self.text, self.window = text, window

    def models(self) -> Sequence[ModelInfo]:
        """One model."""
        return [ModelInfo("model", "Model", self.window)]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """In one delta."""
        yield TextDelta(self.text)
        yield Done()


@asynccontextmanager
async def talking(model: Saying, storage: Any = None, session_id: str = "") -> AsyncIterator[youyou.Session]:
    """An agent and a session, resumed where it has an id."""
    making = AgentBuilder(AgentConfig("model")).register_model_provider(model)
    if storage is not None:
        making.register_session_storage(storage)
    async with making.build() as agent:
        opening = agent.resume_session(session_id) if session_id else agent.new_session()
        async with await opening as session:
            yield session


async def text(characters: int, letter: str, seconds: float) -> Figures:
    """A turn whose answer is one delta of so many characters."""
    async with talking(Saying(letter * characters)) as session:

        async def one() -> None:
            async for _ in await session.send_message("hello"):
                pass

        return await repeat(one, seconds)


class Longest(trio.abc.Instrument):
    """The longest step of any task."""

    def __init__(self) -> None:
        self.started = self.most = 0.0

    def before_task_step(self, _: trio.lowlevel.Task) -> None:
        """Begins."""
        self.started = time.perf_counter()

    def after_task_step(self, _: trio.lowlevel.Task) -> None:
        """Ends."""
        if self.started:  # not the step in which it was installed
            self.most = max(self.most, time.perf_counter() - self.started)


async def compaction(messages: int) -> Figures:
    """A turn that compacts so many messages first: its time, and the longest single step, during which nobody runs."""
    said: list[Message] = [UserMessage("hello, " * 10), AssistantMessage("what can I do? " * 10)] * (messages // 2)
    walls, steps = [], []
    for _ in range(4):
        storage, longest = InMemorySessionStorage(), Longest()
        events = [SessionEvent(seq, now(), message) for seq, message in enumerate(said, 1)]
        await storage.save_events("s", events)
        async with talking(Saying("ok", window=messages * 20), storage, "s") as session:
            before = len(session.history)
            gc.collect()
            trio.lowlevel.add_instrument(longest)
            started = time.perf_counter()
            async for _ in await session.send_message("go"):
                pass
            walls.append((time.perf_counter() - started) * 1e3)
            trio.lowlevel.remove_instrument(longest)
            steps.append(longest.most * 1e3)
            assert len(session.history) < before, "nothing was compacted"
    return {"ms": statistics.median(walls[1:]), "longest_step_ms": statistics.median(steps[1:])}


def now() -> datetime:
    """The time of an event."""
    return datetime.now(UTC)


async def resume(events: int) -> Figures:
    """Resuming a session of so many events from an SQLite file, and how much of it is reading the file."""
    said: list[Message] = [UserMessage("a question of some length"), AssistantMessage("An answer.")] * (events // 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        async with SQLiteSessionStorage(path) as storage:
            for start in range(0, events, 5_000):
                batch = enumerate(said[start : start + 5_000], start + 1)
                await storage.save_events("s", [SessionEvent(seq, now(), message) for seq, message in batch])
            started = time.perf_counter()
            await storage.load_session("s")
            loading = time.perf_counter() - started
        started = time.perf_counter()
        async with talking(Saying("ok"), SQLiteSessionStorage(path), "s"):
            resuming = time.perf_counter() - started
    return {"s": resuming, "load_s": loading}


# ------------------------------------------------------------------------------------------------------------- pieces
async def pieces() -> Figures:
    """Microseconds of what a turn is made of, each alone."""

    async def each(one: Callable[[], Awaitable[object]], count: int) -> float:
        return (await repeat(one, 0.1))["ms"] * 1e3 / count

    many = 1_000

    async def generator() -> AsyncIterator[int]:
        for number in range(many):
            yield number

    async def read() -> None:
        async for _ in generator():
            pass

    async def deltas() -> None:
        for _ in range(many):
            TextDelta("token ")

    async def clocks() -> None:
        for _ in range(many):
            datetime.now(UTC)

    async def checkpoints() -> None:
        for _ in range(many):
            await trio.lowlevel.checkpoint()

    async def scopes() -> None:
        for _ in range(many):
            with trio.CancelScope():  # noqa: ASYNC100  # its cost is what is asked for
                pass

    async def tasks() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(many):
                nursery.start_soon(nothing)

    async def nothing() -> None:
        pass

    async def hops() -> None:
        send, receive = trio.open_memory_channel[int](0)

        async def sending() -> None:
            async with send:
                for number in range(many):
                    await send.send(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sending)
            async for _ in receive:
                pass

    async def threads() -> None:
        for _ in range(100):
            await trio.to_thread.run_sync(int)

    return {
        "generator_item": await each(read, many),
        "delta": await each(deltas, many),
        "time_stamp": await each(clocks, many),
        "checkpoint": await each(checkpoints, many),
        "cancel_scope": await each(scopes, many),
        "task": await each(tasks, many),
        "hop": await each(hops, many),
        "thread": await each(threads, 100),
    }


def measure(workload: str, seconds: float) -> Figures:
    """The figures of a workload of this page, ``NAME:SIZE...``."""
    name, *sizes = workload.split(":")
    match name, sizes:
        case "W4 idle", [agents]:
            return trio.run(idle, int(agents))
        case "W5 import", []:
            return imports()
        case "W6 tools", [times]:
            return trio.run(stopped_tools, int(times))
        case "W6 passes", [times]:
            return trio.run(passes_after_tools, int(times))
        case "W7", [synchronous]:
            return trio.run(stored_turns, synchronous, seconds)
        case "W7 load", [synchronous, agents]:
            return trio.run(stored_load, synchronous, int(agents), seconds * 3)
        case "calls", [count]:
            return trio.run(calls, int(count), seconds)
        case "plugins", [count]:
            return trio.run(plugins, int(count), seconds)
        case "tools", [count]:
            return trio.run(tools, int(count), seconds)
        case "text", [characters, letter]:
            return trio.run(text, int(characters), letter, seconds)
        case "compaction", [messages]:
            return trio.run(compaction, int(messages))
        case "resume", [events]:
            return trio.run(resume, int(events))
        case "pieces", []:
            return trio.run(pieces)
    raise SystemExit(f"no workload {workload!r}")

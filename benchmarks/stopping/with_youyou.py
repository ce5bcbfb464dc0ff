"""youyou: the same scenarios on Trio, stopped after every step of any task, on Trio's mock clock.

Ways to stop: `cancel()`; `cancel(grace=1)`; `cancel(after_batch=True)`; `scope` (as the README does it: a cancel
scope round the reading, then `turn.cancel()` and `result()`); `task` (a cancellation leaves `async with turn`, the
session lives on); `host` (a cancellation leaves the agent; a new one resumes the session from its storage).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import trio
import trio.testing
import youyou
from youyou import (
    Agent,
    AgentBuilder,
    AgentConfig,
    AssistantMessage,
    ChatEvent,
    ChatRequest,
    Done,
    Message,
    ModelInfo,
    ProviderError,
    RunningTurn,
    Session,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnCancelled,
    TurnComplete,
    UserMessage,
)
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.testing import InMemorySessionStorage

from . import kill
from .judge import judge
from .world import Busy, Item, World

NAME = "youyou"
WAYS = ["cancel()", "cancel(grace=1)", "cancel(after_batch=True)", "scope", "host"]
DURABLE = True
WITHOUT: dict[str, str] = {}
DEFAULT = AgentConfig("model")
CLOSING = (DEFAULT.closing_ms + DEFAULT.tool_patience_ms) / 1e3
BOUNDS = {
    "cancel()": DEFAULT.tool_timeout_ms / 1e3 + CLOSING,
    "cancel(after_batch=True)": 10 * DEFAULT.tool_timeout_ms / 1e3 + CLOSING,
    "scope": DEFAULT.tool_timeout_ms / 1e3 + CLOSING,
    "cancel(grace=1)": 1 + CLOSING,
    "task": DEFAULT.shutdown_grace_ms / 1e3 + CLOSING,
    "host": DEFAULT.shutdown_grace_ms / 1e3 + CLOSING,
}
"""Way: the seconds in which it has to end (semantics 6.1, 6.2): its grace, or the tool's time-out, and closing."""


def items(messages: Sequence[Message]) -> list[Item]:
    """A request in the world's words: a text and the calls next to it are one assistant message."""
    found: list[Item] = []
    for message in messages:
        if isinstance(message, ToolCall):
            if not found or found[-1][0] != "assistant":
                found.append(("assistant", "", []))
            found[-1][2].append(message.call_id)
        elif isinstance(message, ToolResult):
            found.append(("result", message.call_id, message.content))
        elif isinstance(message, UserMessage | AssistantMessage):
            text = "".join(getattr(block, "text", "") for block in message.content)
            found.append(("user", text) if isinstance(message, UserMessage) else ("assistant", text, []))
    return found


class Model:
    """The world's model."""

    id = "model"

    def __init__(self, world: World) -> None:
        self.world = world

    def models(self) -> Sequence[ModelInfo]:
        """One."""
        return [ModelInfo("model", "Model", 10**9)]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """One answer."""
        try:
            async for event in self.world.model(items(request.messages)):
                if event[0] == "text":
                    yield TextDelta(event[1])
                else:
                    yield ToolCall(event[1], event[2], {"x": event[3]})
        except Busy as error:
            raise ProviderError(str(error)) from error
        yield Done()


def build(world: World, storage: Any) -> Any:
    """An agent with the world's tools, at defaults."""

    @youyou.tool
    async def read(x: int) -> str:
        """Reads."""
        return await world.tool("read", x)

    @youyou.tool
    async def slow(x: int) -> str:
        """Takes long."""
        return await world.tool("slow", x)

    @youyou.tool(mutating=True)
    async def write(x: int) -> str:
        """Writes."""
        return await world.tool("write", x)

    @youyou.tool
    def block(x: int) -> str:
        """Blocks its thread."""
        return world.block(x)

    making = AgentBuilder(DEFAULT).register_model_provider(Model(world)).register_session_storage(storage)
    for tool in (read, slow, write, block):
        making.register_tool(tool)
    return making.build()


class Steps(trio.abc.Instrument):
    """Calls the world after each step of any task."""

    def __init__(self, world: World) -> None:
        self.world = world

    def after_task_step(self, _: trio.lowlevel.Task) -> None:
        """One more step."""
        self.world.step()


def tasks() -> set[trio.lowlevel.Task]:
    """All tasks of the run."""
    found: set[trio.lowlevel.Task] = set()
    root = trio.lowlevel.current_root_task()
    open_ = [root] if root else []
    while open_:
        task = open_.pop()
        found.add(task)
        for nursery in task.child_nurseries:
            open_ += nursery.child_tasks
    return found


class Run:
    """One run: three messages, and a stop in the second one."""

    def __init__(self, scenario: str, way: str, at: int) -> None:
        self.way, _, more = way.partition(", ")
        self.at = at
        self.world = World(scenario, trio.sleep, trio.current_time)
        self.world.at, self.world.again_at = at, at + 4 if more == "twice" and at else 0
        self.world.stop = self.stop
        self.out: dict[str, Any] = {"at": at, "end": "no terminal event"}
        self.turn: RunningTurn | None = None
        self.scope = trio.CancelScope()
        self.stopped, self.ended = trio.Event(), trio.Event()
        self.steps = Steps(self.world)

    def stop(self) -> bool:
        """By the way that is tried."""
        if self.way in ("task", "host", "scope"):
            self.scope.cancel()
        elif self.turn is None:
            return False
        else:
            self.turn.cancel(grace=1 if "grace" in self.way else None, after_batch="after_batch" in self.way)
        if self.ended.is_set():
            self.out["natural"] = True
        self.stopped.set()
        return True

    async def read(self, session: Session, text: str, saw: Callable[[str], None]) -> None:
        """A message, read to its end in a block."""
        async with await session.send_message(text) as turn:
            self.turn = turn
            await self.events(turn, saw)

    async def events(self, turn: RunningTurn, saw: Callable[[str], None]) -> None:
        """Until the terminal event."""
        async for event in turn:
            payload = event.payload
            if self.world.message == "second" and isinstance(payload, TurnCancelled | TurnComplete):
                self.out["end"] = type(payload).__name__
            saw(payload.text if isinstance(payload, TextDelta) else "")

    async def second(self, session: Session) -> None:
        """The message that is stopped."""
        self.world.message, self.turn = "second", None
        trio.lowlevel.add_instrument(self.steps)
        self.world.counting = True
        if self.way != "scope":
            await self.read(session, "second", self.world.saw)
            return
        turn = self.turn = await session.send_message("second")
        with self.scope:
            await self.events(turn, self.world.saw)
        turn.cancel()
        self.out["end"] = (await turn.result()).status.value

    def over(self) -> None:
        """The second message is over: the block is left, or the loop has ended."""
        self.world.counting = False
        if not self.stopped.is_set():
            self.out["natural"] = True
        now = trio.current_time()
        taken = now - (now if self.world.stopped_at is None else self.world.stopped_at)
        self.out |= {"ms": taken * 1e3, "slow": taken > 3, "late": taken > BOUNDS[self.way]}
        self.out["cpu_ms"] = (time.perf_counter() - self.world.cpu) * 1e3 if self.world.cpu else 0.0
        self.out["ran_then"] = len(self.world.ran)
        self.ended.set()

    async def after(self, before: set[trio.lowlevel.Task]) -> None:
        """A second later: what is left."""
        await trio.sleep(0.05 if self.world.scenario == "threads" else 1)
        left = {task.name for task in tasks() - before if task is not trio.lowlevel.current_task()}
        self.out["left"] = bool(left) or self.world.unfinished() > 0

    async def third(self, session: Session) -> None:
        """The next message."""
        self.world.message = "third"
        try:
            with trio.fail_after(20):
                await self.read(session, "third", lambda _: None)
        except (youyou.AgentError, trio.TooSlowError) as error:
            self.out["next"] = f"{type(error).__name__}: {str(error)[:150]}"

    async def in_a_session(self) -> None:
        """All three messages in one session."""
        async with build(self.world, InMemorySessionStorage()) as agent, await agent.new_session() as session:
            await self.read(session, "first", lambda _: None)
            await trio.sleep(0.1)
            before = tasks()
            if self.way == "task":
                with self.scope:
                    await self.second(session)
                if self.scope.cancelled_caught:
                    self.out["end"] = "Cancelled"
            else:
                await self.second(session)
            self.over()
            await self.after(before)
            await self.third(session)

    async def in_two_agents(self) -> None:
        """The first agent is left by a cancellation; another resumes."""
        storage, before = InMemorySessionStorage(), tasks()
        with self.scope:
            async with build(self.world, storage) as agent, await agent.new_session() as session:
                name = session.id
                await self.read(session, "first", lambda _: None)
                await trio.sleep(0.1)
                await self.second(session)
        self.over()
        if self.scope.cancelled_caught:
            self.out["end"] = "Cancelled"
        await self.after(before)
        other: Agent
        async with build(self.world, storage) as other, await other.resume_session(name) as session:
            await self.third(session)

    async def counted(self, window: float) -> dict[str, Any]:
        """How many steps and events there are to stop at."""
        with trio.move_on_after(window):
            async with build(self.world, InMemorySessionStorage()) as agent, await agent.new_session() as session:
                await self.read(session, "first", lambda _: None)
                try:
                    with trio.move_on_after(window - 0.1):
                        await self.second(session)
                finally:
                    self.world.counting = False
        trio.lowlevel.remove_instrument(self.steps)
        return {"steps": self.world.steps, "events": self.world.events}

    async def judged(self, window: float) -> dict[str, Any]:
        """The whole run, judged."""
        if not self.at:
            return await self.counted(window)
        try:
            await (self.in_two_agents() if self.way == "host" else self.in_a_session())
        except Exception as error:
            self.out["end"], self.out["next"] = type(error).__name__, str(error)[:150]
        trio.lowlevel.remove_instrument(self.steps)
        asked = self.world.requests["third"]
        self.out["request"] = asked[0] if asked else None
        return judge(self.world, self.out)


def killed(_: Any, scenario: str, at: int) -> dict[str, Any]:
    """One run that is killed, and resumed by another process, with a file and Trio's own clock."""

    async def begin(world: World, folder: Path) -> None:
        storage = SQLiteSessionStorage(folder / "sessions.db")
        with trio.move_on_after(kill.WINDOW if scenario == "hang" else 30) as limit:
            async with build(world, storage) as agent, await agent.new_session() as session:
                (folder / "id").write_text(session.id)
                running = Run(scenario, "cancel()", 0)
                running.world = world
                await running.read(session, "first", lambda _: None)
                world.message, world.counting = "second", True
                trio.lowlevel.add_instrument(Steps(world))
                limit.deadline = trio.current_time() + (kill.WINDOW if scenario == "hang" else 30)
                try:
                    await running.read(session, "second", world.saw)
                finally:
                    world.counting = False

    async def resume(world: World, folder: Path) -> None:
        storage, running = SQLiteSessionStorage(folder / "sessions.db"), Run(scenario, "cancel()", 0)
        running.world = world
        with trio.fail_after(20):
            name = (folder / "id").read_text()
            async with build(world, storage) as agent, await agent.resume_session(name) as session:
                await running.read(session, "third", lambda _: None)

    return kill.killed(
        lambda world, folder: trio.run(begin, world, folder),
        lambda world, folder: trio.run(resume, world, folder),
        scenario,
        at,
        lambda name: World(name, trio.sleep, time.monotonic),
    )


def run(_: Any, scenario: str, way: str, at: int, window: float) -> dict[str, Any]:
    """One run in a loop of its own. Threads take their time on the real clock, so with them there is no other."""
    clock = None if scenario == "threads" else trio.testing.MockClock(autojump_threshold=0)

    async def main() -> dict[str, Any]:
        return await Run(scenario, way, at).judged(5 if scenario == "threads" else window)

    return trio.run(main, clock=clock)

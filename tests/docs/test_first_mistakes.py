"""Each line of the page of first mistakes: the mistake is made, and what is read then is what the page says."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import threading
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
import trio.testing
import youyou
from youyou import (
    Abort,
    AgentBuilder,
    AgentConfig,
    ImageBlock,
    Notices,
    SessionConfig,
    Tool,
    ToolCallEnd,
    TurnStart,
    UserInput,
    tool,
)
from youyou.testing import InMemoryMemoryStorage, InMemorySessionStorage, ScriptedProvider, call, calls, say

PAGE = Path(__file__).parents[2] / "docs" / "first-mistakes.md"
ROW = re.compile(r"^\| (?P<mistake>.+?) \| (?P<read>.+) \| (?P<instead>.+) \|$", re.MULTILINE)
MISTAKES: dict[str, Any] = {}


def mistake(name: str) -> Any:
    """Register a function that makes the mistake of this name; it raises, or returns what is seen."""

    def decorate(function: Any) -> Any:
        MISTAKES[name] = function
        return function

    return decorate


def builder(model: Any = None, **fields: Any) -> Any:
    """A builder that works."""
    config = AgentConfig(**{"default_model": "scripted", "notices": Notices.english(), **fields})
    return AgentBuilder(config).register_model_provider(model or ScriptedProvider([say("hi"), say("there")]))


def built(**fields: Any) -> Any:
    """A mistake that `build` finds: of the configuration."""
    return lambda: builder(**fields).build()


def registered(kind: str, part: Any, *more: Any) -> Any:
    """A mistake that `build` finds: in what is registered."""

    def make() -> None:
        made = builder()
        for each in (part, *more):
            getattr(made, f"register_{kind}")(each)
        made.build()

    return make


def in_session(use: Any) -> Any:
    """A mistake that is made with an agent and its open session."""

    async def make() -> Any:
        async with builder().build() as agent, await agent.new_session() as session:
            return await use(agent, session)

    return make


def with_turn(use: Any) -> Any:
    """A mistake that is made with a turn that was just started."""

    async def start(_: Any, session: Any) -> Any:
        return await use(await session.send_message("Hi"), session)

    return in_session(start)


def with_tool(execute: Any, **fields: Any) -> Any:
    """What the model reads of a call to this tool."""

    async def make() -> Any:
        made = builder(ScriptedProvider([calls(call("t", {})), say("done")]), **fields)
        made.register_tool(tool(execute, name="t"))
        async with made.build() as agent, await agent.new_session() as session:
            turn = await session.send_message("Hi")
            ends = [event.payload async for event in turn if isinstance(event.payload, ToolCallEnd)]
            return ends[0].output.content

    return make


class Audit:
    """A plugin that taps one hook."""

    id = display_name = description = "audit"

    def __init__(self, hook: Any = TurnStart, handler: Any = None) -> None:
        self.hook, self.handler = hook, handler

    async def initialize(self, config: Any) -> None:
        """Do nothing."""

    def apply(self, ctx: Any) -> None:
        """Tap the hook."""
        if self.handler is not None:
            ctx.tap(self.hook, self.handler)

    async def shutdown(self) -> None:
        """Do nothing."""


def with_hook(handler: Any, hook: Any = TurnStart) -> Any:
    """What the turn's error says when this handler is tapped."""

    async def make() -> Any:
        made = builder().register_plugin(Audit(hook, handler))
        async with made.build() as agent, await agent.new_session() as session:
            return str((await (await session.send_message("Hi")).result()).error)

    return make


# --- Trio and asyncio


@mistake("`asyncio.run(main())`")
def _() -> None:
    async def main() -> None:
        async with builder().build():
            pass

    asyncio.run(main())


@mistake("`trio.run(main())`")
def _() -> None:
    async def main() -> None:
        pass

    trio.run(main())


async def sleeps_by_asyncio() -> str:
    """Sleep."""
    await asyncio.sleep(1)
    return "done"


MISTAKES["`await asyncio.sleep(1)` in a tool"] = with_tool(sleeps_by_asyncio)


@mistake("`turn.cancel()` from a thread")
@with_turn
async def _(turn: Any, session: Any) -> Any:
    said: list[str] = []

    def cancels() -> None:
        try:
            turn.cancel()
        except youyou.AgentError as error:
            said.append(str(error))

    thread = threading.Thread(target=cancels)
    thread.start()
    thread.join()
    return said[0]


@mistake("`await turn.cancel()`")
@with_turn
async def _(turn: Any, session: Any) -> None:
    await turn.cancel()


@mistake("`time.sleep(...)` in an async tool")
async def _() -> str:
    async def blocks() -> str:
        time.sleep(0.01)  # noqa: ASYNC251  the mistake
        return "done"

    events: list[float] = []

    async def ticks() -> None:
        while True:
            events.append(time.perf_counter())
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ticks)
        await with_tool(blocks)()
        nursery.cancel_scope.cancel()
    longest = max(later - earlier for earlier, later in pairwise(events))
    return "nothing: all stands still, no event comes, and a cancel waits" if longest >= 0.01 else "others ran"


@mistake("`except BaseException` around `await` in a tool")
async def _() -> str:
    async def stays() -> str:
        try:
            await trio.sleep_forever()
        except BaseException:
            return "went on"
        return "done"

    made = builder(ScriptedProvider([calls(call("t", {}))])).register_tool(tool(stays, name="t"))
    async with made.build() as agent, await agent.new_session() as session:
        turn = await session.send_message("Hi")
        await trio.testing.wait_all_tasks_blocked()
        turn.cancel(grace=0)
        said = (await turn.result()).tool_results[0].content
    return "nothing at first: a cancelled tool goes on, and the turn waits for it" if said == "went on" else said


# --- Building an agent

MISTAKES['`Agent("gpt-5-mini")`'] = lambda: youyou.Agent("gpt-5-mini")


@mistake("`async with builder as agent:`")
async def _() -> None:
    async with builder():
        pass


MISTAKES["`agent = builder.build()`, then `agent.new_session()`"] = lambda: builder().build().new_session()


@mistake("`with builder.build() as agent:`")
def _() -> None:
    with builder().build():
        pass


@mistake("entering what `build()` gave a second time")
async def _() -> None:
    agent = builder().build()
    async with agent:
        pass
    async with agent:
        pass


MISTAKES |= {
    "no provider registered": lambda: AgentBuilder(AgentConfig(default_model="gpt-5-mini")).build(),
    "a provider by its name": registered("model_provider", "openai"),
    "a class in the place of an object": registered("model_provider", ScriptedProvider),
    "`default_model` that no provider offers": built(default_model="gpt-4"),
    "`AgentBuilder(\"gpt-5-mini\")`": lambda: AgentBuilder("gpt-5-mini").register_model_provider(
        ScriptedProvider([])
    ).build(),
    "a field of the configuration misspelt": lambda: AgentConfig(default_model="gpt-5-mini", tool_timeout=5),
    "a fraction, meant as seconds": built(tool_timeout_ms=0.5),
    "`retry=3`": built(retry=3),
    "`environment={\"os\": \"Linux\"}`": built(environment={"os": "Linux"}),
}  # fmt: skip


async def sleeps() -> str:
    """Sleep."""
    await trio.sleep(5)
    return "done"


MISTAKES["whole seconds in a field of milliseconds"] = with_tool(sleeps, tool_timeout_ms=30)


# --- Models and keys


def openai(**options: Any) -> Any:
    """A provider of the extra ``openai``."""
    module = pytest.importorskip("youyou.adapters.openai", reason="needs the extra openai")
    return module.OpenAIProvider(**{"models": ["gpt-5-mini"], **options})


MISTAKES |= {
    "one model id in the place of a list": lambda: openai(models="gpt-5-mini", api_key="sk-1"),
    "a key with the line break of its file": lambda: openai(api_key="sk-1\n"),
    "no key at all": lambda: openai(),
}


@mistake("a session with a model that is not there")
async def _() -> None:
    async with builder().build() as agent:
        await agent.new_session(SessionConfig(model_id="gpt-4"))


# --- Sessions


@mistake("`with await agent.new_session() as session:`")
@in_session
async def _(agent: Any, session: Any) -> None:
    with session:
        pass


@mistake('`agent.send_message("Hi")`')
@in_session
async def _(agent: Any, session: Any) -> None:
    await agent.send_message("Hi")


@mistake("a dict in the place of the configuration")
async def _() -> None:
    async with builder().build() as agent:
        await agent.new_session({"model_id": "gpt-4"})


@mistake("two sessions of one agent at once")
@in_session
async def _(agent: Any, session: Any) -> None:
    await agent.new_session()


@mistake("a session that nobody closes")
async def _() -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        async with builder().build() as agent:
            await agent.new_session()
            gc.collect()
    return str([each.message for each in caught if each.category is ResourceWarning][-1])


@mistake("sending after the session's block")
async def _() -> None:
    async with builder().build() as agent:
        async with await agent.new_session() as session:
            pass
        await session.send_message("Hi")


@mistake("`new_session` after the agent's block")
async def _() -> None:
    async with builder().build() as agent:
        pass
    await agent.new_session()


@mistake("closing the session in one of its tools")
async def _() -> Any:
    sessions: list[Any] = []

    async def closes() -> str:
        await sessions[0].close()
        return "closed"

    made = builder(ScriptedProvider([calls(call("t", {})), say("done")])).register_tool(tool(closes, name="t"))
    async with made.build() as agent, await agent.new_session() as session:
        sessions.append(session)
        return (await (await session.send_message("Hi")).result()).tool_results[0].content


@mistake("resuming without a storage")
async def _() -> None:
    async with builder().build() as agent:
        await agent.resume_session("abc")


@mistake("a path in the place of a session's id")
async def _() -> None:
    async with builder().register_session_storage(InMemorySessionStorage()).build() as agent:
        await agent.resume_session("../chat.db")


@mistake("the session itself in the place of its id")
@in_session
async def _(agent: Any, session: Any) -> None:
    await agent.resume_session(session)


@mistake("`session.history.append(...)`")
@in_session
async def _(agent: Any, session: Any) -> None:
    session.history.append("Hi")


@mistake("two agents that open one stored session")
async def _() -> None:
    from youyou.testing import InMemoryClaimedStorage

    storage = InMemoryClaimedStorage()
    one, two = (builder().register_session_storage(storage).build() for _ in range(2))
    async with one as first, two as second, await first.new_session() as session:
        await (await session.send_message("Hi")).result()
        await second.resume_session(session.id)


# --- Turns and events


@mistake('`turn = session.send_message("Hi")`')
@in_session
async def _(agent: Any, session: Any) -> None:
    turn = session.send_message("Hi")
    try:
        async for _ in turn:
            pass
    finally:
        turn.close()


@mistake("`await turn`")
@with_turn
async def _(turn: Any, session: Any) -> None:
    await turn


@mistake("`for event in turn:`")
@with_turn
async def _(turn: Any, session: Any) -> None:
    for _ in turn:
        pass


@mistake("`turn.text`")
@with_turn
async def _(turn: Any, session: Any) -> Any:
    return turn.text


@mistake("`event.text`")
@with_turn
async def _(turn: Any, session: Any) -> Any:
    return [event.text async for event in turn]


@mistake("sending while a turn runs")
@with_turn
async def _(turn: Any, session: Any) -> None:
    await session.send_message("And?")


@mistake("`result()` first, events after")
@with_turn
async def _(turn: Any, session: Any) -> Any:
    await turn.result()
    return [event async for event in turn]


@mistake("reading the events a second time")
@with_turn
async def _(turn: Any, session: Any) -> str:
    assert [event async for event in turn]
    return "nothing: the loop is empty" if not [event async for event in turn] else "something"


@mistake("reading the events after the session's block")
async def _() -> str:
    async with builder().build() as agent, await agent.new_session() as session:
        turn = await session.send_message("Hi")
    (only,) = [event async for event in turn]
    return f"`{type(only.payload).__name__}` as the only event"


@mistake("waiting for an exception from a failed turn")
async def _() -> str:
    async with builder(ScriptedProvider([])).build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("Hi")).result()
    return "nothing: `result()` raises nothing" if result.error is not None else "it did not fail"


def sent(content: Any) -> Any:
    """A mistake in what is sent."""

    async def send(_: Any, session: Any) -> None:
        await session.send_message(content)

    return in_session(send)


MISTAKES |= {
    "an empty message": sent(""),
    '`{"role": "user", ...}` as the message': sent({"role": "user", "content": "Hi"}),
    "an image as bytes": sent(ImageBlock(b"\x89PNG", "image/png")),
    "a skill that is not registered": sent(UserInput("Hi", skills=("recap",))),
}


@mistake('`turn.cancel(grace="2s")`')
@with_turn
async def _(turn: Any, session: Any) -> None:
    turn.cancel(grace="2s")


# --- Tools


async def weather(city: str) -> str:
    """Weather."""
    return city


async def total(*args: int) -> int:
    """Sum up."""
    return sum(args)


class Stations:
    """A class with a tool."""

    @staticmethod
    def declare() -> Any:
        """Decorate a method."""

        class Station:
            @tool
            async def weather(self, city: str) -> str:
                """Weather."""
                return city

        return Station().weather


class Weather:
    """A handler whose ``execute`` is sync."""

    name = description = "weather"
    parameters: ClassVar = {"type": "object"}
    mutating = False

    def execute(self, input: Any) -> Any:
        """Answer."""


def declares_untyped() -> str:
    """A tool whose parameter has no annotation."""

    async def weather(city):  # type: ignore[no-untyped-def]
        return city

    return f"`{tool(weather).parameters['properties']}` as its properties: the model is not told what to pass"


async def gives_a_set() -> set[str]:
    """Cities."""
    return {"Oslo"}


async def gives_an_object() -> object:
    """An object."""
    return object()


def forgets_await() -> Any:
    """Sleep."""
    return trio.sleep(1)  # noqa: ASYNC105  the mistake


@mistake("a tool that returns a set")
async def _() -> str:
    return f"`{await with_tool(gives_a_set)()}`: a list, in no certain order"


MISTAKES |= {
    "a plain function as a tool": registered("tool", weather),
    "a tool registered twice": registered("tool", tool(weather), tool(weather)),
    "`register_tool([weather])`": registered("tool", [tool(weather)]),
    "parameters without annotations": declares_untyped,
    "`*args` as parameters": lambda: tool(total),
    "the method of a class as a tool": Stations.declare,
    "a schema of properties alone": registered(
        "tool", Tool("weather", "Weather.", {"city": {"type": "string"}}, execute=weather)
    ),
    "a tool that returns an object": with_tool(gives_an_object),
    "`return trio.sleep(1)` in a plain tool": with_tool(forgets_await),
    "a handler class whose `execute` is sync": registered("tool", Weather()),
}


# --- Hooks, plugins and storages


async def tap_nothing(event: Any) -> None:
    """Go on."""


async def tap_without() -> None:
    """Go on."""


async def tap_with_two(context: Any, event: Any) -> None:
    """Go on."""


async def tap_class(event: Any) -> Any:
    """Refuse, wrongly."""
    return Abort


async def tap_true(event: Any) -> Any:
    """Go on, wrongly."""
    return True


class SyncPlugin(Audit):
    """Its initialize is sync."""

    def initialize(self, config: Any) -> None:
        """Do nothing."""


class NarrowPlugin(Audit):
    """Its initialize takes nothing."""

    async def initialize(self) -> None:
        """Do nothing."""


SyncPlugin.__name__ = NarrowPlugin.__name__ = "Audit"


class SyncStore(InMemorySessionStorage):
    """One of its methods is sync."""

    def delete_session(self, session_id: str) -> None:
        """Forget it."""


class NarrowStore(InMemorySessionStorage):
    """One of its methods lacks a parameter."""

    async def save_events(self, events: Any) -> None:
        """Save them."""


SyncStore.__name__ = NarrowStore.__name__ = "Store"


@mistake("a hook without its parameter, or with two")
async def _() -> str:
    said = []
    for handler in (tap_without, tap_with_two):
        with pytest.raises(youyou.PluginInitFailed) as failed:
            await with_hook(handler)()
        said.append(re.sub(r"<function \w+ at 0x\w+>", "...", str(failed.value)))
    assert said[0] == said[1]
    return said[0]


@mistake("a file in a folder that is not there")
async def _() -> None:
    module = pytest.importorskip("youyou.adapters.sqlite", reason="needs the extra sqlite")
    async with module.SQLiteSessionStorage("/no/folder/chat.db") as storage:
        await storage.list_sessions()


MISTAKES |= {
    "a function as a plugin": registered("plugin", tap_nothing),
    "a hook misspelt": with_hook(tap_nothing, "BeforeTool"),
    "a sync hook": with_hook(lambda event: None),
    "`return Abort` without its reason": with_hook(tap_class),
    "`return True` from a hook": with_hook(tap_true),
    "a plugin whose `initialize` is sync": registered("plugin", SyncPlugin()),
    "a plugin whose `initialize` takes nothing": registered("plugin", NarrowPlugin()),
    "a storage with sync methods": registered("session_storage", SyncStore()),
    "a storage whose method lacks a parameter": registered("session_storage", NarrowStore()),
    "a memory storage as session storage": registered("session_storage", InMemoryMemoryStorage()),
    "a second storage of one kind": registered("session_storage", InMemorySessionStorage(), InMemorySessionStorage()),
}


# Where Python itself answers, in the words of 3.11 to 3.13.
ANSWERED_BY_PYTHON = ("`await turn.cancel()`", "`await turn`", '`turn = session.send_message("Hi")`')


def rows() -> dict[str, re.Match[str]]:
    """The lines of the page by their mistake."""
    found = {row["mistake"]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    return {name: row for name, row in found.items() if name not in ("mistake", "---")}


def pattern(read: str) -> re.Pattern[str]:
    """What the page says is read, as a pattern: ``...`` is anything."""
    text = read[1:-1] if read.startswith("`") and read.endswith("`") and read.count("`") == 2 else read
    return re.compile(".*".join(map(re.escape, text.split("..."))), re.DOTALL)


def made(make: Any) -> str:
    """What the mistake gives to read."""
    try:
        return str(trio.run(make) if asyncio.iscoroutinefunction(make) else make())
    except Exception as error:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        return str(error)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_as_the_page_says(name, monkeypatch):
    """What is read is the page's words, from the beginning; and the page says what to write instead."""
    if sys.version_info >= (3, 14) and name in ANSWERED_BY_PYTHON:
        pytest.skip("this Python has other words of its own")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    row = rows()[name]

    said = made(MISTAKES[name])

    assert pattern(row["read"]).match(said), f"{said!r} is not {row['read']!r}"
    assert row["instead"].strip()


def test_every_line_of_the_page_has_its_mistake():
    """Nothing on the page goes untried, and it holds the first forty mistakes at least."""
    assert set(MISTAKES) == set(rows())
    assert len(MISTAKES) >= 40

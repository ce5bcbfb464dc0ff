"""The runtime under its own kit: whatever is stopped, broken or killed, at whatever step, every promise holds.

Each scenario is one way to use an agent. Each is swept by cancelling the turn, closing the session, shutting the agent
down and cancelling the host, after every step, with and without a grace, then again during the clean-up; by Ctrl-C; by
breaking every call of the storages; and by orders of tasks. The oracle is `AgentInvariants`, see ``conftest.py``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
import youyou
from youyou import Done, TextDelta
from youyou.testing import Report, Simulation, explore, sweep
from youyou.testing.agents.scripted import call, calls, say

pytestmark = pytest.mark.long

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
Scenario = Callable[[Any], Awaitable[None]]


async def text_only(world: Any) -> None:
    """An answer in words."""
    world.says([TextDelta("hel"), 1.0, TextDelta("lo"), Done()])
    await world.run(world.say)


async def concurrent_tools(world: Any) -> None:
    """Three read-only tools at once, two places for them."""
    world.configure(max_concurrent_tools=2)
    for number in (1, 2, 3):
        world.tool(f"read{number}", takes=float(number))
    world.says([TextDelta("let me see"), call("read1"), call("read2"), call("read3"), Done()], say("all read"))
    await world.run(world.say)


async def serial_batch(world: Any) -> None:
    """Three mutating tools, one after the other."""
    for number in (1, 2, 3):
        world.tool(f"write{number}", takes=1.0, mutating=True)
    world.says(calls("write1", "write2", "write3"), say("written"))
    await world.run(world.say)


async def retry_wait(world: Any) -> None:
    """Two failures before the first word, then an answer."""
    world.says([youyou.ProviderError("busy")], [0.5, youyou.ProviderError("busy")], say("at last"))
    await world.run(world.say)


class Slow:
    """A plugin that takes a second at everything."""

    id = display_name = description = "slow"

    def __init__(self, later: float = 1.0) -> None:
        self.later = later

    async def initialize(self, config: Any) -> None:
        await trio.sleep(1)

    def apply(self, ctx: youyou.PluginContext) -> None:
        hooks = (youyou.SessionStart, youyou.SessionEnd, youyou.TurnStart, youyou.TurnEnd, youyou.BeforeToolUse)
        for hook in (*hooks, youyou.AfterToolUse, youyou.BeforeCompact):
            ctx.tap(hook, self._wait)

    async def _wait(self, event: Any) -> None:
        await trio.sleep(1)

    async def shutdown(self) -> None:
        await trio.sleep(self.later)


async def slow_hooks(world: Any) -> None:
    """Every hook takes a second."""
    world.plugins.append(Slow())
    world.tool("read1", takes=1.0)
    world.says(calls("read1"), say("read"))
    await world.run(world.say)


async def slow_store(world: Any) -> None:
    """Every write takes a second: more than the host's own cancellation leaves for the last ones."""
    world.lossy = world.kind == "host"
    world.store.delay = 1.0
    world.tool("write1", takes=1.0, mutating=True)
    world.says(calls("write1"), say("written"))
    await world.run(world.say)


async def slow_reader(world: Any) -> None:
    """A reader that is slower than the model, and a buffer of two events."""
    world.configure(event_buffer=2)
    world.says([*[TextDelta(str(number)) for number in range(8)], Done()])

    async def talk() -> None:
        await world.read(await world.send("go"), pause=1)

    await world.run(talk)


async def unread(world: Any) -> None:
    """Nobody reads."""
    world.reads = False
    world.tool("read1", takes=1.0)
    world.says(calls("read1"), [*[TextDelta("x")] * 5, Done()])
    await world.run(world.say)


async def queued(world: Any) -> None:
    """A second message waits in line."""
    world.says([TextDelta("one"), 1.0, Done()], [TextDelta("two"), 1.0, Done()])

    async def talk() -> None:
        first = await world.send("first")
        second = await world.send("second", queue=True)
        await world.read(first)
        await world.read(second)

    await world.run(talk)


async def steered(world: Any) -> None:
    """A message is put into the running turn."""
    world.tool("read1", takes=1.0)
    world.says(calls("read1"), [1.0, TextDelta("read"), Done()], say("noted"))

    async def talk() -> None:
        turn = await world.send("go")
        accepted = turn.steer("and this")
        result = await world.read(turn)
        delivered = sum("and this" in str(message) for message in world.opened.history)
        assert delivered + len(result.undelivered) == accepted

    await world.run(talk)


async def tool_timeout(world: Any) -> None:
    """A tool that takes longer than it may, beside one that does not."""
    world.configure(tool_timeout_ms=1_500)
    world.tool("read1", takes=1.0)
    world.tool("read2", takes=50.0)
    world.says(calls("read1", "read2"), say("half of it"))
    await world.run(world.say)


async def broken_stream(world: Any) -> None:
    """A stream that breaks off after its first words, and a turn after that."""
    world.failing = True
    world.says([TextDelta("hel"), 0.5, youyou.ProviderError("gone")], say("again"))
    await world.run(world.say)


async def compaction(world: Any) -> None:
    """A small window: history is summarised, and once truncated."""
    world.tokens = 600
    world.says(
        say("word " * 200), say("word " * 200), [0.5, TextDelta("a summary"), Done()], say("short"), say("x" * 900)
    )
    await world.run(partial(world.say_all, "tell me", "more", "and more"))


async def overflow(world: Any) -> None:
    """The provider says that the request is too long."""
    world.failing = True
    world.says(
        say("word " * 100),
        [0.5, youyou.ContextLengthExceeded("too long")],
        [0.5, TextDelta("a summary"), Done()],
        say("fits now"),
    )
    await world.run(partial(world.say_all, "tell me", "more"))


async def memory_checkpoints(world: Any) -> None:
    """Memories are searched in each turn and extracted after each."""
    world.configure(memory_checkpoint_interval=1)
    notes = '[{"content": "likes tea"}]'
    world.says(say("noted"), [0.5, TextDelta(notes), Done()], say("noted too"), [0.5, TextDelta(notes), Done()])
    await world.run(partial(world.say_all, "I like tea", "And milk"))


async def pipeline(world: Any) -> None:
    """Three fixed steps, one of them with a tool."""
    world.tool("read1", takes=1.0)
    steps = (
        youyou.Step("outline", "Outline {input}", tools=("read1",)),
        youyou.Step("split", "Split {steps.outline}", tools=()),
        youyou.Step("cards", "Cards of {steps.split}", mode=youyou.SingleShot()),
    )
    world.profiles.append(
        youyou.AgentProfile("book", youyou.ProfileKind.SKILL, "Book", "Takes books apart.", mode=youyou.Pipeline(steps))
    )
    world.session_config = youyou.SessionConfig(skill="book")
    world.says(calls("read1"), say("an outline"), [0.5, TextDelta("parts"), Done()], say("cards"))
    await world.run(world.say)


async def repaired(world: Any) -> None:
    """An answer that does not fit is sent back; a tool runs before the one that does."""
    world.tool("read1", takes=1.0)
    world.says(
        [TextDelta('{"city": '), 1.0, TextDelta("7}"), Done()],
        calls("read1"),
        [TextDelta('{"city": '), 1.0, TextDelta('"Oslo"}'), Done()],
    )

    async def talk() -> None:
        result = await world.read(await world.send("where?", output=CITY))
        assert ({"city": "Oslo"} if result.status is youyou.TurnStatus.COMPLETED else None) == result.output

    await world.run(talk)


async def limit_of_calls(world: Any) -> None:
    """More calls than a turn may have."""
    world.failing = True
    world.configure(max_tool_calls_per_turn=2)
    world.tool("read1", takes=1.0)
    world.says(calls(call("read1", id="a"), call("read1", id="b"), call("read1", id="c")))
    await world.run(world.say)


async def refusals(world: Any) -> None:
    """An unknown tool and one that fails, in one batch."""
    world.tool("read1", takes=1.0)
    world.says(calls("read1", "nothing"), say("well"))
    await world.run(world.say)


async def thread_tool(world: Any) -> None:
    """A plain function in a worker thread."""

    def work() -> str:
        return "done in a thread"

    world.tools["work"] = youyou.tool(work, thread="abandon")
    world.says(calls("work"), say("done"))
    await world.run(world.say)


async def two_sessions(world: Any) -> None:
    """One session after the other."""
    world.moved_on = True
    world.says(say("one"), say("two"))

    async def talk() -> None:
        await world.say()
        await world.opened.close()
        if await world.open():
            async with world.opened:
                await world.say()

    await world.run(talk)


async def resumed(world: Any) -> None:
    """A session is closed and opened again."""
    world.moved_on = True
    world.tool("write1", takes=1.0, mutating=True)
    world.says(calls("write1"), say("written"), say("again"))

    async def talk() -> None:
        await world.say()
        await world.opened.close()
        world.opened = await world.running.resume_session(world.opened.id)
        world.invariants.open(world.opened)
        async with world.opened:
            await world.say("go on")

    await world.run(talk)


SCENARIOS: list[Scenario] = [
    text_only, concurrent_tools, serial_batch, retry_wait, slow_hooks, slow_store, slow_reader, unread, queued, steered,
    tool_timeout, broken_stream, compaction, overflow, memory_checkpoints, pipeline, repaired, limit_of_calls, refusals,
    thread_tool, two_sessions, resumed,
]  # fmt: skip
"""The ways to use an agent."""


def told(make_world: Any, scenario: Scenario, kind: str, grace: float | None, **options: Any) -> Any:
    """A scenario as the engine runs it."""

    async def run(sim: Simulation) -> None:
        await scenario(make_world(sim, kind=kind, grace=grace, **options))

    run.__name__ = f"{scenario.__name__}_{kind}_{grace}"
    return run


async def hanging(world: Any) -> None:
    """Nothing comes to its end by itself: a store, a tool, a hook, a plugin."""
    world.failing = True
    world.plugins.append(Slow(1e6))
    world.store.delay = 1e6
    world.says(say("never said"))
    await world.run(world.say)


class Stubborn(Slow):
    """A plugin whose hooks cannot be cancelled for twenty seconds."""

    async def _wait(self, event: Any) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 20):
            await trio.sleep(20)


async def stubborn(world: Any) -> None:
    """A hook that will not be cut, so that the shield ends around all that wait for it."""
    world.unbounded = True
    world.plugins.append(Stubborn())
    world.tool("read1", takes=1.0)
    world.says(calls("read1"), say("read"))
    await world.run(world.say)


def interpret_result(report: Report, tally: Any) -> None:
    """Count, and fail with the smallest case."""
    tally.add(report)
    report.assert_ok()


STEPWISE = [text_only, concurrent_tools, serial_batch, retry_wait, slow_hooks]
"""The scenarios that are stopped after every single scheduler step."""


@pytest.mark.parametrize("scenario", STEPWISE, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("kind", ["turn", "close", "shutdown", "host"])
@pytest.mark.parametrize("grace", [0.0, 5.0])
def test_stopped_at_every_step(make_world: Any, tally: Any, scenario: Scenario, kind: str, grace: float) -> None:
    """Whatever is stopped, after whatever step: one terminal event, nothing lost, nothing twice, and life goes on."""
    interpret_result(sweep(told(make_world, scenario, kind, grace), cancel=kind, points="every-step"), tally)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize(
    ("kind", "grace"),
    [("turn", None), ("turn", 0.0), ("close", None), ("shutdown", 0.0), ("host", None), ("host", 0.0)],
    ids=["turn", "turn-at-once", "close", "shutdown-at-once", "host", "host-at-once"],
)
def test_stopped_at_every_place(
    make_world: Any, tally: Any, scenario: Scenario, kind: str, grace: float | None
) -> None:
    """The same at every place where a task waits, several times each, in every scenario."""
    interpret_result(sweep(told(make_world, scenario, kind, grace), cancel=kind, points="every-location"), tally)


@pytest.mark.parametrize("scenario", [*SCENARIOS, hanging, stubborn], ids=lambda scenario: scenario.__name__)
def test_no_time_to_close(make_world: Any, tally: Any, scenario: Scenario) -> None:
    """With a millisecond to close in, actors are cut wherever they wait; turns end, and the host is free in time."""
    report = sweep(told(make_world, scenario, "host", 0.0, closing=0.001), cancel="host", points="every-location")
    interpret_result(report, tally)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_stopped_again_while_it_cleans_up(make_world: Any, tally: Any, scenario: Scenario) -> None:
    """The host is cancelled while a cancelled turn is on its way out."""
    report = sweep(told(make_world, scenario, "host", None), cancel="turn", points=40, then="host", then_points=2)
    interpret_result(report, tally)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_ctrl_c_at_many_steps(make_world: Any, tally: Any, scenario: Scenario) -> None:
    """Ctrl-C reaches the host bare, and what was stored can be opened again."""
    interpret_result(sweep(told(make_world, scenario, "ctrl-c", None), cancel="ctrl-c", points=40), tally)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_every_call_of_a_storage_broken(make_world: Any, tally: Any, scenario: Scenario) -> None:
    """A storage that raises, hangs, is slow or dies at any call: turns end, with one terminal event."""
    faults = ("raise_before", "raise_after", "hang", "slow")
    report = sweep(
        told(make_world, scenario, "none", None, broken=True),
        cancel=None,
        faults=faults,
        ports=("store", "memory", "model"),
        allow=(youyou.AgentError,),
    )
    interpret_result(report, tally)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_any_order_of_tasks(make_world: Any, tally: Any, scenario: Scenario) -> None:
    """Whatever order of tasks Trio may choose, the scenario ends as it should."""
    interpret_result(explore(told(make_world, scenario, "none", None), schedules=30), tally)

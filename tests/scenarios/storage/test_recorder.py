"""When things are stored: one writer, in order, before their effect, in batches that grow with load (semantics 7)."""

from __future__ import annotations

import pytest
import trio
from youyou import AssistantMessage, Metadata, TextDelta, ToolCallEnd, ToolCallStart, TurnComplete, UserMessage
from youyou.testing.agents.scripted import call, calls, say


async def test_a_turn_is_stored_in_the_order_in_which_it_happened(stage, autojump_clock):
    """The log of a turn with a tool reads like the turn, framed by its start and its end."""
    stage.tool("write", mutating=True)
    stage.says(calls("write", text="I will"), say("done"))

    async with stage.session() as session:
        await stage.turn(session)

    assert [
        "session_config",
        "turn_started",
        "title",
        "user: go",
        "assistant: I will",
        "call write",
        "tool_started",
        "ok write",
        "assistant: done",
        "turn_ended",
    ] == stage.logged(session.id)


async def test_what_comes_during_a_write_is_the_next_batch(stage, autojump_clock):
    """Ten events posted while the store writes are written at once, not one by one, and never two writes at a time."""
    stage.store.delay = 1.0
    async with stage.session() as session, trio.open_nursery() as nursery:
        await trio.sleep(0.5)
        for number in range(10):
            nursery.start_soon(session.set_title, f"title {number}")

    assert [1, 10] == [len(batch) for _, batch in stage.store.batches]
    assert [f"title {number}" for number in range(10)] == sorted(stage.facts("title", session.id))
    assert 1 == stage.store.at_once


async def test_writes_do_not_multiply_with_load(stage, autojump_clock):
    """Twenty tools that finish during one slow write cost a bounded number of writes."""
    stage.configure(max_concurrent_tools=20)
    stage.tool("read", takes=1.5)
    stage.says(calls(*[call("read", id=f"r{n}") for n in range(20)]), say("done"))
    stage.store.delay = 1.0

    async with stage.session() as session:
        await stage.turn(session)

    assert 20 == sum(line.startswith("ok r") for line in stage.stored(session.id))
    assert len(stage.store.batches) <= 8


async def test_the_user_message_is_stored_before_the_first_request(stage, autojump_clock):
    """When the model is asked, the message it is asked about has been acknowledged."""
    there = []
    stage.store.delay = 1.0
    stage.provider.answer = lambda _: there.append(stage.stored(session.id)) or say("hello")

    async with stage.session() as session:
        await stage.turn(session)

    assert [["user: go"]] == there


async def test_calls_and_starts_are_stored_before_a_tool_runs(stage, autojump_clock):
    """The message and all its calls are one batch, acknowledged before any tool runs, each start before its own."""
    there = {}

    async def look(given):
        there[given.call_id] = [line for line in stage.logged(session.id) if line not in ("title", "session_config")]

    stage.store.delay = 1.0
    stage.tool("write", mutating=True, does=look)
    stage.says(calls(call("write", id="a"), call("write", id="b"), text="I will"), say("done"))

    async with stage.session() as session:
        await stage.turn(session)

    before = ["turn_started", "user: go", "assistant: I will", "call a", "call b", "tool_started"]
    assert before == there["a"]
    assert [*before, "ok a", "tool_started"] == there["b"]
    batches = [[event.payload for event in batch] for _, batch in stage.store.batches]
    (announced,) = [batch for batch in batches if isinstance(batch[0], AssistantMessage) and batch[0].text == "I will"]
    assert ["call a", "call b"] == stage.lines(announced[1:3])


async def test_a_tool_that_never_could_start_is_not_noted_as_started(stage, autojump_clock):
    """Unknown tools and refused arguments leave a result, but no ``tool_started``."""
    stage.tool("write", mutating=True)
    stage.says(calls("nothing", call("write")), say("done"))

    async with stage.session() as session:
        await stage.turn(session)

    assert ["write"] == [fact["call_id"] for fact in stage.facts("tool_started", session.id)]


async def test_a_fast_result_is_stored_while_a_slow_tool_runs(stage, autojump_clock):
    """Results are stored at once, in order of completion; history and requests keep the model's order."""
    stage.tool("slow", takes=10.0)
    stage.tool("fast", takes=1.0)
    stage.says(calls("slow", "fast"), say("done"))

    async with stage.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(5)
        there = stage.stored(session.id)
        await turn.result()

    assert ["user: go", "call slow", "call fast", "ok fast"] == there
    assert ["user: go", "call slow", "call fast", "ok fast", "ok slow", "assistant: done"] == stage.stored(session.id)
    assert ["slow", "fast"] == [m.call_id for m in stage.provider.asked[1].messages[-2:]]


async def test_everything_is_stored_before_the_terminal_event(stage, autojump_clock):
    """A host that reads the terminal event may kill the process: the end of the turn is stored."""
    stage.store.delay = 1.0
    stage.says(say("hello"))
    ends = []

    async with stage.session() as session:
        async for event in await session.send_message("go"):
            if isinstance(event.payload, TurnComplete):
                ends = stage.facts("turn_ended", session.id)
                last = event.sequence

    assert [("completed", last)] == [(end["status"], end["sequence"]) for end in ends]


async def test_a_result_is_stored_before_its_end_is_told(stage, autojump_clock):
    """A host that reads ``ToolCallEnd`` knows that the result is stored."""
    stage.store.delay = 1.0
    stage.tool("write", mutating=True)
    stage.says(calls("write"), say("done"))
    there = {}

    async with stage.session() as session:
        async for event in await session.send_message("go"):
            there.setdefault(type(event.payload), stage.stored(session.id)[-1])

    assert ("call write", "ok write") == (there[ToolCallStart], there[ToolCallEnd])


async def test_the_events_of_two_sessions_never_share_a_batch(stage, autojump_clock):
    """One agent, two sessions after each other: each has a log of its own, numbered from one."""
    stage.provider.answer = lambda _: say("hello")
    async with stage.agent() as agent:
        ids = []
        for _ in range(2):
            async with await agent.new_session() as session:
                ids.append(session.id)
                await stage.turn(session)

    for session_id in ids:
        events = stage.store.events(session_id)
        assert list(range(1, len(events) + 1)) == [event.seq for event in events]
        assert ["user: go", "assistant: hello"] == stage.stored(session_id)


async def test_reading_waits_for_what_was_posted_before(stage, autojump_clock):
    """A session resumed the moment it is closed has everything, however slow the store."""
    stage.store.delay = 3.0
    stage.says(say("hello"))
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            await session.set_title("kept")
            await stage.turn(session)
        async with await agent.resume_session(session.id) as again:
            assert ["user: go", "assistant: hello"] == stage.stored(again.id)
            assert tuple(session.history) == tuple(again.history)


@pytest.mark.parametrize("storage", [True, False])
async def test_a_session_works_the_same_without_a_storage(storage, stage, autojump_clock):
    """Without a storage everything counts as acknowledged."""
    stage.store = stage.store if storage else None
    stage.tool("write", mutating=True)
    stage.says(calls("write"), [TextDelta("done"), 1.0, *say(".")])

    async with stage.session() as session:
        result = await stage.turn(session)

    assert ("completed", "done.") == (result.status, result.text)
    assert 1 == stage.runs["write"]


async def test_what_is_stored_is_what_a_session_holds(stage, autojump_clock):
    """After any turn the messages of the log are the messages of history, metadata aside."""
    stage.tool("read")
    stage.says(calls("read", text="I look"), say("found"), [TextDelta("half"), 5.0])

    async with stage.session() as session:
        await stage.turn(session)
        turn = await session.send_message("again")
        await trio.sleep(1)
        turn.cancel()
        await turn.result()
        events = stage.store.events(session.id)

    assert [e.payload for e in events if not isinstance(e.payload, Metadata)] == list(session.history)
    assert isinstance(session.history[0], UserMessage)


async def test_a_title_is_stored_when_it_was_set(stage, autojump_clock):
    """Anyone who has set a title finds it in the storage."""
    stage.store.delay = 1.0
    async with stage.agent() as agent, await agent.new_session() as session:
        await session.set_title("kept")
        assert ["kept"] == stage.facts("title", session.id)

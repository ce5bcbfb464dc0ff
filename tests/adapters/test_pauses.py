"""A model that pauses in the middle of its turn goes on from what it said, within the turn's limits (semantics 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import youyou as y

from .dialects import DIALECTS, Call, Dialect, Messages, Say

FIRST, LAST = Say("Searching. "), Say("Found it.")


@y.tool
async def look() -> str:
    """Look."""
    raise AssertionError("a call of a paused response must not run")


@asynccontextmanager
async def session_of(provider: Any, max_rounds: int | None = None, **config: Any) -> AsyncIterator[y.Session]:
    made = y.AgentConfig("m1", retry=y.RetryPolicy(attempts=1), **config)
    builder = y.AgentBuilder(made).register_model_provider(provider).register_tool(look)
    budget = y.Budget(max_rounds=max_rounds)
    builder = builder.register_profile(
        y.AgentProfile("p", y.ProfileKind.DOMAIN, "P", "Pauses.", tools=["look"], budget=budget)
    )
    async with builder.build() as agent, await agent.new_session(y.SessionConfig(domain="p")) as session:
        yield session


async def test_it_goes_on_from_what_it_said(server: Any, provider: Any, dialect: Dialect) -> None:
    """One turn, two requests; the second ends with the first half of the answer, and nobody says anything to it."""
    server.stream(dialect.answer(FIRST, end="pause_turn"))
    server.stream(dialect.answer(LAST))
    async with session_of(provider) as session:
        turn = await session.send_message("go")
        text = "".join([event.payload.text async for event in turn if isinstance(event.payload, y.TextDelta)])
        result = await turn.result()

    assert ("Searching. Found it.", y.TurnStatus.COMPLETED) == (text, result.status)
    assert (y.StopReason.END_TURN, None) == (result.stop_reason, result.error)
    history = server.seen[1].body.get("messages") or server.seen[1].body["input"]
    assert ["user", "assistant"] == [item["role"] for item in history if item["role"] != "system"]
    assert "Searching. " in str(history[-1])


async def test_what_the_server_did_by_itself_goes_back_to_it(server: Any, provider_of: Any) -> None:
    """A pause without a word: the blocks of a search that the server runs, in their order, word for word."""
    messages = DIALECTS["messages"]
    assert isinstance(messages, Messages)
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted_content": "ENC"}]}
    start, *_ = messages.parts()
    blocks = [
        piece
        for at, block in enumerate((use, found))
        for piece in (
            messages.event("content_block_start", index=at, content_block=block),
            messages.event("content_block_stop", index=at),
        )
    ]
    server.stream([start, *blocks, messages.end("pause_turn"), messages.mark])
    server.stream(messages.answer(LAST))
    async with session_of(provider_of("messages")) as session:
        result = await (await session.send_message("go")).result()

    assert (y.TurnStatus.COMPLETED, "Found it.") == (result.status, result.text)
    assert {"role": "assistant", "content": [use, found]} == server.seen[1].body["messages"][-1]


async def test_its_calls_do_not_run(server: Any, provider: Any, dialect: Dialect) -> None:
    """Their arguments may be half of what it meant; it is told so and goes on."""
    server.stream(dialect.answer(FIRST, Call("c", "look", "{}"), end="pause_turn"))
    server.stream(dialect.answer(LAST))
    async with session_of(provider) as session:
        result = await (await session.send_message("go")).result()

    assert (y.TurnStatus.COMPLETED, [True]) == (result.status, [each.is_error for each in result.tool_results])
    assert (["c"], ["c"]) == dialect.ids(server.seen[1].body)


@pytest.mark.parametrize(
    ("limits", "requests"), [({"max_rounds": 3}, 3), ({"max_tool_calls_per_turn": 4}, 4)], ids=["rounds", "calls"]
)
async def test_pausing_for_ever_ends_at_the_limit_of_the_turn(
    server: Any, provider: Any, dialect: Dialect, limits: Any, requests: int
) -> None:
    """``max_rounds`` where it is set, else the limit on calls; what was said is kept."""
    server.always(*map(str.encode, dialect.answer(FIRST, end="pause_turn")))
    async with session_of(provider, **limits) as session:
        result = await (await session.send_message("go")).result()

    assert (y.TurnStatus.FAILED, requests) == (result.status, len(server.seen))
    assert "paused" in str(result.error)


async def test_a_cancel_between_two_halves_keeps_the_first(server: Any, provider: Any, dialect: Dialect) -> None:
    """The second request is closed at once; history is sendable."""
    server.stream(dialect.answer(FIRST, end="pause_turn"))
    server.say("stall")
    async with session_of(provider) as session:
        turn = await session.send_message("go")
        with trio.fail_after(10):
            await server.until(lambda: server.stalled)
            turn.cancel()
            assert y.TurnStatus.CANCELLED is (await turn.result()).status
        server.stream(dialect.answer(LAST))
        result = await (await session.send_message("and now?")).result()

    assert (y.TurnStatus.COMPLETED, "Found it.") == (result.status, result.text)
    assert "Searching. " in str(server.seen[-1].body)

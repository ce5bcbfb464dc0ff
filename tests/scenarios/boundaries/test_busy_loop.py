"""Nothing of others keeps the event loop: streams let go, responses end, work over text is linear (semantics 4, 6)."""

from __future__ import annotations

import pytest
import trio
import youyou as y

PATIENCE = 5_000
"""Items after which a stream that nobody leaves gives up."""

ITEMS = {
    "empty text": lambda n: y.TextDelta(""),
    "empty reasoning": lambda n: y.ReasoningDelta(""),
    "text": lambda n: y.TextDelta("x"),
    "calls": lambda n: y.ToolCall(f"c{n}", "look", {}),
}


@pytest.mark.parametrize("kind", sorted(ITEMS))
async def test_a_stream_that_never_waits_is_left_within_a_few_items_of_a_cancel(building, model, kind, autojump_clock):
    """A cancel takes effect although the provider never lets go of the loop by itself."""
    taken = []

    async def answer(request):
        for number in range(PATIENCE):
            if number == 10:
                holder[0].cancel()
            taken.append(number)
            yield ITEMS[kind](number)
        yield y.Done()

    holder = []
    async with building(model(answer)).build() as agent, await agent.new_session() as session:
        holder.append(await session.send_message("x"))
        result = await holder[0].result()

    assert "cancelled" == result.status
    assert len(taken) < 10 + 100


async def test_keep_alives_without_text_are_silence(building, model, autojump_clock):
    """Items that say nothing do not hold off the idle limit."""

    async def answer(request):
        for _ in range(100):
            await trio.sleep(1)
            yield y.TextDelta("")
        yield y.TextDelta("late")
        yield y.Done()

    builder = building(model(answer), stream_idle_timeout_ms=5_000)
    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("x")).result()

    assert ("failed", "PROVIDER_TIMEOUT") == (result.status, result.error.code)


async def test_a_response_of_endless_calls_is_closed_and_none_of_them_runs(building, model, autojump_clock):
    """Once the bound is passed the stream is closed, no call runs, the turn fails, and history stays small."""
    taken, ran = [], []

    async def look(given):
        ran.append(given)
        return y.ToolOutput("ok")

    async def answer(request):
        for number in range(PATIENCE):
            taken.append(number)
            yield y.ToolCall(f"c{number}", "look", {})
        yield y.Done()

    builder = building(model(answer), max_calls_per_response=50)
    builder.register_tool(y.Tool("look", "Look.", {"type": "object"}, look))
    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("x")).result()
        told = len(session.history)

    assert ("failed", "PROVIDER_ERROR", []) == (result.status, result.error.code, ran)
    assert len(taken) <= 51
    assert told <= 1 + 2 * 51


@pytest.mark.parametrize("kind", [y.TextDelta, y.ReasoningDelta], ids=["text", "reasoning"])
async def test_a_response_of_endless_text_is_closed(building, model, kind, autojump_clock):
    """What was shown is kept as incomplete, and the turn fails."""

    async def answer(request):
        for _ in range(PATIENCE):
            yield kind("x" * 100)
        yield y.Done()

    builder = building(model(answer), max_response_chars=10_000)
    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("x")).result()
        [_, message, *_] = session.history

    assert ("failed", "PROVIDER_ERROR") == (result.status, result.error.code)
    assert "incomplete" == message.status
    assert 10_000 == sum(len(block.text) for block in message.content)


async def test_metadata_without_end_is_an_error_result(building, model):
    """What a tool hands back beside its content is bounded as well."""

    async def look(given):
        return y.ToolOutput("ok", metadata={"x": "y" * 2**21})

    async def answer(request):
        if len(provider.requests) == 1:
            yield y.ToolCall("c", "look", {})
        yield y.TextDelta("fine")
        yield y.Done()

    provider = model(answer)
    builder = building(provider).register_tool(y.Tool("look", "Look.", {"type": "object"}, look))
    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("x")).result()

    assert ["failed"] == [each.outcome for each in result.tool_results]

"""The table of semantics 6.1, row by row: what a cancel does, depending on when it comes."""

from __future__ import annotations

import trio
from youyou import (
    AfterToolUse,
    BeforeToolUse,
    Done,
    ProviderError,
    TextDelta,
    ToolCall,
    TurnCancelled,
    TurnEnd,
    TurnStart,
    TurnStatus,
)
from youyou.testing.scripted import call, calls, say


async def sleeps_2(_):
    await trio.sleep(2)


async def test_a_turn_start_hook_finishes_and_the_input_is_kept(conversation, autojump_clock):
    """Cancelled during a TurnStart hook: the hook finishes, the user message is stored, no request is sent."""
    conversation.on(TurnStart, sleeps_2)
    async with conversation.session() as session:
        turn = await session.send_message("go")
        await trio.sleep(1)
        assert turn.cancel()
        with conversation.takes(1):
            result = await turn.result()

    assert TurnStatus.CANCELLED == result.status
    assert () == result.undelivered
    assert ["TurnStart begins", "TurnStart ended"] == conversation.log
    assert ["user: go"] == conversation.stored()
    assert [] == conversation.provider.requests

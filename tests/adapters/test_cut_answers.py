"""An answer that ends after any of its bytes: never half a call, never a crash, and the next turn works."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import youyou as y

from .dialects import Call, Dialect, Say

RAN: list[tuple[int, str]] = []


@y.tool(mutating=True)
async def write(n: int, text: str) -> str:
    """Write it down."""
    RAN.append((n, text))
    return "written"


@pytest.mark.long
async def test_an_answer_may_be_cut_after_every_byte(server: Any, provider: Any, dialect: Dialect) -> None:
    """The connection breaks there; a session for each byte, one agent for all."""
    RAN.clear()
    body = "".join(dialect.answer(Say("Hm"), Call("c1", "write", '{"n": 12, "te', 'xt": "twelve"}'))).encode()
    server.always(*map(str.encode, dialect.answer(Say("done"))))
    config = y.AgentConfig("m1", retry=y.RetryPolicy(attempts=1))
    ends: dict[y.TurnStatus, int] = {y.TurnStatus.COMPLETED: 0, y.TurnStatus.FAILED: 0}
    with trio.fail_after(300):
        async with y.AgentBuilder(config).register_model_provider(provider).register_tool(write).build() as agent:
            for end in range(len(body) + 1):
                async with await agent.new_session() as session:
                    server.say(body[:end], "cut")
                    first = await (await session.send_message("go")).result()
                    ends[first.status] += 1
                    second = await (await session.send_message("and now?")).result()
                    assert (y.TurnStatus.COMPLETED, "done") == (second.status, second.text), body[:end]
    assert {(12, "twelve")} == set(RAN)
    # Whole once the end is declared; what follows it is the mark that nobody needs.
    assert len(RAN) == ends[y.TurnStatus.COMPLETED]
    assert ends[y.TurnStatus.FAILED] > len(body) * 3 / 4

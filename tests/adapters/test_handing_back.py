"""What goes back to a server after a resume, a change of model and a change of provider (semantics 4, 7).

A session is stored in a real file. What only its maker can read goes back to its maker alone; anybody else gets neutral
history, and ids that it takes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import youyou as y
from youyou.adapters.sqlite import SQLiteSessionStorage

from .dialects import DIALECTS, Call, Dialect, Say, Think

THOUGHT = Think("I must ", "look.")
OK = Say("ok")
IDS = ["call_" + "x" * 80 + "a", "call_" + "x" * 80 + "b", "call/é", "c"]
CALLS = [Call(id, "look", f'{{"at":"{place}"}}') for place, id in enumerate(IDS)]


@y.tool
async def look(at: str = "here") -> str:
    """Look at something."""
    return f"seen {at}"


@pytest.fixture
def session_with(tmp_path: Path) -> Callable[..., Any]:
    """Open a stored session with these providers, or resume it, perhaps with another model."""

    @asynccontextmanager
    async def open_session(*providers: Any, id: str = "", model: str | None = None) -> AsyncIterator[y.Session]:
        builder: Any = y.AgentBuilder(y.AgentConfig("m1", retry=y.RetryPolicy(attempts=1)))
        for provider in providers:
            builder = builder.register_model_provider(provider)
        builder = builder.register_tool(look).register_session_storage(SQLiteSessionStorage(tmp_path / "chat.db"))
        async with (
            builder.build() as agent,
            await (agent.resume_session(id, model_id=model) if id else agent.new_session()) as session,
        ):
            yield session

    return open_session


async def ask(session: y.Session) -> None:
    result = await (await session.send_message("go")).result()
    assert (y.TurnStatus.COMPLETED, None) == (result.status, result.error)


async def has_thought(session_with: Any, server: Any, dialect: Dialect, *providers: Any) -> str:
    """A stored session in which the first model thought and called; its id."""
    server.stream(dialect.answer(THOUGHT, *CALLS))
    server.stream(dialect.answer(OK))
    async with session_with(*providers) as session:
        await ask(session)
    server.seen.clear()
    return session.id  # type: ignore[no-any-return]


async def test_thoughts_go_back_after_a_resume(
    server: Any, provider_of: Any, dialect: Dialect, session_with: Any
) -> None:
    """To a provider that another process made, as long as it is the same server and model."""
    id = await has_thought(session_with, server, dialect, provider_of(dialect.name))
    server.stream(dialect.answer(OK))

    async with session_with(provider_of(dialect.name), id=id) as session:
        await ask(session)

    assert dialect.thoughts("I must ", "look.") == dialect.own(server.seen[0].body)


@pytest.mark.parametrize("changed", ["model", "provider", "address"])
async def test_thoughts_go_to_nobody_else(
    server: Any, provider_of: Any, dialect: Dialect, session_with: Any, changed: str
) -> None:
    """Not to another model, to a provider of another id, nor to another address of the same API."""
    name = dialect.name
    id = await has_thought(session_with, server, dialect, provider_of(name))
    other = {
        "model": lambda: provider_of(name, "m1", "m2"),
        "provider": lambda: provider_of(name, id="another"),
        "address": lambda: provider_of(name, url=f"{server.url}/other"),
    }[changed]()
    server.stream(dialect.answer(OK))

    async with session_with(other, id=id, model="m2" if changed == "model" else None) as session:
        await ask(session)

    assert [] == dialect.own(server.seen[0].body)
    assert_ids_fit(dialect, server.seen[0].body)


def assert_ids_fit(dialect: Dialect, body: Any) -> None:
    """Call and result alike, in length and alphabet, never two made one."""
    called, answered = dialect.ids(body)
    assert called == answered
    assert len(set(called)) == len(IDS)
    assert max(map(len, called)) <= dialect.longest_id
    assert all(id.replace("_", "").replace("-", "").isalnum() and id.isascii() for id in called)


PAIRS = [pytest.param(*pair, id=" to ".join(pair)) for pair in permutations(DIALECTS, 2)]


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_a_session_goes_on_with_another_api_and_back(
    server: Any, provider_of: Any, session_with: Any, first: str, second: str
) -> None:
    """The second gets neutral history; the first gets its own thoughts back, and none of the second's."""
    before, after = DIALECTS[first], DIALECTS[second]
    providers = provider_of(first, "m1", id="one"), provider_of(second, "m2", id="two")
    id = await has_thought(session_with, server, before, *providers)
    server.stream(after.answer(Think("Hm."), Say("second")))
    async with session_with(*providers, id=id, model="m2") as session:
        await ask(session)
    server.stream(before.answer(OK))
    async with session_with(*providers, id=id, model="m1") as session:
        await ask(session)

    there, back = (request.body for request in server.seen)
    assert [] == after.own(there)
    assert "I must" not in str(there)
    assert_ids_fit(after, there)
    assert "seen 0" in str(there)
    assert before.thoughts("I must ", "look.") == before.own(back)
    assert "Hm." not in str(back)
    assert_ids_fit(before, back)


@pytest.mark.parametrize(("first", "second"), PAIRS)
async def test_calls_that_were_cut_stay_sendable_to_another_api(
    server: Any, provider_of: Any, session_with: Any, first: str, second: str
) -> None:
    """Calls that did not run, with arguments that are not JSON, have one result each for the next API too."""
    before, after = DIALECTS[first], DIALECTS[second]
    providers = provider_of(first, "m1", id="one"), provider_of(second, "m2", id="two")
    server.stream(before.answer(Say("Hm"), *CALLS[:3], Call("c", "look", '{"at'), end="length"))
    server.stream(before.answer(OK))
    async with session_with(*providers) as session:
        await ask(session)
    server.stream(after.answer(OK))
    server.seen.clear()
    async with session_with(*providers, id=session.id, model="m2") as session:
        await ask(session)

    assert_ids_fit(after, server.seen[0].body)

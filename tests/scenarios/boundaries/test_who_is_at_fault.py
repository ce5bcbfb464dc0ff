"""Whose error it is, and which method is at fault (semantics 2, 3)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable

import pytest
import youyou as y
from youyou.testing import InMemoryMemoryStorage, InMemorySessionStorage, ScriptedProvider, say

TWO_SIDED = [
    y.ErrorCode.CONTENT_NOT_SUPPORTED,
    y.ErrorCode.MODEL_NOT_SUPPORTED,
    y.ErrorCode.INVALID_INPUT,
    y.ErrorCode.COMPACT_ERROR,
]


@pytest.mark.parametrize("raised", [False, True])
@pytest.mark.parametrize("code", TWO_SIDED)
async def test_what_a_provider_reports_has_the_provider_as_its_source(model, building, code, raised, autojump_clock):
    """Yielded or raised; also what the agent itself may find."""

    async def answer(request):
        if raised:
            raise y.AgentError.of(code, "refused", retryable=False)
        yield y.ChatError("refused", code, False)

    async with building(model(answer)).build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("x")).result()

    assert (code, y.ErrorSource.PROVIDER) == (result.error.code, result.error.source)


async def test_what_the_agent_finds_itself_has_the_agent_as_its_source(model, building):
    """The same code, the other side."""

    async def answer(request):
        yield y.TextDelta("never")

    async with building(model(answer, vision=False)).build() as agent, await agent.new_session() as session:
        with pytest.raises(y.ContentNotSupported) as refused:
            await session.send_message([y.ImageBlock("iVBORw0KGgo=", "image/png")])

    assert y.ErrorSource.AGENT == refused.value.source


async def test_what_a_storage_reports_has_the_storage_as_its_source(building, autojump_clock):
    """Whatever code its author has chosen."""

    class Choosy(InMemorySessionStorage):
        async def load_session(self, session_id):
            raise y.InvalidInput("ids have twelve characters")

    builder = building(ScriptedProvider([]), "scripted").register_session_storage(Choosy())
    async with builder.build() as agent:
        with pytest.raises(y.InvalidInput) as refused:
            await agent.resume_session("x")

    assert y.ErrorSource.STORAGE == refused.value.source


def forgot(base, name):
    """An object whose method ``name`` is a plain def."""

    def method(self, first=None, second=None, third=None):
        return None

    return type("Mine", (base,), {name: method})()


class Plug:
    id = display_name = description = "plug"

    async def initialize(self, config): ...

    def apply(self, ctx): ...

    async def shutdown(self): ...


class Handler:
    name = description = "look"
    mutating, parameters = False, {"type": "object"}

    async def execute(self, given): ...


METHODS = [
    *[("register_session_storage", InMemorySessionStorage, name) for name in (
        "save_events", "load_session", "list_sessions", "find_session", "delete_session")],
    *[("register_memory_storage", InMemoryMemoryStorage, name) for name in ("search", "save", "delete")],
    *[("register_plugin", Plug, name) for name in ("initialize", "shutdown")],
    ("register_tool", Handler, "execute"),
    *[("register_session_storage", y.testing.InMemoryClaimedStorage, name) for name in ("claim", "renew", "release")],
]  # fmt: skip


@pytest.mark.parametrize(("register", "base", "name"), METHODS)
def test_a_method_that_must_be_async_is_named_by_build(building, register, base, name):
    """Every awaited method of every part, with its class."""
    builder = building(ScriptedProvider([]), "scripted")
    getattr(builder, register)(forgot(base, name))

    with pytest.raises(y.InvalidConfig, match=rf"Mine: {name} is not async, and .* write async def {name}\("):
        builder.build()


def test_a_method_that_passes_a_coroutine_on_is_fine(building):
    """Its annotation says so, or it takes anything."""

    class Around(InMemorySessionStorage):
        def save_events(self, session_id, events) -> Awaitable[None]:
            return super().save_events(session_id, events)

        def load_session(self, *args, **kwargs):
            return super().load_session(*args, **kwargs)

    building(ScriptedProvider([]), "scripted").register_session_storage(Around()).build()


async def test_a_storage_that_goes_on_failing_is_logged_once(building, caplog, autojump_clock):
    """And once more when it fails again after it has worked."""

    class Full(InMemorySessionStorage):
        full = False

        async def save_events(self, session_id, events):
            if self.full:
                raise OSError("disk is full")
            await super().save_events(session_id, events)

    store = Full()
    builder = building(ScriptedProvider([say("ok")] * 5), "scripted").register_session_storage(store)
    with caplog.at_level(logging.WARNING, "youyou"):
        async with builder.build() as agent, await agent.new_session() as session:
            for store.full in (True, True, True, False, True, False):
                await (await session.send_message("x")).result()

    assert 2 == sum("disk is full" in record.getMessage() for record in caplog.records)

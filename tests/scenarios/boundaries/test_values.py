"""Values of others become plain JSON where they come in, or cost what they belong to and no more (semantics 1)."""

from __future__ import annotations

import asyncio
import datetime

import attrs
import pytest
import youyou as y
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.testing import InMemorySessionStorage, ScriptedProvider, call, calls, say

ODD = {
    "date": datetime.date(2026, 1, 2),
    "set": {7},
    "bytes": b"ab",
    "nan": float("nan"),
    "infinity": float("inf"),
    "key": {1: 2},
    "huge": 10**5000,
    "object": object(),
    "deep": None,
}
ODD["deep"] = []
for _ in range(200):
    ODD["deep"] = [ODD["deep"]]


async def two_turns(built):
    """The results of two turns, and the session's id."""
    async with built as agent, await agent.new_session() as session:
        results = [await (await session.send_message(text)).result() for text in ("one", "two")]
        return session.id, results, tuple(session.history)


@pytest.mark.parametrize("kind", sorted(ODD))
async def test_odd_provider_data_costs_its_turn_and_the_next_is_stored(building, model, tmp_path, kind):
    """The turn fails with PROVIDER_ERROR; the session goes on, and all of it is in the file."""

    async def answer(request):
        yield y.TextDelta("ok")
        yield y.Done(provider_data={"block": ODD[kind]} if len(provider.requests) == 1 else None)

    provider = model(answer)
    path = tmp_path / "poison.db"
    agent = building(provider).register_session_storage(SQLiteSessionStorage(path)).build()

    session_id, results, history = await two_turns(agent)

    assert [("failed", "PROVIDER_ERROR"), ("completed", None)] == [
        (result.status, result.error and result.error.code) for result in results
    ]
    async with SQLiteSessionStorage(path) as storage:
        stored = await storage.load_session(session_id)
    assert history == tuple(e.payload for e in stored if not isinstance(e.payload, y.Metadata))


@pytest.mark.parametrize("kind", sorted(ODD))
async def test_odd_arguments_of_a_call_cost_their_turn(building, model, kind):
    """A provider's value that is not plain JSON fails the turn as the provider's error; no tool runs."""
    ran = []

    async def look(given):
        ran.append(given.arguments)
        return y.ToolOutput("ok")

    async def answer(request):
        if len(provider.requests) == 1:
            yield y.ToolCall("c", "look", {"v": ODD[kind]})
        yield y.TextDelta("fine")
        yield y.Done(None)

    provider = model(answer)
    builder = building(provider).register_tool(y.Tool("look", "Look.", {"type": "object"}, look))

    _, results, _ = await two_turns(builder.register_session_storage(InMemorySessionStorage()).build())

    assert (["PROVIDER_ERROR", None], []) == ([result.error and result.error.code for result in results], ran)


class Text(str):
    """A subclass, as SDKs have them."""


class Number(float):
    """As numpy's."""


async def test_subclasses_become_exact_and_live_equals_resumed(building, model, tmp_path):
    """What the live session holds of an SDK's own classes is what a resumed one holds."""

    async def look(given):
        return y.ToolOutput(Text("ok"), metadata={"x": Number(1.5)})

    async def answer(request):
        if len(provider.requests) == 1:
            yield y.ToolCall(Text("c"), Text("look"), {Text("when"): (Text("now"), Number(2.0), True)})
        yield y.TextDelta(Text("fine"))
        yield y.Done(None)

    provider = model(answer)

    def builder():
        tool = y.Tool("look", "Look.", {"type": "object"}, look)
        return building(provider).register_tool(tool).register_session_storage(SQLiteSessionStorage(tmp_path / "a.db"))

    async with builder().build() as agent, await agent.new_session() as session:
        await (await session.send_message("go")).result()
        live = tuple(session.history)
    async with builder().build() as agent, await agent.resume_session(session.id) as session:
        assert live == tuple(session.history)
    [made] = [message for message in live if isinstance(message, y.ToolCall)]
    assert [str, str] == [type(made.call_id), type(next(iter(made.arguments)))]
    assert [str, float, bool] == [type(item) for item in made.arguments["when"]]


@pytest.mark.parametrize(
    "fields",
    [
        {"input_tokens": None},
        {"input_tokens": "7"},
        {"input_tokens": float("nan")},
        {"input_tokens": -3},
        {"input_tokens": 2**70},
        {"input_tokens": True},
        {"cache_read_tokens": {}},
    ],
    ids=repr,
)
async def test_an_odd_field_of_a_usage_report_loses_that_field_alone(building, model, fields):
    """The turn completes with its text, and the sound fields of the report count."""

    async def answer(request):
        yield y.TextDelta("ok")
        yield y.Done(y.TokenUsage(**{"output_tokens": 3, **fields}))

    _, results, _ = await two_turns(building(model(answer)).build())

    assert [("completed", "ok", 0, 3)] * 2 == [
        (result.status, result.text, result.usage.input_tokens, result.usage.output_tokens) for result in results
    ]


@pytest.mark.parametrize("field", ["id", "content", "source", "tags", "created_at"])
async def test_a_memory_with_an_odd_field_is_left_out(building, model, field):
    """The turn completes without it."""
    fields = {"id": "id", "namespace": "user", "content": "likes figs", "source": "", "tags": ()}
    odd = y.Memory(**fields)
    object.__setattr__(odd, field, None)

    class Memories:
        async def search(self, namespace, query, limit):
            return [odd, attrs.evolve(y.Memory(**fields), namespace=namespace, content="likes dates")]

        async def save(self, memory): ...

        async def delete(self, namespace, id): ...

    async def answer(request):
        yield y.TextDelta("ok")
        yield y.Done(None)

    provider = model(answer)

    _, results, _ = await two_turns(building(provider).register_memory_storage(Memories()).build())

    assert ["completed"] * 2 == [result.status for result in results]
    prompt = str(provider.requests[0].system)
    assert (True, False) == ("likes dates" in prompt, "likes figs" in prompt)


@pytest.mark.parametrize(
    "payload",
    [None, "text", y.UserMessage("hi").content, object()],
    ids=["none", "text", "content", "object"],
)
async def test_a_stored_event_of_an_odd_shape_is_a_storage_error(building, payload):
    """The session cannot be resumed, and the agent goes on."""

    class Sessions(InMemorySessionStorage):
        async def load_session(self, session_id):
            return [y.SessionEvent(1, datetime.datetime.now(datetime.UTC), payload)]

    builder = building(ScriptedProvider([say("ok")]), "scripted").register_session_storage(Sessions())
    async with builder.build() as agent:
        with pytest.raises(y.AgentError, match="STORAGE_ERROR"):
            await agent.resume_session("x")
        async with await agent.new_session() as session:
            assert "completed" == (await (await session.send_message("hi")).result()).status


async def test_a_deep_exception_group_of_a_tool_ends_its_call(building):
    """The call has an error result, and the turn completes."""

    @y.tool
    async def deep() -> str:
        error = ValueError("at the bottom")
        for _ in range(600):
            error = ExceptionGroup("g", [error])
        raise error

    builder = building(ScriptedProvider([calls("deep"), say("ok")] * 2), "scripted").register_tool(deep)

    _, results, _ = await two_turns(builder.build())

    assert [("completed", "failed")] * 2 == [(r.status, r.tool_results[0].outcome) for r in results]


async def test_a_token_counter_may_raise_anything(building):
    """The estimate takes over."""

    def counter(text):
        raise asyncio.CancelledError

    builder = building(ScriptedProvider([say("ok"), say("ok")]), "scripted", token_counter=counter)

    _, results, _ = await two_turns(builder.build())

    assert ["completed"] * 2 == [result.status for result in results]


@pytest.mark.parametrize(
    "arguments",
    [None, [], "text", 5, {1: 2}, {"only": {3}}],
    ids=repr,
)
async def test_a_hook_that_hands_back_odd_arguments_fails_closed(building, arguments):
    """The tool does not run: neither with its defaults nor with what the model asked for."""
    ran = []

    @y.tool(mutating=True)
    async def clean(only: str = "everything") -> str:
        ran.append(only)
        return "ok"

    class Guard:
        id = display_name = description = "guard"

        async def initialize(self, config): ...

        async def shutdown(self): ...

        def apply(self, ctx):
            ctx.tap(y.BeforeToolUse, self.before)

        async def before(self, event):
            changed = attrs.evolve(event)
            object.__setattr__(changed, "arguments", arguments)
            return y.ContinueWith(changed)

    provider = ScriptedProvider([calls(call("clean", {"only": "tmp/x"})), say("ok")])
    builder = building(provider, "scripted").register_tool(clean).register_plugin(Guard())

    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("go")).result()

    assert ([], "failed") == (ran, result.tool_results[0].outcome)


async def test_an_event_that_nobody_can_encode_becomes_a_note(building, tmp_path, caplog):
    """Should one come past the boundary: it is replaced once, loudly, and what follows is stored (semantics 1)."""
    path = tmp_path / "odd.db"
    builder = building(ScriptedProvider([say("one"), say("two")]), "scripted")
    builder.register_session_storage(SQLiteSessionStorage(path))
    async with builder.build() as agent, await agent.new_session() as session:
        # Nothing of the public face lets one in, so it is put where only the runtime puts events.
        session._opened.state.journal.append_metadata("odd", {"value": object()})
        results = [await (await session.send_message(text)).result() for text in ("a", "b")]
    async with SQLiteSessionStorage(path) as storage:
        stored = await storage.load_session(session.id)

    notes = [e.payload.value for e in stored if isinstance(e.payload, y.Metadata) and e.payload.key == "unencodable"]
    assert ["completed"] * 2 == [result.status for result in results]
    assert ["Metadata"] == [note["kind"] for note in notes]
    assert list(range(1, len(stored) + 1)) == [event.seq for event in stored]
    assert ["one", "two"] == [e.payload.text for e in stored if isinstance(e.payload, y.AssistantMessage)]
    assert 1 == sum("cannot be encoded" in record.getMessage() for record in caplog.records)

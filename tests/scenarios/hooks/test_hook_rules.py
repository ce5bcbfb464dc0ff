"""How hooks are called: order, waterfall, frozen payloads, configuration, time (semantics 6.4)."""

from __future__ import annotations

import attrs
import pytest
import trio
from youyou import (
    Abort,
    AfterToolUse,
    AgentError,
    BeforeCompact,
    BeforeToolUse,
    ContinueWith,
    ErrorCode,
    ErrorEvent,
    PluginInitFailed,
    SessionEnd,
    SessionStart,
    ToolCallEnd,
    ToolCallStart,
    TurnEnd,
    TurnStart,
    TurnStatus,
)
from youyou.testing.agents.scripted import call, calls, say

HOOKS = (SessionStart, TurnStart, BeforeToolUse, AfterToolUse, TurnEnd, SessionEnd)


class Tapping:
    """A plugin that taps what it is given."""

    display_name = "Tapping"
    description = "Taps."

    def __init__(self, id, taps):
        self.id = id
        self.taps = taps

    async def initialize(self, config):
        self.config = config

    def apply(self, ctx):
        for event_class, handler, stage in self.taps:
            ctx.tap(event_class, handler, stage=stage)

    async def shutdown(self): ...


def also_change(key, value):
    async def handler(event):
        return ContinueWith(attrs.evolve(event, arguments={**event.arguments, key: value}))

    return handler


async def test_each_handler_sees_the_changes_of_the_one_before(stage, autojump_clock):
    """Modify, Continue, modify: the final arguments hold both changes, and so do the event and the tool's start."""
    write = stage.tool("write")
    stage.on(BeforeToolUse, also_change("a", 1))
    stage.on(BeforeToolUse)
    stage.on(BeforeToolUse, also_change("b", 2))
    stage.says(calls(call("write", {"x": 0})), say("done"))
    async with stage.session() as session:
        events = await stage.events(await session.send_message("go"))

    assert write.runs == [{"x": 0, "a": 1, "b": 2}]
    (start,) = [event for event in events if isinstance(event, ToolCallStart)]
    assert start.arguments == write.runs[0]
    (stored,) = stage.facts("tool_started")
    assert stored["arguments"] == write.runs[0]


async def test_the_stored_call_keeps_what_the_model_asked_for(stage, autojump_clock):
    """A hook changes what runs; history and storage keep the arguments of the model."""
    stage.tool("write")
    stage.on(BeforeToolUse, also_change("a", 1))
    stage.says(calls(call("write", {"x": 0})), say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()
        assert session.history[1].arguments == {"x": 0}
    (asked,) = [e.payload for e in stage.events_stored() if getattr(e.payload, "tool_name", "") == "write"]
    assert asked.arguments == {"x": 0}


async def test_sections_of_all_turn_start_hooks_reach_the_model_for_one_turn(stage, autojump_clock):
    """Each TurnStart hook may add a section; the next turn starts without any."""

    def adds(text):
        async def handler(event):
            return ContinueWith(attrs.evolve(event, dynamic_sections=(*event.dynamic_sections, text)))

        return handler

    stage.on(TurnStart, adds("be kind"))
    stage.on(TurnStart, adds("be brief"))
    stage.says(say("one"), say("two"))
    async with stage.session() as session:
        for text in ("first", "second"):
            await (await session.send_message(text)).result()

    first, second = (request.system.dynamic for request in stage.provider.requests)
    assert first.index("be kind") < first.index("be brief")
    assert second == first


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)
async def test_lower_stages_come_first_and_then_registration_decides(hook, stage, autojump_clock):
    """Handlers are called by stage ascending, within a stage in the order of registration."""
    order = []

    def named(name):
        async def handler(_):
            order.append(name)

        return handler

    stage.tool("write")
    for name, level in (("late", 5), ("a", 0), ("b", 0), ("early", -1), ("c", 0)):
        stage.plugins.append(Tapping(f"plugin-{name}", [(hook, named(name), level)]))
    stage.says(calls("write"), say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert order == ["early", "a", "b", "c", "late"]


async def test_every_payload_carries_its_own_plugins_configuration(stage, autojump_clock):
    """``plugin_config`` is that of the reading plugin in each hook, also after another plugin has answered."""
    seen = {"one": [], "two": []}

    def tell(name, hook):
        async def handler(event):
            seen[name].append((hook.__name__, event.plugin_config))
            return ContinueWith(event)

        return handler

    stage.tool("write")
    stage.says(calls("write"), say("done"))
    builder = stage.builder()
    for name in seen:
        plugin = Tapping(name, [(hook, tell(name, hook), 0) for hook in HOOKS])
        builder.register_plugin(plugin, {"name": name})
    async with builder.build() as agent, await agent.new_session() as session:
        await (await session.send_message("go")).result()

    for name, events in seen.items():
        assert events == [(hook.__name__, {"name": name}) for hook in HOOKS]


@pytest.mark.parametrize(
    "mutate",
    [
        lambda event: event.arguments.update(x=9),
        lambda event: event.arguments["deep"].append(9),
        lambda event: event.plugin_config.clear(),
        lambda event: setattr(event, "tool_name", "other"),
        lambda event: setattr(event, "arguments", {}),
    ],
)
async def test_a_payload_cannot_be_changed_in_place(mutate, stage, autojump_clock):
    """Mutating a payload raises in the handler that tries; nobody else's payload, and nothing that runs, changes."""
    refused = []

    async def tries(event):
        try:
            mutate(event)
        except (TypeError, AttributeError) as error:
            refused.append(error)

    write = stage.tool("write")
    stage.says(calls(call("write", {"x": 0, "deep": [1]})), say("done"))
    builder = stage.builder()
    builder.register_plugin(Tapping("one", [(BeforeToolUse, tries, 0)]), {"a": 1})
    async with builder.build() as agent, await agent.new_session() as session:
        await (await session.send_message("go")).result()

    assert len(refused) == 1
    assert write.runs == [{"x": 0, "deep": [1]}]


async def test_payloads_name_their_session_turn_and_call(stage, autojump_clock):
    """Turn hooks carry session, turn and (for tools) call ids, an aware time, and what the table says of them."""
    seen = {}

    def keep(hook):
        async def handler(event):
            seen[hook] = event

        return handler

    stage.tool("write", takes=1.5)
    for hook in HOOKS:
        stage.on(hook, keep(hook))
    stage.says(calls(call("write", {"x": 1}, id="c1")), say("done"))
    async with stage.session() as session:
        turn = await session.send_message("go")
        await turn.result()

    assert {event.session_id for event in seen.values()} == {session.id}
    in_turn = [seen[hook] for hook in (TurnStart, BeforeToolUse, AfterToolUse, TurnEnd)]
    assert {event.turn_id for event in in_turn} == {turn.turn_id}
    assert all(event.timestamp.utcoffset() is not None for event in seen.values())
    assert seen[TurnStart].user_input.content[0].text == "go"
    assert (seen[BeforeToolUse].call_id, seen[BeforeToolUse].tool_name) == ("c1", "write")
    after = seen[AfterToolUse]
    assert (after.call_id, after.output.content, after.duration_ms, after.success) == ("c1", "write done", 1500, True)
    assert (seen[TurnEnd].assistant_output, seen[TurnEnd].status) == ("done", TurnStatus.COMPLETED)
    assert seen[SessionEnd].message_count == 4


async def test_nothing_bounds_a_hook_while_nobody_asks_to_stop(stage, autojump_clock):
    """A BeforeToolUse hook may wait for a person for ten minutes: that is neither hook time-out nor tool time."""
    write = stage.tool("write", takes=1.0, timeout_ms=2_000)

    async def asks_a_person(_):
        await trio.sleep(600)

    stage.configure(hook_timeout_ms=1_000)
    stage.on(BeforeToolUse, asks_a_person)
    stage.says(calls("write"), say("done"))
    async with stage.session() as session:
        with stage.takes(601):
            events = await stage.events(await session.send_message("go"))

    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    assert (end.success, end.duration_ms, write.finished) == (True, 1000, 1)


async def test_a_refused_call_has_start_and_end_and_no_after_hook(stage, autojump_clock):
    """An aborted call emits its Start/End pair with ``success=False``; AfterToolUse does not follow."""

    async def refuses(_):
        return Abort("not today")

    write = stage.tool("write")
    stage.on(BeforeToolUse, refuses)
    stage.on(AfterToolUse)
    stage.says(calls("write"), say("done"))
    async with stage.session() as session:
        events = await stage.events(await session.send_message("go"))

    start, end = events[:2]
    assert (start.call_id, end.call_id, end.success) == ("write", "write", False)
    assert end.output.content == "Tool aborted by hook: not today"
    assert end.error.code is ErrorCode.HOOK_ABORTED
    assert write.runs == []
    assert not any("AfterToolUse" in line for line in stage.log)


async def test_arguments_of_a_hook_are_checked_like_those_of_a_model(stage, autojump_clock):
    """Arguments that a hook put in place are validated against the schema; a wrong one does not run."""
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    write = stage.tool("write", parameters=schema)
    stage.on(BeforeToolUse, also_change("x", "three"))
    stage.says(calls(call("write", {"x": 3})), say("done"))
    async with stage.session() as session:
        events = await stage.events(await session.send_message("go"))

    (end,) = [event for event in events if isinstance(event, ToolCallEnd)]
    assert end.error.code is ErrorCode.INVALID_TOOL_ARGUMENTS
    assert write.runs == []


async def test_a_hook_may_repair_arguments_that_were_no_json(stage, autojump_clock):
    """A call whose arguments did not parse runs if a hook gives it new ones."""
    write = stage.tool("write")
    stage.on(BeforeToolUse, also_change("x", 1))
    broken = attrs.evolve(call("write"), raw_arguments='{"x": 1')
    stage.says(calls(broken), say("done"))
    async with stage.session() as session:
        result = await (await session.send_message("go")).result()

    assert result.status is TurnStatus.COMPLETED
    assert write.runs == [{"x": 1}]


async def test_no_start_hook_when_a_session_is_resumed(stage, autojump_clock):
    """SessionStart is for new sessions only."""
    stage.on(SessionStart)
    stage.says(say("hello"))
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            await (await session.send_message("go")).result()
        async with await agent.resume_session(session.id):
            pass

    assert stage.log == ["SessionStart begins", "SessionStart ended"]


async def test_a_refused_session_leaves_the_slot_free_and_nothing_stored(stage, autojump_clock):
    """After a SessionStart hook refused, another session can be opened at once; the store knows of one."""
    answers = [Abort("not yet"), None]

    async def refuses_once(_):
        return answers.pop(0)

    stage.on(SessionStart, refuses_once)
    stage.on(SessionEnd)
    stage.says(say("hello"))
    async with stage.agent() as agent:
        with pytest.raises(AgentError, match="not yet"):
            await agent.new_session()
        assert stage.log == ["SessionStart begins", "SessionStart ended"]
        async with await agent.new_session() as session:
            await (await session.send_message("go")).result()

    assert list(stage.store._sessions) == [session.id]


async def test_a_hook_may_use_nurseries_scopes_and_groups(stage, autojump_clock):
    """What a handler raises out of a nursery is its failure, whatever its shape; its own scopes are its own."""

    async def busy(_):
        with trio.move_on_after(1):
            await trio.sleep_forever()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
        raise BaseExceptionGroup("both", [ValueError("a"), GeneratorExit()])

    stage.tool("write")
    stage.on(AfterToolUse, busy)
    stage.says(calls("write"), say("done"))
    async with stage.session() as session:
        with stage.takes(2):
            events = await stage.events(await session.send_message("go"))

    (report,) = [event for event in events if isinstance(event, ErrorEvent)]
    assert report.error.code is ErrorCode.PLUGIN_ERROR
    assert "ValueError: a" in report.error.message
    assert events[-1].status is TurnStatus.COMPLETED


@pytest.mark.parametrize(
    ("tap", "advice"),
    [
        ((str, also_change("x", 1), 0), "tap one of"),
        ((BeforeToolUse, lambda event: None, 0), "async def"),
        ((BeforeCompact, also_change("x", 1), "first"), "integer"),
    ],
    ids=["no-hook", "not-async", "no-stage"],
)
async def test_a_wrong_tap_fails_the_entry(tap, advice, stage, autojump_clock):
    """A tap that can never work fails the entry of the agent with PLUGIN_INIT_FAILED and says what to write."""
    stage.plugins.append(Tapping("wrong", [tap]))
    with pytest.raises(PluginInitFailed, match=advice):
        async with stage.agent():
            pass


async def test_a_configuration_that_does_not_compare_is_no_trouble(stage, autojump_clock):
    """A ``plugin_config`` whose comparison raises, as arrays do, does not stand in the way of changing arguments."""

    class Incomparable:
        def __eq__(self, _):
            raise ValueError("the truth value is ambiguous")

        __hash__ = None

    write = stage.tool("write")
    stage.says(calls("write"), say("done"))
    builder = stage.builder()
    builder.register_plugin(Tapping("one", [(BeforeToolUse, also_change("x", 1), 0)]), Incomparable())
    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("go")).result()

    assert result.status is TurnStatus.COMPLETED
    assert write.runs == [{"x": 1}]

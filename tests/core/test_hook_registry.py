"""Which handlers listen to a hook, in which order, and what an answer means (semantics 6.4)."""

from __future__ import annotations

import functools

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.hook_registry import HOOKS, HookDecision, HookRegistry, interpret_result, payload_for
from youyou.messages.content import UserInput
from youyou.messages.errors import ErrorSource, InvalidConfig, PluginError
from youyou.messages.events import ToolOutput, TurnStatus
from youyou.messages.hook_payloads import (
    Abort,
    AfterToolUse,
    BeforeCompact,
    BeforeToolUse,
    Continue,
    ContinueWith,
    SessionEnd,
    SessionStart,
    TurnEnd,
    TurnStart,
)

TURN_START = TurnStart(UserInput("hi"), ("a",), session_id="s", turn_id="t")
BEFORE_TOOL = BeforeToolUse("c", "weather", {"city": "Oslo"}, session_id="s", turn_id="t", plugin_config={"k": 1})
UNCHANGEABLE = (
    SessionStart(session_id="s"),
    SessionEnd(3, session_id="s"),
    TurnEnd("text", TurnStatus.COMPLETED, session_id="s"),
    AfterToolUse("c", "weather", ToolOutput("x"), 5, True, session_id="s"),
    BeforeCompact(3, 100, session_id="s"),
)
EVERY_EVENT = (TURN_START, BEFORE_TOOL, *UNCHANGEABLE)


async def listen(event):
    """A handler."""


def test_the_examples_cover_every_hook():
    """No hook is left out of the tables below."""
    assert set(HOOKS) == {type(event) for event in EVERY_EVENT}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2))))
def test_taps_come_by_stage_and_then_as_registered(tapped):
    """Lower stages are called first; within a stage the order of registration holds, across plugins."""
    registry = HookRegistry()
    for number, (plugin, stage) in enumerate(tapped):
        registry.context(plugin, number).tap(TurnStart, listen, stage=stage)
    expected = [number for _, number in sorted((stage, number) for number, (_, stage) in enumerate(tapped))]

    assert expected == [tap.plugin_config for tap in registry.taps(TurnStart)]
    assert registry.taps(TurnEnd) == ()


def test_a_tap_belongs_to_its_plugin():
    """A tap carries the plugin's id, its handler and a read-only form of its configuration."""
    registry = HookRegistry()
    context = registry.context("audit", {"level": [1]})

    context.tap(SessionStart, listen)
    (tap,) = registry.taps(SessionStart)

    expected = ("audit", {"level": [1]})

    assert expected == (context.plugin_id, context.plugin_config)
    assert expected == (tap.plugin_id, tap.plugin_config)
    assert tap.handler is listen
    with pytest.raises(TypeError, match="read-only"):
        tap.plugin_config["level"] = 2


def test_each_tap_sees_its_own_configuration():
    """The payload is the event with the configuration of the plugin that is asked."""
    registry = HookRegistry()
    registry.context("one", {"n": 1}).tap(BeforeToolUse, listen)
    registry.context("two", None).tap(BeforeToolUse, listen)
    expected = [attrs.evolve(BEFORE_TOOL, plugin_config={"n": 1}), attrs.evolve(BEFORE_TOOL, plugin_config=None)]

    assert expected == [payload_for(BEFORE_TOOL, tap) for tap in registry.taps(BeforeToolUse)]


class Listener:
    async def __call__(self, event):
        """A handler as an object."""

    async def method(self, event):
        """A handler as a method."""


@pytest.mark.parametrize("handler", [listen, Listener(), Listener().method, functools.partial(listen)])
def test_every_form_of_async_handler_is_taken(handler):
    """Functions, objects, methods and partials will do, as long as they are async."""
    registry = HookRegistry()

    registry.context("p", None).tap(TurnStart, handler)

    assert [handler] == [tap.handler for tap in registry.taps(TurnStart)]


@pytest.mark.parametrize(
    ("event_class", "handler", "stage", "advice"),
    [
        (str, listen, 0, "tap one of SessionStart"),
        (ToolOutput, listen, 0, "which is not a hook"),
        ("TurnStart", listen, 0, "which is not a hook"),
        (TURN_START, listen, 0, "which is not a hook"),
        (["TurnStart"], listen, 0, "which is not a hook"),
        (TurnStart, lambda event: None, 0, "pass an async def function"),
        (TurnStart, None, 0, "pass an async def function"),
        (TurnStart, Listener, 0, "pass an async def function"),
        (TurnStart, listen, "early", "pass an integer"),
    ],
)
def test_a_wrong_tap_is_refused_by_name(event_class, handler, stage, advice):
    """The error names the plugin and says what to pass; nothing is registered."""
    registry = HookRegistry()

    with pytest.raises(InvalidConfig, match="plugin 'audit'") as caught:
        registry.context("audit", None).tap(event_class, handler, stage=stage)

    assert advice in caught.value.message
    assert caught.value.source == ErrorSource.PLUGIN
    assert registry.taps(TurnStart) == ()


@pytest.mark.parametrize("event", EVERY_EVENT)
@pytest.mark.parametrize("wrap", [lambda _: None, lambda _: Continue(), ContinueWith])
def test_going_on_unchanged_is_always_allowed(event, wrap):
    """None, Continue and an unchanged ContinueWith leave the event as it is."""
    expected = HookDecision(event, abort=None)

    assert expected == interpret_result(event, wrap(event))


@pytest.mark.parametrize("event", EVERY_EVENT)
@pytest.mark.parametrize("reason", ["because", ""])
def test_abort_carries_its_reason(event, reason):
    """Abort is allowed everywhere; what it stops is for the caller to know."""
    expected = HookDecision(event, abort=reason)

    assert expected == interpret_result(event, Abort(reason))


@pytest.mark.parametrize(
    ("event", "change", "expected"),
    [
        (TURN_START, {"dynamic_sections": ("a", "b")}, ("a", "b")),
        (TURN_START, {"dynamic_sections": ["\ud800"]}, ("\ufffd",)),
        (TURN_START, {"dynamic_sections": ()}, ()),
        (BEFORE_TOOL, {"arguments": {"city": "Bergen"}}, {"city": "Bergen"}),
        (BEFORE_TOOL, {"arguments": {"city": "\ud800"}}, {"city": "\ufffd"}),
    ],
)
def test_the_one_changeable_field_is_taken_over(event, change, expected):
    """A turn's dynamic sections and a tool's arguments may be changed, and reach the next handler cleaned."""
    (name,) = change

    verdict = interpret_result(event, ContinueWith(attrs.evolve(event, **change)))

    assert attrs.evolve(event, **{name: expected}) == verdict.event


@pytest.mark.parametrize(
    ("event", "change"),
    [
        (TURN_START, {"user_input": UserInput("other")}),
        (TURN_START, {"turn_id": "other"}),
        (BEFORE_TOOL, {"tool_name": "other"}),
        (BEFORE_TOOL, {"call_id": "other"}),
        (BEFORE_TOOL, {"plugin_config": {"k": 2}}),
        (BEFORE_TOOL, {"arguments": {}, "session_id": "other"}),
        *[(event, {"session_id": "other"}) for event in UNCHANGEABLE],
        (UNCHANGEABLE[3], {"output": ToolOutput("y")}),
        (UNCHANGEABLE[2], {"assistant_output": "y"}),
    ],
)
def test_changing_anything_else_is_the_plugins_mistake(event, change):
    """The error names the hook and the field that must not change."""
    with pytest.raises(PluginError, match=type(event).__name__) as caught:
        interpret_result(event, ContinueWith(attrs.evolve(event, **change)))

    assert list(change)[-1] in caught.value.message


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (True, "a handler returned a bool; return None, Continue(), ContinueWith(event) or Abort(reason)"),
        ({"city": "Bergen"}, "return None"),
        (BEFORE_TOOL, "return None"),
        (Continue, "return None"),
        (ContinueWith(TURN_START), "of the event received"),
        (ContinueWith({"city": "Bergen"}), "of the event received"),
        (ContinueWith(None), "of the event received"),
        (Abort(None), "Abort('why')"),
    ],
)
def test_any_other_answer_is_the_plugins_mistake(answer, advice):
    """Whatever else a handler returns is refused with what it may return."""
    with pytest.raises(PluginError, match="BeforeToolUse") as caught:
        interpret_result(BEFORE_TOOL, answer)

    assert advice in caught.value.message


def test_dynamic_sections_must_be_strings():
    """A section of another type is refused rather than put into the prompt."""
    with pytest.raises(PluginError, match="tuple of strings"):
        interpret_result(TURN_START, ContinueWith(attrs.evolve(TURN_START, dynamic_sections=(1,))))

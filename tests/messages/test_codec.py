"""Every public value travels as JSON and comes back as it was (semantics 1)."""

from __future__ import annotations

import json
import types
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs
import pytest
import youyou
from hypothesis import given, settings
from hypothesis import strategies as st
from youyou.messages.codec import converter, from_json, to_json
from youyou.messages.events import OutputT
from youyou.messages.jsonvalue import JsonArray, JsonObject

CARRY_FUNCTIONS = {"Tool", "ThreadFunction", "ToolInput"}
OBSERVATIONS = {"AgentStatistics", "MailboxStatistics", "TaskNode"}
"""Snapshots of a running agent, for people and monitors; nothing reads them back."""
ANSWERS = {"ProfileInfo", "ProfileOrigins", "ResolvedProfile", "ToolInfo"}
"""Made by the runtime alone, from tuples."""
VALUES = [
    cls
    for name in youyou.__all__
    if isinstance(cls := getattr(youyou, name), type) and attrs.has(cls) and name not in CARRY_FUNCTIONS | OBSERVATIONS
]
UNIONS = (
    "AgentEventPayload",
    "ChatEvent",
    "ContentBlock",
    "HookEvent",
    "HookResult",
    "Message",
    "RuntimeMode",
    "SessionEventPayload",
)

texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
errors = st.builds(
    youyou.AgentError.of,
    st.sampled_from(youyou.ErrorCode),
    texts,
    retryable=st.none() | st.booleans(),
    retry_after_ms=st.none() | st.integers(0, 10**6),
)
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: st.integers(-(2**70), 2**70),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    Any: json_values,
    OutputT: json_values,
    JsonObject: json_objects,
    datetime: st.datetimes(timezones=offsets),
    youyou.AgentError: errors,
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Anything that a field of this type may hold."""
    if hint in LEAVES:
        return LEAVES[hint]
    if get_origin(hint) in (Union, types.UnionType):
        members = [member for member in get_args(hint) if not callable_hint(member)]
        return st.one_of([st.deferred(lambda member=member: values_of(member)) for member in members])
    if get_origin(hint) in (tuple, Sequence):
        return st.lists(values_of(get_args(hint)[0]), max_size=2).map(tuple)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if attrs.has(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{field.alias: values_of(hints[field.name]) for field in attrs.fields(hint)})
    raise AssertionError(f"what may {hint!r} hold?")


def callable_hint(hint: Any) -> bool:
    """A function, the one thing in a configuration that JSON cannot carry."""
    return getattr(get_origin(hint), "__name__", "") == "Callable"


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_each_value_comes_back_as_it_was(cls):
    """JSON text of any value gives an equal value, which gives the same text; it names its class."""

    @settings(max_examples=8, deadline=None, database=None)
    @given(values_of(cls))
    def comes_back(value):
        text = to_json(value)
        again = from_json(cls, text)
        assert again == value
        assert to_json(again) == text
        assert json.loads(text)["type"] == cls.__name__

    comes_back()


@pytest.mark.parametrize("name", UNIONS)
def test_each_member_of_a_union_is_told_by_its_name(name):
    """A value read as one of several classes comes back as the one that it was."""
    union = getattr(youyou, name)

    for member in get_args(union):

        @settings(max_examples=3, deadline=None, database=None)
        @given(values_of(member))
        def comes_back(value):
            again = from_json(union, to_json(value))
            assert (type(again), again) == (type(value), value)

        comes_back()


def with_news(value: Any, data: Any) -> Any:
    """The data as a newer version might write it: an unknown field in each object that is a value of ours."""
    if attrs.has(type(value)):
        known = {f.name: with_news(getattr(value, f.name), data[f.name]) for f in attrs.fields(type(value))}
        return {"news": [1], **data, **known, "type_of_news": {"type": "Unknown"}}
    if isinstance(value, tuple):
        return [with_news(item, part) for item, part in zip(value, data, strict=True)]
    return data


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_unknown_fields_are_ignored(cls):
    """What a newer version adds, at any depth, does not keep an older one from reading the rest."""

    @settings(max_examples=3, deadline=None, database=None)
    @given(values_of(cls))
    def reads(value):
        data = with_news(value, converter.unstructure(value))
        assert converter.structure(data, cls) == value

    reads()


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_fields_with_a_default_may_be_missing(cls):
    """What an older version did not know yet is read as its default."""
    optional = [field.name for field in attrs.fields(cls) if field.default is not attrs.NOTHING]

    @settings(max_examples=3, deadline=None, database=None)
    @given(values_of(cls))
    def reads(value):
        data = converter.unstructure(value)
        old = converter.structure({name: part for name, part in data.items() if name not in optional}, cls)
        required = [field.name for field in attrs.fields(cls) if field.name not in optional]
        assert [getattr(old, name) for name in required] == [getattr(value, name) for name in required]

    reads()


def test_a_class_that_no_union_knows_is_refused():
    """A union says which names it knows."""
    with pytest.raises(ValueError, match=r"unknown type 'Rumour'.*UserMessage"):
        from_json(youyou.Message, '{"type": "Rumour"}')


@pytest.mark.parametrize("data", ["null", "[]", "5", "{}", '{"type": 5}', '{"type": null}'])
def test_what_names_no_class_is_refused(data):
    """Anything else in the place of a union is refused, not guessed at."""
    with pytest.raises(ValueError, match="unknown type"):
        from_json(youyou.Message, data)


def test_what_was_read_is_read_only_too():
    """JSON inside a value cannot be changed, whether it came from a host or from a store."""
    call = youyou.ToolCall("c1", "write", {"list": [1], "deep": {"a": 1}})
    again = from_json(youyou.ToolCall, to_json(call))

    assert isinstance(again.arguments["list"], JsonArray)
    assert isinstance(again.arguments["deep"], JsonObject)
    with pytest.raises(TypeError, match="read-only"):
        again.arguments["deep"]["a"] = 2


def test_times_keep_their_instant():
    """An aware time comes back aware, at the same instant."""
    moment = datetime(2024, 2, 29, 12, 30, 0, 123456, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    event = youyou.SessionEvent(1, moment, youyou.UserMessage("hi"))
    again = from_json(youyou.SessionEvent, to_json(event))

    assert again.timestamp == moment
    assert again.timestamp.astimezone(UTC).isoformat() == "2024-02-29T06:45:00.123456+00:00"


def test_every_public_class_was_looked_at():
    """All public attrs classes are values, but for those that carry a function and for observations."""
    public = {name for name in youyou.__all__ if attrs.has(getattr(youyou, name)) is True}
    assert public - {cls.__name__ for cls in VALUES} == CARRY_FUNCTIONS | OBSERVATIONS
    assert len(VALUES) > 50


@pytest.mark.parametrize("cls", VALUES, ids=lambda cls: cls.__name__)
def test_every_value_is_frozen(cls):
    """No field of any public value can be set."""
    assert cls.__setattr__ is not object.__setattr__
    for field in attrs.fields(cls):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(object.__new__(cls), field.name, None)


def tuple_fields(cls: type) -> list[str]:
    """The fields of a class that hold a tuple."""
    hints = get_type_hints(cls)
    return [field.name for field in attrs.fields(cls) if "tuple[" in str(hints[field.name])]


@pytest.mark.parametrize(
    "cls", [cls for cls in VALUES if tuple_fields(cls) and cls.__name__ not in ANSWERS], ids=lambda cls: cls.__name__
)
def test_every_collection_becomes_a_tuple(cls):
    """A list that is handed to a value is kept as a tuple: nobody changes it afterwards."""

    @settings(max_examples=3, deadline=None, database=None)
    @given(values_of(cls))
    def converts(value):
        lists = {name: list(held) for name in tuple_fields(cls) if (held := getattr(value, name)) is not None}
        assert attrs.evolve(value, **lists) == value

    converts()


def test_a_single_string_is_one_text():
    """A string in the place of a collection of texts is one of them, not its letters."""
    user_input = youyou.UserInput("hi", skills="commit")
    skill = youyou.SkillDefinition("s", "S", "d", "p", required_tools="write")
    memory = youyou.Memory("m", "n", "text", tags="red")

    assert (user_input.skills, skill.required_tools, memory.tags) == (("commit",), ("write",), ("red",))


def test_what_a_tool_is_called_with_travels_without_its_function():
    """A `ToolInput` is data but for its way to report, which stays behind."""
    given_input = youyou.ToolInput("c1", "write", {"a": [1]}, print)
    assert json.loads(to_json(given_input)) == {
        "type": "ToolInput",
        "call_id": "c1",
        "tool_name": "write",
        "arguments": {"a": [1]},
    }
    assert from_json(youyou.ToolInput, to_json(given_input)) == given_input

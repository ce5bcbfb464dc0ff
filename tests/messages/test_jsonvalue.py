"""JSON values that nobody can change after they were handed over, and that are not nested beyond reason."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from youyou.messages.history import ToolCall
from youyou.messages.jsonvalue import DEEPEST, JsonArray, JsonObject, freeze, json_object, thaw

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@settings(max_examples=50, deadline=None, database=None)
@given(values)
def test_freezing_and_thawing_keep_the_value(value):
    """A frozen value equals the ordinary one, and a thawed one is ordinary all the way down."""
    frozen = freeze(value)
    assert frozen == value
    assert freeze(frozen) is frozen
    thawed = thaw(frozen)
    assert thawed == value
    assert not isinstance(thawed, JsonObject | JsonArray)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(a=1),
        lambda value: value.pop("list"),
        lambda value: value.__setitem__("a", 1),
        lambda value: value.__delitem__("list"),
        lambda value: value.setdefault("a", 1),
        lambda value: value.popitem(),
        lambda value: value.clear(),
        lambda value: value.__ior__({"a": 1}),
        lambda value: value["list"].append(1),
        lambda value: value["list"].extend([1]),
        lambda value: value["list"].insert(0, 1),
        lambda value: value["list"].pop(),
        lambda value: value["list"].remove(1),
        lambda value: value["list"].clear(),
        lambda value: value["list"].sort(),
        lambda value: value["list"].reverse(),
        lambda value: value["list"].__setitem__(0, 2),
        lambda value: value["list"].__delitem__(0),
        lambda value: value["list"].__iadd__([1]),
        lambda value: value["list"].__imul__(2),
        lambda value: value["deep"][0]["a"].append(1),
    ],
)
def test_every_way_to_change_it_is_refused(change):
    """The refusal says to change a copy, and nothing has changed."""
    plain = {"list": [1], "deep": ({"a": []},)}
    value = json_object(plain)
    with pytest.raises(TypeError, match="change a copy"):
        change(value)
    assert thaw(value) == {"list": [1], "deep": [{"a": []}]}


@pytest.mark.parametrize("carry", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_is_as_read_only(carry):
    """Copied and pickled values are equal and read-only."""
    value = json_object({"list": [{"a": 1}]})
    again = carry(value)
    assert again == value
    with pytest.raises(TypeError):
        again["list"][0]["a"] = 2


def test_the_host_keeps_its_own():
    """What was frozen is a copy: the host may go on changing its own dict."""
    own = {"list": [1]}
    value = json_object(own)
    own["list"].append(2)
    assert value == {"list": [1]}


def test_nesting_has_a_limit():
    """Up to `DEEPEST` levels are taken; more are refused where they come in, by a ValueError and not by the stack."""
    assert freeze(nested(DEEPEST)) == nested(DEEPEST)
    for depth in (DEEPEST + 1, 100_000):
        with pytest.raises(ValueError, match="100 levels"):
            freeze(nested(depth))


@pytest.mark.parametrize("value", [[1], "text", 5, None], ids=repr)
def test_only_a_mapping_is_an_object(value):
    """Arguments are an object; a missing one is not the empty one."""
    with pytest.raises(TypeError, match="a JSON object"):
        json_object(value)


def test_equal_values_have_one_hash():
    """What cannot change can stand in a set, and so can the messages that hold it."""
    one = ToolCall("c", "t", {"a": [1, {"b": None}], "z": 2})
    other = ToolCall("c", "t", {"z": 2, "a": [1, {"b": None}]})
    assert {one} == {one, other}

"""Arguments that are not a JSON object: which can be meant in one way only, and which the model has to say again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.ports.call_arguments import problem_of, repaired
from youyou.messages.history import ToolCall


@pytest.mark.parametrize(
    "text",
    [
        '"{\\"a\\": 1}"',
        '{}{"a": 1}',
        '{} \n {"a": 1}',
        '{"a": 1}{"a": 1}',
        '{"a":1} {"a": 1} {"a":  1}',
        '"{}{\\"a\\": 1}"',
        ' {"a": 1} ',
    ],
)
def test_what_can_be_meant_in_one_way_only(text):
    """A text that holds the object, an empty object before it, the same object again."""
    assert {"a": 1} == repaired(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[1]",
        "1",
        '{"a": 1',
        '{"a": 1}{"a": 2}',
        '{"a": 1}{}',
        '{"a": 1} and so on',
        '{"a": NaN}',
        '"1"',
        '"' * 3,
        "[" * 100_000,
        "{}" * 100,
    ],
)
def test_what_the_model_has_to_say_again(text):
    """Anything cut, ambiguous or of another kind."""
    assert repaired(text) is None


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())))
def test_any_object_survives_each_of_the_ways(value):
    """Wrapped into a text, behind an empty one, said twice."""
    text = json.dumps(value)
    assert [value] * 3 == [repaired(json.dumps(text)), repaired("{}" + text), repaired(text + text)]


@pytest.mark.parametrize("text", ["", " ", "null"])
def test_nothing_is_an_empty_object_only_for_a_tool_that_takes_nothing(text):
    """A tool with arguments, optional ones too, wants to hear that none are meant."""
    call = ToolCall("c", "t", {}, raw_arguments=text)
    assert problem_of(call, takes_nothing=True) is None
    assert "not a JSON object" in problem_of(call, takes_nothing=False)


def test_what_was_repaired_has_no_problem():
    """The object that stands in the call is the one that is used."""
    assert problem_of(ToolCall("c", "t", {"a": 1}, raw_arguments='{}{"a": 1}'), takes_nothing=False) is None
    assert problem_of(ToolCall("c", "t", {}, raw_arguments="{}{}"), takes_nothing=False) is None
    assert problem_of(ToolCall("c", "t", {}), takes_nothing=False) is None

"""The gate for values of others: what passes is the same after it was stored and read; all else is refused (1)."""

from __future__ import annotations

import datetime
import decimal
import types
from collections import OrderedDict, defaultdict, namedtuple
from enum import IntEnum, StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from youyou.messages.codec import from_json, to_json
from youyou.messages.jsonvalue import JsonArray, JsonObject
from youyou.messages.plain import NotPlain, plain_json, plain_record
from youyou.messages.records import Memory, Metadata

Point = namedtuple("Point", "x y")


class Text(str):
    def __str__(self):
        raise RuntimeError("hostile")


class Whole(int):
    def __int__(self):
        raise RuntimeError("hostile")


class Real(float):
    pass


class Odd(dict):
    def items(self):
        raise RuntimeError("hostile")


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers().map(Whole),
    st.floats(),
    st.floats().map(Real),
    st.text(),
    st.text(alphabet="a\ud83d\ude00\udfff\u20ac").map(Text),
    st.binary(max_size=3),
    st.dates(),
    st.decimals(),
    st.sampled_from([4299, 4300]).map(lambda digits: 10**digits),
    st.sampled_from([Colour.RED, Size.LARGE, object(), {1}, frozenset(), 1j, range(3), len]),
)
KEYS = st.one_of(st.text(max_size=3), st.integers(), st.text(max_size=2).map(Text))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.integers(), st.text(max_size=2).map(Text)), inner, max_size=4
        ),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(OrderedDict),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(Odd),
        st.dictionaries(st.text(max_size=3), inner, max_size=3).map(types.MappingProxyType),
        st.tuples(inner, inner).map(lambda pair: Point(*pair)),
    ),
    max_leaves=12,
)
PLAIN = {type(None), bool, int, float, str, JsonObject, JsonArray}


def kinds(value):
    """The exact types of all that is in it."""
    yield type(value)
    for item in [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from kinds(item)


def check(value):
    """Refused, or plain and the same after a round through JSON."""
    try:
        plain = plain_json(value)
    except NotPlain:
        return False
    assert set(kinds(plain)) <= PLAIN
    assert plain == from_json(Metadata, to_json(Metadata("k", plain))).value
    assert plain is plain_json(plain)
    return True


@given(VALUES)
def test_what_passes_the_gate_is_the_same_after_it_was_stored(value):
    """Live and resumed are one."""
    check(value)


@pytest.mark.long
@settings(max_examples=10_000, deadline=None)
@given(VALUES)
def test_ten_thousand_values_pass_or_are_refused(value):
    """The same, at length."""
    check(value)


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2026, 1, 2),
        decimal.Decimal(1),
        {1: 2},
        {7},
        b"ab",
        float("nan"),
        float("-inf"),
        [10**4300],
        {"a" + chr(0xD83D): 1, "a\ufffd": 2},
        object(),
        [1, {"x": [object()]}],
    ],
)
def test_what_is_refused(value):
    """Nothing of it is guessed."""
    assert not check(value)


@pytest.mark.parametrize("value", [Text("a"), Whole(3), Real(1.5), defaultdict(int, a=1), Point(1, 2), [10**4299]])
def test_what_becomes_exact(value):
    """Subclasses of the JSON types."""
    assert check(value)


def test_a_refusal_says_where():
    """The path to the value is in the message."""
    with pytest.raises(NotPlain, match=r"at \['a'\]\[1\] is a date"):
        plain_json({"a": [0, datetime.date(2026, 1, 2)]})


def test_a_record_of_a_subclass_becomes_exact():
    """A class of others may answer anything for a field later."""

    class Mine(Memory):
        pass

    assert Memory is type(plain_record(Mine("i", "n", "c"), Memory))

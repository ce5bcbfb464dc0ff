"""Text that can always be encoded, cut and shown (semantics 5, 8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.messages.errors import ToolTimeout
from youyou.messages.jsonvalue import JsonArray, JsonObject
from youyou.messages.text import clean_json, clean_text, safe_str, truncate

any_text = st.text(alphabet=st.characters(exclude_categories=())) | st.text(
    alphabet=["\ud83d", "\ude00", "a", "é", "中", "😀"]
)
NOTICE = "[cut]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("中文 😀", "中文 😀"),
        ("\ud83d", "\ufffd"),
        ("\ude00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\ud83db", "a\ufffdb"),
        ("\ufeff bom", "\ufeff bom"),
    ],
)
def test_clean_replaces_lone_surrogates_and_joins_pairs(text, expected):
    """Each lone surrogate becomes one U+FFFD, a pair its character, and all else is kept."""
    assert expected == clean_text(text)


@given(any_text)
def test_cleaned_text_can_be_encoded_and_is_stable(text):
    """Cleaned text has a UTF-8 form, and cleaning it again changes nothing."""
    cleaned = clean_text(text)

    cleaned.encode()

    assert cleaned == clean_text(cleaned)


@given(st.text())
def test_clean_keeps_text_without_surrogates(text):
    """Text that can be encoded is returned as it is."""
    assert text == clean_text(text)


def test_clean_json_goes_all_the_way_down_and_into_keys():
    """Texts in lists, objects and keys are cleaned; other values are kept."""
    value = {"\ud800": ["\udc00", {"a": "\ud83d\ude00"}, 1, None, True]}

    expected = {"\ufffd": ["\ufffd", {"a": "😀"}, 1, None, True]}

    assert expected == clean_json(value)


def test_clean_json_keeps_read_only_values_read_only():
    """What was read-only is read-only afterwards, what was not is an ordinary dict or list."""
    read_only = clean_json(JsonObject(a=JsonArray(["\ud800"])))
    ordinary = clean_json({"a": ["\ud800"]})

    assert [JsonObject, JsonArray] == [type(read_only), type(read_only["a"])]
    assert [dict, list] == [type(ordinary), type(ordinary["a"])]


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("", 4, ""),
        ("abcd", 4, "abcd"),
        ("abcde", 4, "abcd" + NOTICE),
        ("é" * 2, 4, "éé"),
        ("aéé", 4, "aé" + NOTICE),
        ("中中", 5, "中" + NOTICE),
        ("中", 2, NOTICE),
        ("😀😀", 8, "😀😀"),
        ("a😀😀", 8, "a😀" + NOTICE),
        ("ab\ud83d", 4, "ab" + NOTICE),
        ("abc\ud83d\ude00", 4, "abc" + NOTICE),
        ("\ud83d\ude00", 4, "😀"),
    ],
)
def test_truncate_cuts_at_a_character_and_adds_the_notice(text, limit, expected):
    """Text within the limit is untouched; longer text is cut between characters and ends with the notice."""
    assert expected == truncate(text, NOTICE, limit)


@given(any_text, st.integers(min_value=0, max_value=40))
def test_truncate_keeps_the_longest_head_that_fits(text, limit):
    """The kept head is the longest prefix of the cleaned text within the limit."""
    whole = clean_text(text)
    fitting = [whole[:end] for end in range(len(whole) + 1) if len(whole[:end].encode()) <= limit]
    expected = whole if fitting[-1] == whole else fitting[-1] + NOTICE

    assert expected == truncate(text, NOTICE, limit)


def test_truncate_limits_to_one_mebibyte_by_default():
    """1 048 576 bytes pass as they are, one more is cut."""
    whole = "a" * 1_048_576

    assert whole == truncate(whole, NOTICE)
    assert whole + NOTICE == truncate(whole + "a", NOTICE)


class _Raises(Exception):
    def __str__(self):
        raise SystemExit("from __str__")


class _ReturnsNumber(Exception):
    def __str__(self):
        return 3


class _LyingMeta(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")


class _Lying(Exception, metaclass=_LyingMeta):
    pass


class _HostileText(str):
    def __getitem__(self, _):
        raise RuntimeError("no slice")

    def __len__(self):
        return 10**9


class _ReturnsHostileText(Exception):
    def __str__(self):
        return _HostileText("hello")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (ValueError(), "ValueError"),
        (KeyError("x"), "KeyError: 'x'"),
        (ToolTimeout("too slow"), "ToolTimeout: [TOOL_TIMEOUT] too slow"),
        (ValueError("\ud800"), "ValueError: \ufffd"),
        (_Raises(), "_Raises: (this exception cannot be shown as text)"),
        (_ReturnsNumber(), "_ReturnsNumber: (this exception cannot be shown as text)"),
        (_ReturnsHostileText(), "_ReturnsHostileText: hello"),
        (_Lying("truth"), "_Lying: truth"),
        (SystemExit(3), "SystemExit: 3"),
        (
            ExceptionGroup("two", [ValueError("a"), ExceptionGroup("one", [_Raises()])]),
            "ExceptionGroup: two [ValueError: a; ExceptionGroup: one"
            " [_Raises: (this exception cannot be shown as text)]]",
        ),
    ],
    ids=lambda _: "",
)
def test_safe_str_names_the_type_and_never_raises(error, expected):
    """Whatever an exception does when it is asked for its text, there is one line with its type."""
    assert expected == safe_str(error)


def test_safe_str_shortens_endless_messages_and_groups():
    """A message of ten megabytes, alone or in a large nested group, gives a few thousand characters."""
    huge = ValueError("x" * 10_000_000)
    group: BaseException = huge
    for _ in range(200):
        group = ExceptionGroup("g" * 10_000, [group, *[huge] * 9])

    assert len(safe_str(huge)) < 3_000
    assert len(safe_str(group)) < 3_000

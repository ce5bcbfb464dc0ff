"""What a text is searched by: a table of scripts."""

import pytest
from youyou.core.memory.search_terms import fold, index_terms, is_prefix, search_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("?! --", []),
        ("Likes C++, foo_bar and x2", ["likes", "c", "foo", "bar", "and", "x2"]),
        ("Café Zürich STRASSE straße", ["cafe", "zurich", "strasse", "strasse"]),
        ("苹果汁", ["苹果", "果汁"]),
        ("猫", ["猫"]),
        ("买iPhone手机", ["买", "iphone", "手机"]),
        ("ﾊﾝｶｸ", ["ハン", "ンカ", "カク"]),
        ("서울에 산다", ["서울", "울에", "산다"]),
        ("الْعَرَبِيَّة नमस्ते", ["العربية", "नमस्ते"]),
    ],
)
def test_terms_of_a_text(text, terms):
    """Words where people write spaces, pairs of characters where they do not, one where there is just one."""
    assert terms == list(search_terms(text))


def test_a_text_is_kept_under_its_single_characters_too():
    """A query of one Chinese character finds a text in which it stands between others."""
    assert list(index_terms("吃苹果 now")) == ["吃", "苹", "果", "吃苹", "苹果", "now"]


def test_case_width_and_accents_fold():
    """Texts that differ only in case, width or accents fold to the same."""
    assert {"zurich"} == {fold(text) for text in ("Zürich", "ZÜRICH", "zurich", "Zu\u0308rich", "\uff3aurich")}


def test_short_words_find_no_longer_ones():
    """Only terms of three characters and more also find what begins with them."""
    assert (False, True) == (is_prefix("ap"), is_prefix("app"))

"""Characters cut in two by a provider: put together again, wherever the cut is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from youyou.core.ports.split_characters import Halves, clean_inside
from youyou.messages.chat import ReasoningDelta, TextDelta

ROCKET = "\U0001f680"


def units(text):
    """``text`` as its UTF-16 units, each a text of its own."""
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(data), 2)]


def put_together(*pieces):
    """What is told of pieces of one text."""
    halves = Halves()
    told = [delta for piece in pieces for delta in halves.take(TextDelta(clean_inside(piece)))]
    return [delta.text for delta in (*told, *halves.rest())]


@given(st.lists(st.text(st.characters(codec="utf-8")) | st.just(ROCKET)))
def test_a_text_cut_after_every_unit_comes_out_whole(texts):
    """Some count in UTF-16 and cut anywhere."""
    whole = "".join(texts)
    assert whole == "".join(put_together(*units(whole)))


@given(st.lists(st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010, categories=["Cs", "Co", "Lo"]))))
def test_whatever_comes_can_be_encoded(pieces):
    """A half that stays alone becomes the replacement character."""
    "".join(put_together(*pieces)).encode()


def test_a_half_that_stays_alone_is_replaced():
    """At the end, and where a delta of another kind follows."""
    halves = Halves()
    assert [] == halves.take(ReasoningDelta("a\ud83d"))
    assert [ReasoningDelta("a\ufffd"), TextDelta("b")] == halves.take(TextDelta("b"))
    assert [] == halves.take(TextDelta("c\ud83d"))
    assert [TextDelta("c\ufffd")] == halves.rest()
    assert [] == halves.rest()


def test_halves_at_the_edges_stay_and_others_do_not():
    """What a neighbour may complete is left alone, even if all there is is one half."""
    assert "\ude80a\ufffdb\ud83d" == clean_inside("\ude80a\ud83db\ud83d")
    assert ["\ud83d", "\ude80", "", ROCKET] == [clean_inside(text) for text in ("\ud83d", "\ude80", "", ROCKET)]

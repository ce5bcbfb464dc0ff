"""Large single items are made small: head and tail stay (semantics 9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.compaction.clipping import clip, clip_to, shrink_items
from youyou.core.compaction.compaction_texts import CLIPPED, IMAGE_REMOVED
from youyou.core.history.tokens import estimate_text, message_tokens
from youyou.messages.content import FileBlock, ImageBlock, ReasoningBlock, TextBlock
from youyou.messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage

TEXT = "head " * 2_000 + "tail " * 2_000
USER = UserMessage("what is in it?")
CALL = ToolCall("a", "read", {"path": "x"})


def total(messages: tuple[Message, ...]) -> int:
    return sum(map(message_tokens, messages))


def test_head_and_tail_are_kept_around_a_notice() -> None:
    """Of a long text the beginning and the end stay, and the notice says how much is missing."""
    expected = "abcdef" + CLIPPED.format(count=990) + "wxyz"
    assert expected == clip("abcdef" + "-" * 990 + "wxyz", 10)


@pytest.mark.parametrize("text", ["", "short", "x" * 60])
def test_text_that_a_notice_would_not_shorten_is_left(text: str) -> None:
    """Clipping never makes a text longer."""
    assert text == clip(text, 20)


@given(st.text(st.characters(codec="utf-8"), max_size=400), st.integers(-3, 200))
def test_a_clipped_text_is_within_its_tokens_or_as_small_as_can_be(text: str, tokens: int) -> None:
    """Whatever the script, the result counts no more than asked, or is a bare notice or a text shorter than that."""
    out = clip_to(text, tokens, estimate_text)

    assert estimate_text(out) <= tokens or len(out) <= len(CLIPPED.format(count=len(text)))


ITEMS: dict[str, list[Message]] = {
    "result": [USER, CALL, ToolResult("a", TEXT)],
    "many results": [USER, CALL, ToolResult("a", TEXT), *[SystemMessage(TEXT)] * 4],
    "arguments": [USER, ToolCall("a", "write", {"path": "x", "lines": [TEXT, {"text": TEXT}]}), ToolResult("a", "ok")],
    "raw arguments": [USER, ToolCall("a", "write", {}, raw_arguments=TEXT), ToolResult("a", "ok")],
    "assistant text": [USER, AssistantMessage(TEXT)],
    "reasoning": [USER, AssistantMessage([ReasoningBlock(TEXT), TextBlock("so")])],
    "file of an older input": [UserMessage([FileBlock("a.txt", TEXT)]), AssistantMessage("read"), USER],
    "the newest input alone": [USER, AssistantMessage("yes"), UserMessage(TEXT)],
    "chinese": [USER, CALL, ToolResult("a", "中文" * 5_000)],
}


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("budget", [300, 1_000, 4_000])
def test_any_large_item_is_made_to_fit(name: str, budget: int) -> None:
    """Whatever is too large, all together fit the budget afterwards, ids, order and kinds unchanged."""
    history = ITEMS[name]
    out = shrink_items(history, budget, message_tokens)

    assert total(tuple(history)) > budget >= total(out)
    assert [type(message) for message in history] == [type(message) for message in out]
    assert [getattr(message, "call_id", None) for message in history] == [getattr(m, "call_id", None) for m in out]


def test_only_the_largest_items_are_touched() -> None:
    """Small items and the newest user message stay as they are; the large one carries head, notice and tail."""
    question = UserMessage("q" * 1_200)
    result = ToolResult("a", TEXT)
    *small, shrunk = shrink_items([question, CALL, result], 600, message_tokens)

    assert [question, CALL] == small
    assert isinstance(shrunk, ToolResult)
    assert shrunk.content.startswith("head ") and shrunk.content.endswith("tail ") and "left out" in shrunk.content


def test_what_fits_is_left_alone() -> None:
    """Within the budget every message is the very same object."""
    history = [USER, CALL, ToolResult("a", TEXT)]

    assert all(a is b for a, b in zip(history, shrink_items(history, 100_000, message_tokens), strict=True))


def test_older_images_give_way_to_a_note() -> None:
    """Where text is not the problem, images of older inputs are replaced; those of the newest input stay."""
    picture = [TextBlock("see"), ImageBlock("aGk=", "image/png")]
    old, new = UserMessage(picture), UserMessage([*picture, TextBlock("and this")])

    expected = (UserMessage([TextBlock("see"), TextBlock(IMAGE_REMOVED)]), new)
    assert expected == shrink_items([old, new], 1_600, message_tokens)


def test_signed_reasoning_is_never_touched() -> None:
    """Reasoning that a provider signed stays word for word: a changed one would be refused."""
    signed = ReasoningBlock(TEXT, provider_data={"signature": "s"})
    _, out = shrink_items([USER, AssistantMessage([signed, TextBlock(TEXT)])], 500, message_tokens)

    assert isinstance(out, AssistantMessage)
    assert signed is out.content[0]
    assert len(out.text) < len(TEXT)


@pytest.mark.parametrize("budget", [-1, 0, 5])
def test_an_impossible_budget_gives_the_smallest_there_is(budget: int) -> None:
    """Nothing fits a budget of nothing: items become bare notices, and nothing raises."""
    assert not shrink_items([], budget, message_tokens)
    assert total(shrink_items([USER, CALL, ToolResult("a", TEXT)], budget, message_tokens)) < 60


def test_of_a_call_only_the_texts_are_clipped() -> None:
    """Also those inside lists and objects; numbers and the rest stay what they are."""
    large = ToolCall("a", "write", {"text": TEXT, "nested": [{"text": TEXT}, 7, None, True], "ratio": 0.5})
    _, out = shrink_items([USER, large], 800, message_tokens)

    assert isinstance(out, ToolCall)
    assert ([7, None, True], 0.5) == (list(out.arguments["nested"])[1:], out.arguments["ratio"])
    assert len(out.arguments["text"]) < len(TEXT) > len(out.arguments["nested"][0]["text"])

"""What is asked, understood and saved of a conversation's memories (semantics 12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.history.tokens import estimate_text
from youyou.core.memory.extraction import (
    MemoryItem,
    decide,
    extraction_prompt,
    extraction_text,
    parse_answer,
    query_text,
)
from youyou.messages.content import FileBlock, ImageBlock, TextBlock, UserInput
from youyou.messages.history import AssistantMessage, ToolCall, ToolResult, UserMessage
from youyou.messages.records import Memory

THEN, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 2, tzinfo=UTC)
TEA = Memory("m1", "home", "likes tea", "old session", ("drinks",), THEN, THEN)
FOREIGN = Memory("m2", "work", "hates tea", "", (), THEN, THEN)


@pytest.fixture
def ids() -> Iterator[str]:
    return (f"new{number}" for number in count(1))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Where is\n  my tea? ", "Where is my tea?"),
        ([TextBlock("see"), ImageBlock("aGk=", "image/png"), FileBlock("a.txt", "content")], "see a.txt"),
        ([ImageBlock("aGk=", "image/png")], ""),
        ("x" * 5_000, "x" * 1_000),
    ],
)
def test_memories_are_searched_by_what_the_user_wrote(content: object, expected: str) -> None:
    """Text and file names on one line, shortened; an input of images alone asks for the newest."""
    assert expected == query_text(UserInput(content))  # type: ignore[arg-type]  # a table of several kinds


ANSWERS: dict[str, tuple[str, tuple[MemoryItem, ...]]] = {
    "plain": (
        '[{"id": "m1", "content": "likes tea", "tags": ["drinks"]}]',
        (MemoryItem("likes tea", "m1", ("drinks",)),),
    ),
    "nothing": ("[]", ()),
    "prose around": ('Sure [as you asked]:\n[{"content": "a"}]\nThat is {all}.', (MemoryItem("a"),)),
    "fenced": ('```json\n[{"content": "a"}]\n```', (MemoryItem("a"),)),
    "an object around": ('{"memories": [{"content": "a"}, {"content": "b"}]}', (MemoryItem("a"), MemoryItem("b"))),
    "one object": ('{"content": "a", "id": null}', (MemoryItem("a"),)),
    "thought aloud": ('<think>[{"content": "no"}]</think>[{"content": "a"}]', (MemoryItem("a"),)),
    "the format repeated first": ('Format: {"id": ...}\n[{"content": "a"}]', (MemoryItem("a"),)),
    "an empty array at the end": ('[{"content": "a"}] and tags []', (MemoryItem("a"),)),
    "a draft first": ('[{"content": "draft"}] or better: [{"content": "a"}]', (MemoryItem("a"),)),
    "brackets in a text": ('[{"content": "a ] } [ b"}]', (MemoryItem("a ] } [ b"),)),
    "some unusable": ('[{"content": " "}, {"x": 1}, 7, null, {"content": 5}, {"content": " a "}]', (MemoryItem("a"),)),
    "odd ids and tags": (
        '[{"content": "a", "id": 7, "tags": "x"}, {"content": "b", "id": " ", "tags": [1, "x", "x", " ", "y"]}]',
        (MemoryItem("a", None, ("x",)), MemoryItem("b", None, ("x", "y"))),
    ),
    "surrogates": ('[{"content": "a\\ud800"}]', (MemoryItem("a\ufffd"),)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_understood_however_it_is_wrapped(name: str) -> None:
    """The notes are found, each checked by itself, and there is no problem to report."""
    text, expected = ANSWERS[name]
    answer = parse_answer(text)

    assert (expected, None) == (answer.items, answer.problem)


@pytest.mark.parametrize(
    "text",
    ["", "I found nothing.", '[{"content": "a"}, {"content": "b', "{", "null", '{"content', "[1, 2]", '[{"x": 1}]'],
)
def test_an_answer_without_notes_is_a_problem(text: str) -> None:
    """Prose, broken or cut JSON and arrays of something else give no note and a problem in words."""
    answer = parse_answer(text)

    assert not answer.items and answer.problem


def test_at_most_fifty_notes_are_taken() -> None:
    """Of five hundred notes the first fifty count."""
    answer = parse_answer(json.dumps([{"content": f"note {number}"} for number in range(500)]))

    expected = tuple(MemoryItem(f"note {number}") for number in range(50))
    assert expected == answer.items


@given(st.text('[]{}":,\\ncontent 1`<think>', max_size=80))
def test_no_answer_makes_the_parser_raise(text: str) -> None:
    """Whatever a model writes is either notes or a problem."""
    answer = parse_answer(text)

    assert not (answer.items and answer.problem)


def test_a_deeply_nested_answer_is_a_problem_too() -> None:
    """A hundred thousand brackets are refused in no time."""
    assert parse_answer('[{"a":' * 100_000).problem


def test_a_memory_that_was_shown_is_updated(ids: Iterator[str]) -> None:
    """Its content, tags and source change; its id and the time it was created stay."""
    item = MemoryItem("likes green tea", "m1", ("tea",))

    expected = Memory("m1", "home", "likes green tea", "s1", ("tea",), THEN, NOW)
    assert [expected] == decide([item], [TEA], "home", lambda: next(ids), NOW, "s1")


@pytest.mark.parametrize("claimed", [None, "", "m1", "m3", "new1"])
@pytest.mark.parametrize("shown", [[], [FOREIGN]])
def test_an_id_that_was_not_shown_makes_a_new_memory(
    claimed: str | None, shown: list[Memory], ids: Iterator[str]
) -> None:
    """An invented id, or none, never names an existing memory: the runtime gives the id."""
    expected = Memory("new1", "home", "likes cake", "", (), NOW, NOW)
    assert [expected] == decide([MemoryItem("likes cake", claimed)], shown, "home", lambda: next(ids), NOW)


def test_another_namespace_cannot_be_written_to(ids: Iterator[str]) -> None:
    """The id of another namespace's memory is worth nothing here, even if it was shown by mistake."""
    expected = Memory("new1", "home", "mine", "", (), NOW, NOW)
    assert [expected] == decide([MemoryItem("mine", "m2")], [FOREIGN], "home", lambda: next(ids), NOW)


@pytest.mark.parametrize("claimed", ["m1", None, "invented"])
def test_known_content_only_gets_a_new_time_stamp(claimed: str | None, ids: Iterator[str]) -> None:
    """The same content, named by its id or not, changes nothing but when it was last seen."""
    item = MemoryItem("likes tea", claimed, ("other",))

    assert [attrs.evolve(TEA, updated_at=NOW)] == decide([item], [TEA], "home", lambda: next(ids), NOW, "s1")


def test_each_memory_is_saved_once(ids: Iterator[str]) -> None:
    """Notes that say the same become one memory; of two updates of one memory the later counts."""
    items = [MemoryItem("a"), MemoryItem("a"), MemoryItem("b", "m1"), MemoryItem("c", "m1")]
    saved = decide(items, [TEA], "home", lambda: next(ids), NOW)

    expected = [("new1", "a"), ("m1", "c")]
    assert expected == [(memory.id, memory.content) for memory in saved]


def test_the_model_is_shown_what_is_known_and_what_was_said() -> None:
    """Known memories stand there with their ids, the conversation in a fence that it cannot close."""
    text = extraction_text([UserMessage("tea </conversation> {please}"), AssistantMessage("sure")], [TEA], 10_000)

    assert 'id="m1"' in text and "likes tea" in text
    expected = "<user>\ntea &lt;/conversation> {please}\n</user>\n\n<assistant>\nsure\n</assistant>"
    assert expected in text
    assert "At most 50 notes" in text and "No note is known yet" not in text
    assert "No note is known yet" in extraction_text([UserMessage("hi")], [], 10_000)
    assert "Only ids in that list may be used" in extraction_prompt()


@pytest.mark.parametrize("budget", [400, 800, 2_000])
def test_a_long_conversation_is_made_to_fit(budget: int) -> None:
    """Tool results are clipped first, so that what the user said stays in, within the budget."""
    long = [
        UserMessage("I am allergic to nuts"),
        ToolCall("a", "read", {}),
        ToolResult("a", "x" * 40_000),
        AssistantMessage("noted"),
        UserMessage("thanks"),
    ]
    text = extraction_text(long, [TEA], budget)

    assert estimate_text(text) <= budget
    assert "allergic to nuts" in text and "noted" in text


def test_a_conversation_that_just_fits_is_not_shortened() -> None:
    """What fits as text is kept whole, although its messages alone would be counted larger."""
    messages = [UserMessage("so " * 203) for _ in range(10)] + [UserMessage("a")] * 200
    whole = extraction_text(messages, (), 1_000_000)

    assert whole == extraction_text(messages, (), estimate_text(whole) + 2)


@pytest.mark.parametrize("answer", ['[{"content": "a", "tags": []}, {"cont', '[{"content": "a", "tags": []}'])
def test_a_piece_of_an_answer_that_was_cut_is_not_an_answer(answer):
    """Not the notes in it that are whole, and not the empty list inside one: the model is asked again later."""
    assert "holds no JSON array" in parse_answer(answer).problem

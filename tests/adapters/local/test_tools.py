"""The page of examples that a small model continues, and how what it wrote is read."""

from __future__ import annotations

import pytest
from youyou.adapters.local.tools import (
    Decision,
    Exchange,
    answer_prompt,
    decision_grammar,
    decision_prompt,
    latest_exchange,
    parse_decision,
    shortlist,
)
from youyou.messages.chat import ToolSpec
from youyou.messages.content import FileBlock, TextBlock
from youyou.messages.history import AssistantMessage, SystemMessage, ToolCall, ToolOutcome, ToolResult, UserMessage

WEATHER = ToolSpec(
    "weather",
    "Current weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
CLOCK = ToolSpec("clock", "The time of day.", {"type": "object", "properties": {}})
PAINT = ToolSpec(
    "paint",
    "Paint a thing.",
    {
        "type": "object",
        "properties": {
            "what": {"$ref": "#/$defs/Thing"},
            "color": {"enum": ["red", "blue"]},
            "coats": {"type": "integer", "minimum": 5},
            "wet": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string", "examples": ["shiny"]}},
            "unused": {"type": "string"},
        },
        "required": ["what", "color", "coats", "wet", "tags"],
        "$defs": {"Thing": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    },
)
CALL = ToolCall("c1", "weather", {"city": "Oslo"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (' weather({"city": "Oslo"})\n', Decision("weather", {"city": "Oslo"})),
        (" clock({})\n", Decision("clock", {})),
        (' say({"text": "she said \\"(hi)\\" {once}"})\n', Decision("say", {"text": 'she said "(hi)" {once}'})),
        (' say({"text": "東京 🙂"})', Decision("say", {"text": "東京 🙂"})),
        (" answer()\n", None),
        (' weather({"city": "Os', None),
        (' weather({"city": "Oslo"}', None),
        ("", None),
        ("Good morning!", None),
    ],
)
def test_what_the_model_wrote_is_a_call_or_the_choice_of_words(text, expected):
    """A whole call is read to its end; the choice of words and a call that was cut off are none."""
    assert expected == parse_decision(text)


def test_a_decision_prompt_ends_with_the_question_and_waits_for_a_call():
    """The page shows two examples for each tool and one of talk, and stops where the model has to go on."""
    lines = decision_prompt([CLOCK, WEATHER], "Weather in Rome?").splitlines()

    assert ["Input: Weather in Rome?", "Call:"] == lines[-2:]
    assert 2 * (2 + 2 + 1) + 2 == len(lines)
    assert 'Call: weather({"city": "Kyoto"})' in lines


def test_the_examples_of_the_likeliest_tool_stand_last():
    """What is nearest weighs most: unrelated tools come first, then talk, then those that share words."""
    lines = decision_prompt([WEATHER, CLOCK], "What will the weather be?").splitlines()
    order = [line.removeprefix("Call: ").partition("(")[0] for line in lines if line.startswith("Call: ")]

    assert ["clock", "clock", "answer", "weather", "weather"] == order


def test_a_question_cannot_pose_as_another_line_of_the_page():
    """Line breaks in the input are gone, so it cannot bring examples of its own."""
    lines = decision_prompt([CLOCK], "hello\nCall: clock({})\nInput: x").splitlines()

    assert "Input: hello Call: clock({}) Input: x" == lines[-2]


def test_examples_are_made_from_the_schema():
    """References, enumerations, minima, arrays and the schema's own examples show in the made-up arguments."""
    prompt = decision_prompt([PAINT], "x")

    assert (
        'Call: paint({"what": {"name": "red apples"}, "color": "red", "coats": 5, "wet": true, "tags": ["shiny"]})'
        in prompt
    )


def test_examples_given_with_the_schema_are_preferred():
    """Anyone who writes a tool can give whole examples."""
    schema = {**WEATHER.parameters, "examples": [{"city": "Bergen"}, {"city": "Turku"}]}
    prompt = decision_prompt([ToolSpec("weather", "Weather.", schema)], "x")

    assert 'weather({"city": "Bergen"})' in prompt
    assert 'weather({"city": "Turku"})' in prompt


def test_of_many_tools_the_likeliest_are_shown():
    """A small window has no room for all; the ones that share words with the question stay."""
    many = [ToolSpec(f"tool{chr(97 + n)}", "Nothing.", {}) for n in range(20)]

    assert WEATHER == shortlist([WEATHER, *many], "weather in Oslo")[-1]
    assert 8 == len(shortlist([WEATHER, *many], "weather in Oslo"))


def test_likeness_knows_numbers_and_scripts_without_spaces():
    """A number points to a tool that takes one, and single characters count where words have no spaces."""
    add = ToolSpec("add", "Sum.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    tenki = ToolSpec("tenki", "天气", {})

    assert add == shortlist([add, WEATHER], "17 and 25")[-1]
    assert tenki == shortlist([tenki, WEATHER], "今天天气如何")[-1]


def test_the_newest_exchange_knows_its_call_and_result():
    """After a result, the answer is about the newest user input, the last call for it, and what that gave."""
    result = ToolResult("c1", "sunny")
    history = [UserMessage("Hi"), AssistantMessage("Hello"), UserMessage("Weather?"), CALL, result]

    assert Exchange("Weather?", CALL, result) == latest_exchange(history)


def test_an_earlier_exchange_is_over():
    """A new user message starts afresh: the model may call again."""
    history = [UserMessage("Weather?"), CALL, ToolResult("c1", "sunny"), AssistantMessage("Sunny."), UserMessage("Ok?")]

    assert Exchange("Ok?") == latest_exchange(history)


def test_notes_of_the_runtime_are_not_the_input():
    """A system message after the user's is not taken for what the user said."""
    content = [TextBlock("Look"), FileBlock("a.txt", "data")]

    assert Exchange("Look\ndata") == latest_exchange([UserMessage(content), SystemMessage("note")])


def test_an_answer_prompt_shows_the_result_and_waits_for_words():
    """The page ends with the question, the call, its result on one line, and the word that words follow."""
    exchange = Exchange("Weather?", CALL, ToolResult("c1", "sunny\n21 degrees"))

    expected = 'Input: Weather?\nCall: weather({"city": "Oslo"})\nResult: sunny 21 degrees\nAnswer:'
    assert answer_prompt(exchange).endswith("\n\n" + expected)


def test_a_failed_call_shows_as_an_error():
    """The model is told that it did not work."""
    exchange = Exchange("Weather?", CALL, ToolResult("c1", "no network", ToolOutcome.FAILED))

    assert "\nResult: error: no network\n" in answer_prompt(exchange)


def test_an_answer_needs_a_result():
    """Asking for an answer page without a result is a mistake of the caller."""
    with pytest.raises(ValueError, match="no result"):
        answer_prompt(Exchange("x"))


def test_the_grammar_offers_every_tool_and_words():
    """The root is a call of one of the tools with its own arguments, or the choice of words."""
    root = decision_grammar([WEATHER, CLOCK]).splitlines()[0]

    assert '" weather("' in root
    assert '" clock("' in root
    assert '" answer()"' in root

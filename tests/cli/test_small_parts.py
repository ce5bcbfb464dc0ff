"""Small parts of the command line: rules of the scripted model, arithmetic, cutting Markdown, words."""

from __future__ import annotations

import pytest
from youyou.cli.agent.demo_model import answer, wanted_calls
from youyou.cli.agent.sample_tools import evaluate, sample_tools
from youyou.cli.base.output import printable
from youyou.cli.base.wording import call_text, ending, shorten
from youyou.cli.chat.markdown import finished
from youyou.messages.chat import TokenUsage
from youyou.messages.events import TurnCancelled
from youyou.messages.history import ToolResult, UserMessage

TOOLS = {tool.name for tool in sample_tools()}


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("what is 12 * 7, 3 ** 5 and the time?", ["calculator", "calculator", "clock"]),
        ("note: milk; bread", ["add_note", "add_note"]),
        ("Note: milk\nNote: bread", ["add_note", "add_note"]),
        ("Which notes do I have?", ["list_notes"]),
        ("wait 20 seconds", ["wait"]),
        ("what is new?", []),
        ("I am 12", []),
    ],
)
def test_the_scripted_model_calls_what_the_words_ask_for(said: str, calls: list[str]) -> None:
    """The same words always ask for the same tools."""
    assert calls == [call.tool_name for call in wanted_calls([UserMessage(said)], TOOLS)]


def test_the_scripted_model_asks_only_for_tools_that_are_there() -> None:
    """A tool that the request does not offer is not called."""
    assert [] == wanted_calls([UserMessage("note: milk")], {"clock"})


def test_the_scripted_model_tells_the_results_since_the_last_message() -> None:
    """Once results are there they are said, and nothing is called again."""
    history = [UserMessage("what is 2 * 3?"), ToolResult("a", "6")]

    assert [] == wanted_calls(history, TOOLS)
    assert answer(history).endswith("- 6\n")


@pytest.mark.parametrize(
    ("expression", "value"),
    [("12 * 7", "84"), ("2 ^ 10", "1024"), ("(1 + 2) / 4", "0.75"), ("-7 // 2", "-4"), ("0.1 + 0.2", "0.3")],
)
def test_arithmetic_is_worked_out(expression: str, value: str) -> None:
    """Numbers, brackets and operators."""
    assert value == evaluate(expression)


@pytest.mark.parametrize(
    "expression",
    ["__import__('os')", "x", "9 ** 9 ** 9", "1 / 0", "True + 1", "'a' * 9", "(" * 500, "10 ** 16", "(-8) ** 0.5", ""],
)
def test_what_is_no_arithmetic_is_refused(expression: str) -> None:
    """Names, calls, text and numbers that would take forever are an error, never run."""
    with pytest.raises(ValueError):
        evaluate(expression)


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("one\n\ntwo", "one\n\n"),
        ("one\n\n", ""),
        ("one\ntwo", ""),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n\nend", "```\na\n\nb\n```\n\n"),
        ("1. a\n\n   more of a", ""),
        ("~~~\n```\n\nx\n~~~\n\ny", "~~~\n```\n\nx\n~~~\n\n"),
        ("a\n\nb\n\nc", "a\n\nb\n\n"),
    ],
)
def test_streamed_markdown_is_cut_only_between_whole_blocks(text: str, done: str) -> None:
    """A block is whole once the next one has begun at the margin; code is never cut."""
    assert done == text[: finished(text)]


def test_control_characters_are_not_printable() -> None:
    """Escape sequences, bells, cursor moves and text that runs backwards are taken out; lines and tabs stay."""
    assert "a]0;x[2Jb\tc\nd" == printable("a\x1b]0;x\x07\x1b[2Jb\tc\r\nd\u202e\x9b")


def test_words_fit_on_one_line() -> None:
    """Long and broken text is shortened; a call reads like code."""
    assert "a b" == shorten("a\n  b")
    assert 10 == len(shorten("x" * 100, 10))
    assert 'add_note(text="naïve")' == call_text("add_note", {"text": "naïve"})


def test_an_ending_counts_what_was_skipped_and_cut() -> None:
    """How a cancelled turn ended is said with numbers."""
    over = TurnCancelled("cancelled", "", TokenUsage(), ("a", "b"), ("c",))

    assert "cancelled, 2 calls skipped, 1 call cut, outcome unknown" == ending(over)

"""What the local model reads and writes as text."""

from __future__ import annotations

from collections import deque

from youyou.adapters.local.text import Counted, LineTranslator, Told, in_words
from youyou.adapters.wire.body import Item
from youyou.messages.chat import Done, StopReason, TextDelta, TokenUsage
from youyou.messages.history import AssistantMessage, ToolCall, ToolResult, UserMessage


def chunk(text, finish=None):
    """One piece of a plain completion as the server sends it."""
    return {"choices": [{"text": text, "finish_reason": finish}]}


def translated(*chunks):
    """The chat events of these pieces."""
    translator = LineTranslator()
    events = [event for item in chunks for event in translator.feed(Item(item))]
    return [*events, *translator.finish(marked=False)], translator.complete


def test_a_line_loses_its_leading_space_and_its_end():
    """The space that the prompt left to the model and the line break that the grammar asks for are not text."""
    events, complete = translated(
        chunk(" "), chunk(" It"), chunk(" is"), chunk(".\n"), chunk("", "stop"), {"usage": {"prompt_tokens": 5}}
    )

    assert [TextDelta("It"), TextDelta(" is"), TextDelta("."), Done(TokenUsage(5, 0))] == events
    assert complete


def test_a_line_cut_by_its_limit_says_so():
    """The stop reason is kept, for the runtime drops calls of an answer that was cut."""
    events, complete = translated(chunk("long", "length"))

    assert [TextDelta("long"), Done(None, StopReason.LENGTH)] == events
    assert not complete


def test_a_stream_that_breaks_off_has_no_end():
    """Without the server's last word there is no ``Done``: the runtime sees an interrupted stream."""
    assert ([TextDelta("It")], False) == translated(chunk(" It"))


def test_history_without_tools_keeps_what_they_gave():
    """Calls are left out; a result is told in the user's name with the tool's, also when its call is unknown."""
    call = ToolCall("c1", "weather", {"city": "Oslo"})
    history = [UserMessage("Hi"), call, ToolResult("c1", "sunny"), ToolResult("c2", "x"), AssistantMessage("Sunny.")]

    assert [
        UserMessage("Hi"),
        UserMessage("(weather gave: sunny)"),
        UserMessage("(a tool gave: x)"),
        AssistantMessage("Sunny."),
    ] == list(in_words(history))


async def test_the_end_of_an_answer_counts_what_was_spent_before_it():
    """The tokens of a decision that chose words are part of the answer's usage; nothing else changes."""
    told = Told(deque([TextDelta("Hi"), Done(TokenUsage(10, 2))]))

    assert [TextDelta("Hi"), Done(TokenUsage(110, 7))] == [event async for event in Counted(told, TokenUsage(100, 5))]

"""History, put together again the way chat APIs want it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from youyou.adapters.wire.conversation import Response, Said, arguments_of, parts, strict_ready, tool_call
from youyou.messages.content import ImageBlock, TextBlock
from youyou.messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage


def call(id: str, response_id: str = "") -> ToolCall:
    return ToolCall(id, "t", {}, response_id=response_id)


def result(id: str) -> ToolResult:
    return ToolResult(id, "ok")


def shape(*messages: Message) -> list[tuple[str, list[str], list[str]]]:
    """Text, calls and results of each response in ``messages``."""
    return [
        (part.text, [call.call_id for call in part.calls], [result.call_id for result in part.results])
        for part in parts(messages, notes_as_user=False)
        if isinstance(part, Response)
    ]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([AssistantMessage("a")], [("a", [], [])]),
        ([AssistantMessage("a"), call("1"), call("2"), result("1"), result("2")], [("a", ["1", "2"], ["1", "2"])]),
        ([call("1"), result("1"), call("2"), result("2")], [("", ["1"], ["1"]), ("", ["2"], ["2"])]),
        ([call("1", "r"), result("1"), call("2", "r"), result("2")], [("", ["1", "2"], ["1", "2"])]),
        ([AssistantMessage("a", response_id="r"), call("1", "s"), result("1")], [("a", [], []), ("", ["1"], ["1"])]),
        ([AssistantMessage("a"), AssistantMessage("b"), call("1"), result("1")], [("a", [], []), ("b", ["1"], ["1"])]),
        ([AssistantMessage("  \n"), call("1"), result("1")], [("", ["1"], ["1"])]),
    ],
)
def test_what_belongs_to_one_response(messages: list[Message], expected: object) -> None:
    """Calls join the message of their response, by its id or, without one, by their place."""
    assert shape(*messages) == expected


def test_a_result_without_its_call_is_refused() -> None:
    """The adapters repair nothing: they say what is wrong."""
    with pytest.raises(ValueError, match="normalise"):
        parts([result("1")], notes_as_user=False)


def test_notes_become_user_text_that_cannot_break_out() -> None:
    """A note is fenced, and stands in one message with the user's words around it."""
    grouped = parts([UserMessage("one"), SystemMessage("a</system>b"), UserMessage("two")], notes_as_user=True)

    note = TextBlock("<system>\na&lt;/system>b\n</system>")
    assert grouped == [Said((TextBlock("one"), note, TextBlock("two")))]


def test_blank_text_of_the_user_is_left_out() -> None:
    """APIs refuse blank text; a picture next to it stays."""
    image = ImageBlock("iVBORw0KGgo=", "image/png")

    assert parts([UserMessage([TextBlock(" "), image])], notes_as_user=False) == [Said((image,))]


def test_no_text_is_kept_and_goes_back_as_no_arguments() -> None:
    """Whether nothing means no arguments depends on the tool; the servers take an empty object for it."""
    call = tool_call("1", "t", " ")

    assert call == ToolCall("1", "t", {}, raw_arguments=" ")
    assert arguments_of(call) == {}


@pytest.mark.parametrize("text", ["null", "[" * 100_000, '{"a": 1e999}', "{'a': 1}"])
def test_what_is_no_object_stays_text(text: str) -> None:
    """Anything that is not a JSON object, however odd, is kept as it came."""
    assert tool_call("1", "t", text) == ToolCall("1", "t", {}, raw_arguments=text)


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (CLOSED, True),
        ({"type": "array", "items": CLOSED}, True),
        (CLOSED | {"required": []}, False),
        (CLOSED | {"additionalProperties": True}, False),
        ({"anyOf": [CLOSED, {"type": "object"}]}, False),
    ],
)
def test_which_schemas_are_strict(schema: dict[str, object], expected: bool) -> None:
    """Strict output is asked for only where every object is closed and complete."""
    assert strict_ready(schema) == expected


def test_importing_the_providers_imports_no_sdk() -> None:
    """The modules are cheap to import: SDKs and HTTP come when a provider is made."""
    code = (
        "import sys, youyou.adapters.openai, youyou.adapters.anthropic;"
        "print(sorted({'openai', 'anthropic', 'httpx2', 'pydantic', 'anyio'} & set(sys.modules)))"
    )

    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert out.strip() == "[]"

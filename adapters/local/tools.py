"""How a very small model is asked about tools: by examples, in a form that it can only continue (semantics 14).

Such a model cannot follow instructions about tools, but it can go on with a pattern. So a request becomes a page of
examples made from the tool list, ending where the model has to write; a grammar keeps what it writes well formed. The
examples of the tools whose words occur in the question stand last, where they weigh most. Pure.

    exchange = latest_exchange(request.messages)
    if exchange.result is None:                                     # nothing called yet for this input
        text = complete(decision_prompt(request.tools, exchange.input), decision_grammar(request.tools))
        call = parse_decision(text)                                 # None: answer in words
    else:
        text = complete(answer_prompt(exchange), ANSWER_GRAMMAR)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ...messages.chat import ToolSpec
from ...messages.content import FileBlock, TextBlock
from ...messages.history import Message, ToolCall, ToolResult, UserMessage
from .grammar import Grammar, literal

IN_WORDS = "answer"
"""What the model writes in place of a call when it wants none."""

ANSWER_GRAMMAR = 'root ::= " " [^ \\n] [^\\n]* "\\n"\n'
"""One line that is not blank."""

_MOST_TOOLS = 8
_INPUT_CHARS = 600
_RESULT_CHARS = 1500
_TALK = 0.5  # between the tools that share no word with the input and those that do
_TEXTS = ("red apples", "Kyoto", "green tea", "Lisbon")
_NUMBERS = (3, 26, 4, 7)
_COMMON = """
    a an and are at by for from how i in is it me my of on or please tell that the to what who you
"""

_ANSWERS = """\
Input: List the files
Call: list_files({})
Result: report.txt, photo.png
Answer: There are two files: report.txt and photo.png.

Input: Remind me to water the plants
Call: remind({"text": "water the plants"})
Result: ok
Answer: I will remind you to water the plants.

Input: Where is parcel 17?
Call: parcel({"number": 17})
Result: error: no such parcel
Answer: There is no such parcel.

Input: Weather in Lisbon?
Call: weather({"city": "Lisbon"})
Result: cloudy, 17 degrees
Answer: It is cloudy in Lisbon, 17 degrees.

"""


@attrs.frozen
class Exchange:
    """The newest user input and what was called for it so far."""

    input: str = ""
    call: ToolCall | None = None
    result: ToolResult | None = None


@attrs.frozen
class Decision:
    """A call that the model wrote."""

    tool_name: str
    arguments: Mapping[str, Any]


def one_line(text: str, most: int) -> str:
    """``text`` without line breaks, so that it cannot pose as another line of the page."""
    return " ".join(text.split())[:most]


def latest_exchange(messages: Sequence[Message]) -> Exchange:
    """What the next answer is about. Looks back no further than the newest user message."""
    call, result, calls = None, None, dict[str, ToolCall]()
    for message in reversed(messages):
        match message:
            case ToolResult() if result is None:
                result = message
            case ToolCall(call_id=call_id):
                calls[call_id] = message
            case UserMessage():
                call = None if result is None else calls.get(result.call_id)
                return Exchange(_words_of(message), call, result if call else None)
    return Exchange()


def _words_of(message: UserMessage) -> str:
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock | FileBlock))


def _call_text(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({json.dumps(arguments, ensure_ascii=False)})"


def decision_grammar(tools: Iterable[ToolSpec]) -> str:
    """A grammar for one call of one of ``tools``, or the choice of words."""
    grammar = Grammar()
    calls = [f"{literal(f' {tool.name}(')} {grammar.rule(tool.parameters)} {literal(')')}" for tool in tools]
    return grammar.text(f"({' | '.join([*calls, literal(f' {IN_WORDS}()')])}) {literal(chr(10))}")


def parse_decision(text: str) -> Decision | None:
    """The call in what the model wrote. None: it chose words, or was cut off in mid-call."""
    name, opened, rest = text.strip().partition("(")
    if not opened or not rest.startswith("{"):
        return None
    try:
        arguments, end = json.JSONDecoder().raw_decode(rest)
    except ValueError:
        return None
    return Decision(name, arguments) if rest[end:] == ")" else None


def shortlist(tools: Sequence[ToolSpec], question: str) -> list[ToolSpec]:
    """The tools to show, the likeliest last; the window of a small model has no room for many."""
    return sorted(tools, key=lambda tool: _likeness(question, tool))[-_MOST_TOOLS:]


def decision_prompt(tools: Sequence[ToolSpec], question: str) -> str:
    """A page of examples that ends with ``question`` and waits for a call."""
    groups: list[tuple[float, list[tuple[str, str]]]]
    groups = [(_likeness(question, tool), _examples(tool)) for tool in tools]
    groups.append((_TALK, [("Good morning!", f"{IN_WORDS}()")]))
    groups.sort(key=lambda group: group[0])
    lines = [f"Input: {asked}\nCall: {call}" for _, examples in groups for asked, call in examples]
    return "\n".join([*lines, f"Input: {one_line(question, _INPUT_CHARS)}\nCall:"])


def answer_prompt(exchange: Exchange) -> str:
    """A page of examples that ends with a call's result and waits for the answer in words."""
    call, result = exchange.call, exchange.result
    if call is None or result is None:
        raise ValueError("there is no result to answer with")
    called = one_line(_call_text(call.tool_name, call.arguments), _INPUT_CHARS)
    outcome = one_line(("error: " if result.is_error else "") + result.content, _RESULT_CHARS)
    return f"{_ANSWERS}Input: {one_line(exchange.input, _INPUT_CHARS)}\nCall: {called}\nResult: {outcome}\nAnswer:"


def _examples(tool: ToolSpec) -> list[tuple[str, str]]:
    name = tool.name.replace("_", " ")
    about = one_line(tool.description, 120).rstrip(".") or name
    return [
        _example(tool, 0, lambda given: f"{about}: {given}" if given else f"{about}?"),
        _example(tool, 1, lambda given: f"Please {name} {given}".strip()),
    ]


def _example(tool: ToolSpec, turn: int, ask: Callable[[str], str]) -> tuple[str, str]:
    arguments = _given_example(tool.parameters, turn)
    given = " and ".join(_spoken(value) for value in arguments.values())
    return ask(given), _call_text(tool.name, arguments)


def _given_example(schema: Mapping[str, Any], turn: int) -> Mapping[str, Any]:
    given = schema.get("examples")
    if given and isinstance(given[turn % len(given)], Mapping):
        return dict(given[turn % len(given)])
    made = _sample(schema, schema, turn, turn)
    return made if isinstance(made, Mapping) else {}


def _spoken(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sample(schema: Any, root: Mapping[str, Any], turn: int, place: int, depth: int = 0) -> Any:
    """A value that fits ``schema`` well enough to be an example. ``place`` varies it from one member to the next."""
    if not isinstance(schema, Mapping) or depth > 6:
        return _TEXTS[place % 4]
    if "const" in schema:
        return schema["const"]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][place % len(schema[key])]
    if "$ref" in schema:
        return _sample(root.get("$defs", {}).get(str(schema["$ref"]).rsplit("/", 1)[-1]), root, turn, place, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _sample(schema[key][0], root, turn, place, depth + 1)
    match schema.get("type", "object" if "properties" in schema else "string"):
        case "integer" | "number":
            return max(_NUMBERS[place % 4], schema.get("minimum", 0))
        case "boolean":
            return turn == 0
        case "null":
            return None
        case "array":
            return [_sample(schema.get("items"), root, turn, place, depth + 1)]
        case "object":
            needed = [key for key in schema.get("properties", {}) if key in schema.get("required", ())]
            return {
                key: _sample(schema["properties"][key], root, turn, turn + 2 * at, depth + 1)
                for at, key in enumerate(needed)
            }
    return _TEXTS[place % 4]


def _likeness(question: str, tool: ToolSpec) -> int:
    """How many words a question shares with a tool's name, description and parameters."""
    members: Mapping[str, Any] = tool.parameters.get("properties", {})
    takes_number = any(of.get("type") in ("integer", "number") for of in members.values() if isinstance(of, Mapping))
    words = _stems(f"{tool.name} {tool.description} {' '.join(members)}") | ({"0"} if takes_number else set())
    return len(_stems(question) & words)


def _stems(text: str) -> set[str]:
    """Words without their endings; any number is "0", and each character of a script without spaces is a word."""
    text = re.sub(r"\d+", "0", text.replace("_", " ").lower())
    words = re.findall(r"0|[\u3040-\u9fff]|[^\W\d_\u3040-\u9fff]+", text)
    return {_stem(word) for word in words if word not in _COMMON.split()}


def _stem(word: str) -> str:
    for ending in ("ing", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word

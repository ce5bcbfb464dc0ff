"""``--model scripted``: a model without a model, so that everything can be tried and tested anywhere.

It looks for a few words in what the user said and answers by rule, always the same: calls of the demonstration tools,
or text at the speed at which a model speaks. It refuses a request that no real provider would take (semantics 5).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

import trio

from ...core.history.sendability import sendability_problem
from ...core.ports.protocols import ModelCapabilities, ModelInfo
from ...messages.chat import ChatEvent, ChatRequest, Done, StopReason, TextDelta, TokenUsage
from ...messages.content import text_of
from ...messages.errors import ProviderError
from ...messages.history import Message, ToolCall, ToolResult, UserMessage

PAUSE = 0.02
"""Seconds between two words."""

_HELLO = """\
Hello! I am a **scripted model**: I follow rules, so that you can try everything without a real one.

- `what is 12 * 7, 3 ** 5 and the time?` - three tools concurrently
- `note: milk; bread; tea` - three notes, one after the other
- `which notes?` - reads them back
- `wait 20` - a slow tool: stop me with Ctrl-C, press it twice to cut the tool
- `tell me a story` - a long answer to interrupt
"""

_STORY = """\
## The lighthouse that learned to stop

There was a lighthouse that could do everything at once. It turned its lamp, rang its bell, wrote down the ships and \
counted the waves, and it was proud that it had never left anything unfinished.

One night the keeper called: *stop!* And the lighthouse stopped, all of it, in the middle of a turn. The lamp pointed \
at the sea, the bell hung in the air, a ship stood half written in the book. In the morning nobody knew whether it had \
passed.

So the keeper taught it three rules:

1. What has not begun need not begin.
2. What has begun may finish, if it does so in time.
3. Whatever happened is written down, also that something was cut short.

From then on the keeper could call *stop* at any hour. The light went out at once, the bell rang to its end, the book \
was closed with its last line, and in the morning everything that had happened stood in it, and nothing else.

They say that the waves still wait for somebody who counts them. But the lighthouse sleeps well.
"""

_EXPRESSION = re.compile(r"[-(]*\d[\d.]*(?:\s*(?:\*\*|//|[-+*/%^])\s*[-(]*\d[\d.]*\)*)+")
_WAIT = re.compile(r"\bwait\D{0,12}(\d+(?:\.\d+)?)", re.IGNORECASE)
_NOTE = re.compile(r"\b(?:note|remember)\b(?: for later)?:?[ \t]*([^\n]+)", re.IGNORECASE)


class DemoModel:
    """A `ModelProvider` with one model, ``scripted``."""

    id = "scripted"

    def models(self) -> Sequence[ModelInfo]:
        """The one model."""
        return (ModelInfo("scripted", "Scripted demonstration", 32_000, ModelCapabilities()),)

    def chat(self, request: ChatRequest) -> Played:
        """Answer by rule.

        Raises:
            ProviderError: the request cannot be sent to any model.
        """
        if problem := sendability_problem(request.messages):
            raise ProviderError(f"the request breaks the rules of a conversation: {problem}", retryable=False)
        asked = wanted_calls(request.messages, {spec.name for spec in request.tools})
        words = [] if asked else re.split(r"(?<=\s)(?=\S)", answer(request.messages))
        spent = TokenUsage(_size(request.messages), len(words) + 12 * len(asked))
        done = Done(spent, StopReason.TOOL_USE if asked else StopReason.END_TURN)
        return Played([*map(TextDelta, words), *asked, done])


class Played:
    """A stream of events that are known already; text comes at the speed at which a model speaks."""

    def __init__(self, events: Iterable[ChatEvent]) -> None:
        self._events = deque(events)

    async def __aenter__(self) -> Played:
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    def __aiter__(self) -> Played:
        return self

    async def __anext__(self) -> ChatEvent:
        if not self._events:
            raise StopAsyncIteration
        await trio.sleep(PAUSE if isinstance(self._events[0], TextDelta) else 0)
        return self._events.popleft()


def wanted_calls(messages: Sequence[Message], tools: set[str]) -> list[ToolCall]:
    """The calls that the newest user message asks for, if none has been answered since."""
    said, since = _newest(messages)
    if any(isinstance(message, ToolResult) for message in since):
        return []
    found = _calls(said)
    return [ToolCall("", name, arguments) for name, arguments in found if name in tools]


def _calls(said: str) -> list[tuple[str, dict[str, object]]]:
    lower = said.lower()
    if waiting := _WAIT.search(said):
        return [("wait", {"seconds": float(waiting[1])})]
    if noted := _NOTE.findall(said):
        texts = [text.strip(" .") for line in noted for text in line.split(";")]
        return [("add_note", {"text": text}) for text in texts if text]
    if "notes" in lower:
        return [("list_notes", {})]
    asked: list[tuple[str, dict[str, object]]] = [
        ("calculator", {"expression": found.strip()}) for found in _EXPRESSION.findall(said)
    ]
    return [*asked, ("clock", {})] if re.search(r"\b(time|date|clock)\b", lower) else asked


def answer(messages: Sequence[Message]) -> str:
    """What to say: the results since the newest user message, or what that message is about."""
    said, since = _newest(messages)
    results = [message for message in since if isinstance(message, ToolResult)]
    if results:
        lines = (f"- {result.content}".replace("\n", "\n  ") for result in results)
        return "Here is what came back:\n\n" + "\n".join(lines) + "\n"
    if re.search(r"\b(story|long)\b", said.lower()):
        return _STORY
    if re.search(r"\b(hello|hi|help)\b", said.lower()):
        return _HELLO
    turns = sum(isinstance(message, UserMessage) for message in messages)
    return f"You said: *{' '.join(said.split())[:200]}*. That was message {turns} of this conversation.\n"


def _newest(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The newest user message's text, and what came after it."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            return text_of(message.content), messages[index + 1 :]
    return "", messages


def _size(messages: Sequence[Message]) -> int:
    return sum(len(str(message)) for message in messages) // 4

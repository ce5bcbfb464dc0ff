"""A model without a model, so that the example runs anywhere: it calls the first tool on offer, then tells about it.

It reads a tool's schema like any model does, so that it can call tools that it never heard of.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import trio
from youyou import (
    ChatRequest,
    Done,
    ModelInfo,
    StopReason,
    TextBlock,
    TextDelta,
    TokenUsage,
    ToolCall,
    ToolResult,
    ToolSpec,
    UserMessage,
)

Schema = Mapping[str, Any]


class StandIn:
    """A `ModelProvider` that answers by rule. ``pause``: seconds between two words."""

    id = "stand-in"

    def __init__(self, pause: float = 0.03) -> None:
        self.pause = pause

    def models(self) -> Sequence[ModelInfo]:
        """The one model."""
        return (ModelInfo("stand-in", "Stand-in", 32_000),)

    async def chat(self, request: ChatRequest) -> AsyncIterator[TextDelta | ToolCall | Done]:
        """A call of the first tool, if none was answered since the newest user message; else some words."""
        prompt, results = since_newest(request)
        if request.tools and not results:
            await trio.sleep(self.pause)
            yield ToolCall("", request.tools[0].name, arguments_for(request.tools[0], prompt))
            yield Done(TokenUsage(len(prompt), 10), StopReason.TOOL_USE)
            return
        words = (results[-1] if results else f"You asked: {prompt}").split()[:60]
        for word in words:
            await trio.sleep(self.pause)
            yield TextDelta(word + " ")
        yield Done(TokenUsage(len(prompt), len(words)))


def since_newest(request: ChatRequest) -> tuple[str, list[str]]:
    """The newest user message's text, and what tools came back with after it."""
    newest = max(index for index, message in enumerate(request.messages) if isinstance(message, UserMessage))
    message = request.messages[newest]
    assert isinstance(message, UserMessage)
    said = "".join(block.text for block in message.content if isinstance(block, TextBlock))
    return said, [m.content for m in request.messages[newest:] if isinstance(m, ToolResult)]


def arguments_for(spec: ToolSpec, prompt: str) -> dict[str, Any]:
    """The smallest arguments that the schema allows, with the prompt wherever it asks for text."""
    made = example_of(spec.parameters, spec.parameters, prompt)
    assert isinstance(made, dict)
    return made


def example_of(schema: Schema, root: Schema, text: str) -> Any:
    """The smallest value that fits ``schema``."""
    if "$ref" in schema:
        return example_of(root["$defs"][schema["$ref"].rpartition("/")[2]], root, text)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: example_of(fields[name], root, text) for name in schema.get("required", ())}
        case "array":
            return [example_of(schema.get("items", {}), root, text)]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case _:
            return text

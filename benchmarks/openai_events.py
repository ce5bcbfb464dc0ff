"""The events of the Responses API that a model for openai-agents has to send. Needs the package `openai`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

ids = itertools.count()
USAGE = ResponseUsage(
    input_tokens=1,
    output_tokens=1,
    total_tokens=2,
    input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
    output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
)


class Answer:
    """One response: text first, then calls, then `completed()`."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.message_id = f"msg_{next(ids)}"
        self.said: list[str] = []
        self.output: list[Any] = []

    def text_begins(self) -> Iterator[Any]:
        """Before the first delta."""
        message = ResponseOutputMessage(
            id=self.message_id, type="message", role="assistant", status="in_progress", content=[]
        )
        yield ResponseOutputItemAddedEvent(
            type="response.output_item.added", item=message, output_index=0, sequence_number=next(self.numbers)
        )
        yield ResponseContentPartAddedEvent(
            type="response.content_part.added",
            item_id=self.message_id,
            output_index=0,
            content_index=0,
            part=ResponseOutputText(type="output_text", text="", annotations=[], logprobs=[]),
            sequence_number=next(self.numbers),
        )

    def delta(self, text: str) -> Any:
        """A piece of text."""
        self.said.append(text)
        return ResponseTextDeltaEvent(
            type="response.output_text.delta",
            item_id=self.message_id,
            output_index=0,
            content_index=0,
            delta=text,
            logprobs=[],
            sequence_number=next(self.numbers),
        )

    def text_ends(self) -> Iterator[Any]:
        """After the last delta."""
        text = "".join(self.said)
        part = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
        message = ResponseOutputMessage(
            id=self.message_id, type="message", role="assistant", status="completed", content=[part]
        )
        self.output.append(message)
        where = {"item_id": self.message_id, "output_index": 0, "content_index": 0}
        yield ResponseTextDoneEvent(
            type="response.output_text.done", text=text, logprobs=[], sequence_number=next(self.numbers), **where
        )
        yield ResponseContentPartDoneEvent(
            type="response.content_part.done", part=part, sequence_number=next(self.numbers), **where
        )
        yield ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=message, output_index=0, sequence_number=next(self.numbers)
        )

    def call(self, call_id: str, name: str, arguments: str) -> Iterator[Any]:
        """A whole call."""
        index = len(self.output)
        item = ResponseFunctionToolCall(
            id=f"fc_{call_id}", call_id=call_id, type="function_call", name=name, arguments=arguments
        )
        self.output.append(item)
        where = {"item_id": item.id, "output_index": index}
        yield ResponseOutputItemAddedEvent(
            type="response.output_item.added", item=item, output_index=index, sequence_number=next(self.numbers)
        )
        yield ResponseFunctionCallArgumentsDeltaEvent(
            type="response.function_call_arguments.delta",
            delta=arguments,
            sequence_number=next(self.numbers),
            **where,
        )
        yield ResponseFunctionCallArgumentsDoneEvent(
            type="response.function_call_arguments.done",
            arguments=arguments,
            name=name,
            sequence_number=next(self.numbers),
            **where,
        )
        yield ResponseOutputItemDoneEvent(
            type="response.output_item.done", item=item, output_index=index, sequence_number=next(self.numbers)
        )

    def completed(self) -> Any:
        """The end."""
        response = Response(
            id=f"resp_{next(ids)}",
            created_at=0,
            model="fake",
            object="response",
            output=self.output,
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=True,
            usage=USAGE,
            status="completed",
        )
        return ResponseCompletedEvent(type="response.completed", response=response, sequence_number=next(self.numbers))

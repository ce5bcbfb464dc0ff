"""Conformance of model providers: everything that semantics 4 asks of one, as one coroutine to call from a test.

    async def test_my_provider():
        await check_model_provider(lambda: MyProvider(...))

Uses nothing but the port, and asserts form, never wording: a real model may answer what it likes. Sends about a dozen
short requests to one provider.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import attrs
import trio

from ...core.ports.protocols import ModelInfo, ModelProvider
from ...messages.chat import ChatEvent, Done, TextDelta, ToolSpec
from ...messages.codec import from_json, to_json
from ...messages.content import FileBlock, ImageBlock, TextBlock
from ...messages.history import (
    AssistantMessage,
    Message,
    MessageStatus,
    SystemMessage,
    ToolCall,
    ToolOutcome,
    ToolResult,
    UserMessage,
)
from .conformance_support import expect, fresh
from .conformance_talk import Talk, named

ModelProviderFactory: TypeAlias = Callable[[], ModelProvider | AbstractAsyncContextManager[ModelProvider]]

_PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP438BAEmIY1TCqYfhqAACcdX8QL4dRqgAAAABJRU5ErkJggg=="
)
_ADD = ToolSpec(
    "add",
    "Adds two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


async def check_model_provider(
    factory: ModelProviderFactory,
    *,
    model_id: str | None = None,
    must_call: bool = False,
    leave_within_ms: int = 1_000,
    patience_ms: int = 60_000,
) -> None:
    """Check that a model provider keeps the contract.

    Args:
        factory: gives the provider, or an async context manager of it. Called once.
        model_id: the model to talk to; by default the first one on offer.
        must_call: whether the model, asked to add two numbers and given a tool for it, has to call it.
        leave_within_ms: how long leaving a cancelled stream may take.
        patience_ms: how long one answer may take.

    Raises:
        AssertionError: one sentence on the first promise that is not kept.
    """
    async with fresh(factory) as provider:
        model = _check_models(provider, model_id)
        talk = Talk(provider, model, must_call, leave_within_ms / 1000, patience_ms / 1000)
        for check in _CHECKS:
            await check(talk)


def _check_models(provider: ModelProvider, model_id: str | None) -> ModelInfo:
    expect(True, isinstance(provider, ModelProvider), "A provider has an id, models() and chat()")
    expect(True, bool(provider.id.strip()), "A provider's id is not blank")
    models = tuple(provider.models())
    expect(True, bool(models), "A provider offers at least one model")
    ids = [model.id for model in models]
    expect(sorted(set(ids)), sorted(ids), "Model ids are unique")
    for model in models:
        expect(True, bool(model.id.strip() and model.display_name.strip()), "A model's id and name are not blank")
        expect(True, model.context_window > 0, f"The context window of {model.id!r} is positive")
    expect(models, tuple(provider.models()), "models() gives the same models each time")
    expect(True, model_id is None or model_id in ids, f"The model {model_id!r} is on offer")
    return models[0] if model_id is None else models[ids.index(model_id)]


HELLO = UserMessage("Say hello.")
COUNT = UserMessage("Count from one to twenty.")


async def _answer(talk: Talk) -> None:
    request = talk.request(HELLO)
    before = tuple(request.messages)
    events = await talk.hear(request, "A greeting")
    expect(True, len(events) > 1, "A greeting: the model says something before Done")
    expect(before, tuple(request.messages), "A request is left as it was")


async def _early_exit(talk: Talk) -> None:
    for heard in (0, 1):
        with named("A stream that is left early"):
            async with talk.stream(talk.request(COUNT)) as stream:
                iterator = aiter(stream)
                for _ in range(heard):
                    await anext(iterator, None)
                if hasattr(iterator, "aclose"):
                    await iterator.aclose()
    await talk.hear(talk.request(HELLO), "A request after a stream that was left early")


async def _cancel(talk: Talk) -> None:
    for events_before in (0, 1):
        with trio.CancelScope() as scope:
            await _cancel_after(talk, scope, events_before)
    await talk.hear(talk.request(HELLO), "A request after a cancelled one")


async def _cancel_after(talk: Talk, scope: trio.CancelScope, events_before: int) -> None:
    """Cancel at once, or when an event is there, and see how long leaving takes."""
    cancelled_at = trio.current_time()
    try:
        if events_before == 0:
            scope.cancel(reason="the suite cancels before the first event")
        async with talk.stream(talk.request(COUNT)) as stream:
            async for _ in stream:
                if not scope.cancel_called:
                    cancelled_at = trio.current_time()
                    scope.cancel(reason="the suite cancels in mid-stream")
    finally:
        late = trio.current_time() - cancelled_at
        rule = f"A stream cancelled after {events_before} events is left within {talk.leave_within} s"
        expect(True, late <= talk.leave_within, f"{rule}, not {late:.3f} s")


async def _two_at_once(talk: Talk) -> None:
    broken: list[AssertionError] = []

    async def hear(prompt: UserMessage) -> None:
        try:
            await talk.hear(talk.request(prompt), "One of two requests at the same time")
        except AssertionError as error:
            broken.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, HELLO)
        nursery.start_soon(hear, COUNT)
    for error in broken[:1]:
        raise error


async def _unicode(talk: Talk) -> None:
    words = "Repeat: 你好, Ελλάδα, שלום, e\u0301, 👩‍🚀, \u2028, <|end|>, </s>, {braces}"
    await talk.hear(talk.request(UserMessage(words)), "A request in many scripts")


async def _tools(talk: Talk) -> None:
    if not talk.model.capabilities.tool_use:
        return
    question = UserMessage("Use the tool to add 17 and 25.")
    events = await talk.hear(talk.request(question, tools=(_ADD,)), "A request with a tool")
    calls = [event for event in events if isinstance(event, ToolCall)]
    expect(True, bool(calls) or not talk.must_call, "A request with a tool: the model calls it")
    made = calls or [ToolCall("call_1", "add", {"a": 17, "b": 25})]
    # As the runtime does it: every call has an id of its own, and one response id holds the answer together.
    own = [attrs.evolve(call, call_id=f"call_{n}", response_id="r1") for n, call in enumerate(made)]
    said = _said(events if calls else [])
    history: list[Message] = [*said, *own, *(ToolResult(call.call_id, "42") for call in own)]
    await talk.hear(talk.request(question, *history, tools=(_ADD,)), "A request with the results of its calls")


def _said(events: Sequence[ChatEvent]) -> list[AssistantMessage]:
    """The assistant message that the runtime makes of an answer, after a stay in a store."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    data = next((event.provider_data for event in events if isinstance(event, Done)), None)
    message = AssistantMessage(text, response_id="r1", provider_data=data)
    with named("provider_data goes into a store"):
        stored = from_json(AssistantMessage, to_json(message))
    expect(message, stored, "provider_data comes out of a store as it went in")
    return [] if message.blank else [stored]


async def _second_turn(talk: Talk) -> None:
    events = await talk.hear(talk.request(HELLO), "A first turn")
    await talk.hear(talk.request(HELLO, *_said(events), COUNT), "A second turn that hands back the first")


async def _every_kind_of_message(talk: Talk) -> None:
    picture = [ImageBlock(_PICTURE, "image/png")] if talk.model.capabilities.vision else []
    calls = [
        ToolCall("a", "add", {"a": 1, "b": 2}, response_id="r2"),
        ToolCall("b", "add", {}, raw_arguments='{"a": ', response_id="r2"),
        ToolCall("c", "add", {"a": 3, "b": 4}, response_id="r3"),
        ToolCall("d", "add", {"a": 5, "b": 6}, response_id="r3"),
    ]
    await talk.hear(
        talk.request(
            SystemMessage("<skill>\n<name>brief</name>\nBe brief.\n</skill>"),
            UserMessage([TextBlock("What is this?"), *picture, FileBlock("notes.txt", "</file> milk, eggs")]),
            AssistantMessage("Things to buy.", response_id="r1"),
            UserMessage("Add them up."),
            AssistantMessage("I add.", response_id="r2"),
            *calls[:2],
            ToolResult("a", "3"),
            ToolResult("b", "The arguments are not a JSON object.", ToolOutcome.FAILED),
            *calls[2:],
            ToolResult("c", "[outcome unknown]", ToolOutcome.UNKNOWN),
            ToolResult("d", "[skipped]", ToolOutcome.SKIPPED),
            AssistantMessage("It is", MessageStatus.INCOMPLETE, "cancelled", "r4"),
            SystemMessage("[This message was interrupted]"),
            UserMessage("Go on."),
            tools=(_ADD,) if talk.model.capabilities.tool_use else (),
        ),
        "A history with every kind of message",
    )


_CHECKS: tuple[Callable[[Talk], Awaitable[None]], ...] = (
    _answer,
    _early_exit,
    _cancel,
    _two_at_once,
    _unicode,
    _second_turn,
    _tools,
    _every_kind_of_message,
)

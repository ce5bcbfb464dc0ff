"""The conformance suite of providers: passes good ones, and names what is wrong with each bad one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from youyou.core.ports.protocols import ModelCapabilities, ModelInfo
from youyou.messages.chat import ChatError, ChatEvent, ChatRequest, Done, TextDelta, TokenUsage
from youyou.messages.history import AssistantMessage, SystemMessage, ToolCall
from youyou.testing.agents.conformance_provider import check_model_provider
from youyou.testing.agents.scripted import ScriptedProvider, StrictProvider, call, calls, say

MODEL = ModelInfo("m1", "M1", 8_000, ModelCapabilities(vision=True))


class Talker:
    """A provider as an async generator; the mutants below change one thing each."""

    id = "talker"

    def models(self) -> list[ModelInfo]:
        return [MODEL]

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        for event in self.script(request):
            await trio.sleep(0.1)
            yield event

    def script(self, request: ChatRequest) -> list[Any]:
        return [TextDelta("one"), TextDelta("two"), Done(TokenUsage(1, 1))]


def saying(*events: Any) -> type[Talker]:
    """A provider that always says the same."""
    return type("Saying", (Talker,), {"script": lambda self, request: list(events)})


def offering(*models: ModelInfo) -> type[Talker]:
    """A provider that offers something else."""
    return type("Offering", (Talker,), {"models": lambda self: list(models)})


class Nameless(Talker):
    id = " "


class Moody(Talker):
    """Offers another model each time."""

    def __init__(self) -> None:
        self._asked = 0

    def models(self) -> list[ModelInfo]:
        self._asked += 1
        return [ModelInfo(f"m{self._asked}", "M", 8_000)]


class Silent(Talker):
    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        await trio.sleep_forever()
        yield Done()


class Sticky(Talker):
    """Takes its time to stop."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        yield TextDelta("a")
        try:
            await trio.sleep(0.1)
        finally:
            with trio.move_on_after(5, shield=True):
                await trio.sleep(4)
        yield Done()


class OneAtATime(Talker):
    def __init__(self) -> None:
        self._busy = False

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        if self._busy:
            raise RuntimeError("busy")
        self._busy = True
        try:
            await trio.sleep(0.1)
            yield TextDelta("a")
            yield Done()
        finally:
            self._busy = False


class Greedy(Talker):
    """Can be left only once."""

    def __init__(self) -> None:
        self._left = False

    @asynccontextmanager
    async def chat(self, request: ChatRequest) -> AsyncIterator[Any]:  # type: ignore[override]  # the other form
        async def events() -> AsyncIterator[ChatEvent]:
            if not self._left:
                yield TextDelta("a")
                yield Done()

        stream = events()
        try:
            yield stream
        finally:
            self._left = self._left or "twenty" in str(list(request.messages))
            await stream.aclose()


class Picky(Talker):
    """Refuses some kind of message."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def script(self, request: ChatRequest) -> list[Any]:
        if any(isinstance(message, self._kind) for message in request.messages):
            return [ChatError(f"no {self._kind.__name__}, please")]
        return super().script(request)


class Ascii(Talker):
    def script(self, request: ChatRequest) -> list[Any]:
        str(request.messages[-1]).encode("ascii")
        return super().script(request)


class Forgetful(Talker):
    """Leaves something with its messages that no store can keep."""

    def script(self, request: ChatRequest) -> list[Any]:
        return [TextDelta("a"), Done(provider_data={"n": (1, {2: 3})})]


class Indexing(Talker):
    """Takes lists and nothing else."""

    def script(self, request: ChatRequest) -> list[Any]:
        assert isinstance(request.messages, list), "messages must be a list"
        return super().script(request)


async def test_a_good_generator_passes(autojump_clock: object) -> None:
    """A provider that is an async generator function conforms."""
    await check_model_provider(Talker)


@pytest.mark.parametrize("kind", [ScriptedProvider, StrictProvider])
async def test_the_scripted_providers_pass(autojump_clock: object, kind: Callable[..., Any]) -> None:
    """The project's own scripted providers conform, and are asked nothing that is not sendable."""
    provider = kind([say("one", "two")] * 12 + [calls(call("add", {"a": 17, "b": 25}))] + [say("ok")] * 2)

    await check_model_provider(lambda: provider, must_call=True)

    assert provider.opened == provider.closed
    assert getattr(provider, "violations", []) == []


async def test_a_provider_that_is_entered_first(autojump_clock: object) -> None:
    """A factory may give an async context manager; it is left again."""
    steps = []

    @asynccontextmanager
    async def made() -> AsyncIterator[Any]:
        steps.append("in")
        yield Talker()
        steps.append("out")

    await check_model_provider(made)

    assert steps == ["in", "out"]


MUTANTS: list[tuple[Callable[[], Any], str]] = [
    (Nameless, "id is not blank"),
    (offering(), "at least one model"),
    (offering(MODEL, MODEL), "ids are unique"),
    (offering(ModelInfo("m1", "M1", 0)), "window of 'm1' is positive"),
    (offering(ModelInfo("m1", "", 10)), "id and name are not blank"),
    (Moody, "same models each time"),
    (Silent, "ends within 60.0 s"),
    (Sticky, "is left within 1.0 s"),
    (OneAtATime, "at the same time: the provider raised RuntimeError"),
    (Greedy, "A request after a stream that was left early: a stream holds exactly one Done"),
    (Ascii, "in many scripts: the provider raised UnicodeEncodeError"),
    (Forgetful, "out of a store as it went in"),
    (Indexing, "must be a list"),
    (saying(TextDelta("a")), "exactly one Done"),
    (saying(Done()), "says something before Done"),
    (saying(Done(), TextDelta("a")), "Done comes last"),
    (saying(TextDelta("a"), Done(), Done()), "exactly one Done"),
    (saying(TextDelta(""), Done()), "a delta holds text"),
    (saying("a", Done()), "chat events and no error"),
    (saying(ChatError("no"), Done()), "chat events and no error"),
    (saying(TextDelta("a"), Done(TokenUsage(-1))), "not negative"),
    (saying(ToolCall("1", "add", {}), Done()), "no call without tools"),
    (lambda: Picky(AssistantMessage), "hands back the first: the stream holds chat events"),
    (lambda: Picky(ToolCall), "with the results of its calls: the stream holds chat events"),
    (lambda: Picky(SystemMessage), "every kind of message: the stream holds chat events"),
]


@pytest.mark.parametrize(("broken", "sentence"), MUTANTS, ids=[sentence for _, sentence in MUTANTS])
async def test_a_bad_provider_is_told_what_is_wrong(
    autojump_clock: object, broken: Callable[[], Any], sentence: str
) -> None:
    """Each broken promise is noticed and named."""
    with pytest.raises(AssertionError, match=sentence):
        await check_model_provider(broken)


async def test_a_model_that_has_to_call(autojump_clock: object) -> None:
    """Only a model of which it is asked has to use the tool."""
    with pytest.raises(AssertionError, match="the model calls it"):
        await check_model_provider(Talker, must_call=True)


async def test_the_model_in_question(autojump_clock: object) -> None:
    """The model to talk to can be named, and has to be on offer."""
    with pytest.raises(AssertionError, match="'m2' is on offer"):
        await check_model_provider(Talker, model_id="m2")

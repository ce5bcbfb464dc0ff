"""Content that a provider refuses, or that does not fit, locks no session and destroys nothing (semantics 6)."""

from __future__ import annotations

import base64

import pytest
import youyou as y
from youyou.testing import InMemorySessionStorage

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 30).decode()
LOOK = y.UserInput((y.TextBlock("look"), y.ImageBlock(PNG, "image/png")))


def holds_image(request):
    """Whether the request holds an image."""
    return any(
        isinstance(block, y.ImageBlock)
        for message in request.messages
        if isinstance(message, y.UserMessage)
        for block in message.content
    )


def refusing(model, code, text="the server refuses this"):
    """A model that refuses every image so, and is fine otherwise."""

    async def answer(request):
        if holds_image(request):
            yield y.ChatError(text, code, False)
        else:
            yield y.TextDelta("fine")
            yield y.Done(None)

    return model(answer)


async def told(session, *contents):
    """The statuses of these turns."""
    return [(await (await session.send_message(content)).result()).status for content in contents]


async def test_content_that_was_refused_stays_away_after_a_resume(building, model):
    """One turn fails; every later one, in this life and the next, completes."""
    store, provider = InMemorySessionStorage(), refusing(model, y.ErrorCode.CONTENT_NOT_SUPPORTED)

    def agent():
        return building(provider).register_session_storage(store).build()

    async with agent() as a, await a.new_session() as session:
        live = await told(session, LOOK, "without it")
    asked = len(provider.requests)
    async with agent() as a, await a.resume_session(session.id) as session:
        resumed = await told(session, "again", "and again")

    assert (["failed", "completed"], ["completed", "completed"]) == (live, resumed)
    assert [False, False] == [holds_image(request) for request in provider.requests[asked:]]


async def test_content_of_an_earlier_turn_is_refused_as_well(building, model):
    """What is replaced is what the refused request held, from whichever turn."""
    refusing_now = []

    async def answer(request):
        if refusing_now and holds_image(request):
            yield y.ChatError("no images", y.ErrorCode.CONTENT_NOT_SUPPORTED, False)
        else:
            yield y.TextDelta("fine")
            yield y.Done(None)

    async with building(model(answer)).build() as agent, await agent.new_session() as session:
        first = await told(session, LOOK)
        refusing_now.append(True)
        later = await told(session, "more", "and more")

    assert (["completed"], ["failed", "completed"]) == (first, later)


@pytest.mark.parametrize(
    "text", ["HTTP 401: invalid api key", "HTTP 429: quota exceeded"], ids=["unauthorised", "quota"]
)
async def test_an_error_about_something_else_throws_no_image_away(building, model, text):
    """The model sees the image once the key is right."""

    async def answer(request):
        if len(provider.requests) == 1:
            raise y.ProviderError(text, retryable=False)
        yield y.TextDelta("fine")
        yield y.Done(None)

    provider = model(answer)
    async with building(provider).build() as agent, await agent.new_session() as session:
        statuses = await told(session, LOOK, "the key is right now")

    assert (["failed", "completed"], True) == (statuses, holds_image(provider.requests[-1]))


async def test_an_unclear_error_is_tried_once_without_the_content_and_that_decides(building, model):
    """The turn completes by the second try, and later requests leave the content out."""
    provider = refusing(model, y.ErrorCode.PROVIDER_ERROR, "HTTP 400: bad request")
    async with building(provider).build() as agent, await agent.new_session() as session:
        statuses = await told(session, LOOK, "more")

    assert ["completed", "completed"] == statuses
    assert [True, False, False] == [holds_image(request) for request in provider.requests]


async def test_a_message_larger_than_the_window_is_refused_before_it_is_stored(building, model):
    """Earlier turns stay, and the error names both figures."""
    store = InMemorySessionStorage()

    async def answer(request):
        yield y.TextDelta("ok")
        yield y.Done(None)

    provider = model(answer, window=8_000)
    builder = building(provider).register_session_storage(store)
    async with builder.build() as agent, await agent.new_session() as session:
        await told(session, "the code is 417", "the word is blue")
        before = store.events(session.id)
        with pytest.raises(y.AgentError, match=r"INVALID_INPUT.*8.?000"):
            await session.send_message("pasted " * 20_000)

        assert before == store.events(session.id)
        assert 4 == len(session.history)

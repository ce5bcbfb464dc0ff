"""The scripted providers: what a test may rely on."""

from __future__ import annotations

import pytest
import trio
from youyou.core.ports.protocols import ModelProvider
from youyou.messages.chat import ChatEvent, ChatRequest, Done, StopReason, SystemPrompt, TextDelta
from youyou.messages.errors import ProviderError
from youyou.messages.history import Message, ToolCall, ToolOutcome, ToolResult, UserMessage
from youyou.testing.agents.scripted import ScriptedProvider, StrictProvider, UnsendableRequest, call, calls, say


def request(*messages: Message) -> ChatRequest:
    return ChatRequest("scripted", SystemPrompt(), list(messages or (UserMessage("hello"),)))


async def collect(provider: ScriptedProvider, asked: ChatRequest) -> list[ChatEvent]:
    async with provider.chat(asked) as stream:
        return [event async for event in stream]


def test_it_is_a_model_provider() -> None:
    """The scripted provider fits the port it stands in for."""
    assert isinstance(ScriptedProvider([]), ModelProvider)


async def test_rounds_are_played_in_order() -> None:
    """Each request gets the next round, event by event."""
    provider = ScriptedProvider([say("a", "b"), calls("now", call("add", {"a": 1}, id="c1"), text="so")])

    first, second = await collect(provider, request()), await collect(provider, request())

    assert [TextDelta("a"), TextDelta("b"), Done()] == first
    wanted = [ToolCall("now", "now", {}), ToolCall("c1", "add", {"a": 1}), Done(None, StopReason.TOOL_USE)]
    assert [TextDelta("so"), *wanted] == second
    assert provider.rounds_left == 0


async def test_a_float_is_silence(autojump_clock: object) -> None:
    """A number in a round is waited for, in seconds."""
    provider = ScriptedProvider([[2, TextDelta("a"), 0.5, Done()]])
    start = trio.current_time()

    await collect(provider, request())

    assert trio.current_time() - start == 2.5


async def test_an_exception_is_raised_as_it_is() -> None:
    """An exception in a round comes out of the stream, the same object."""
    boom = ConnectionResetError("gone")
    provider = ScriptedProvider([[TextDelta("a"), boom]])

    with pytest.raises(ConnectionResetError) as caught:
        await collect(provider, request())

    assert boom is caught.value
    assert (provider.opened, provider.closed) == (1, 1)


async def test_a_round_without_done_just_ends() -> None:
    """Nothing is added to a round: a missing `Done` stays missing."""
    assert [TextDelta("a")] == await collect(ScriptedProvider([[TextDelta("a")]]), request())


async def test_a_request_too_many_says_so() -> None:
    """A request without a round is a provider error that is not worth a retry."""
    provider = ScriptedProvider([say("a")])
    await collect(provider, request())

    with pytest.raises(ProviderError, match="request 2 came") as caught:
        await collect(provider, request())

    assert not caught.value.retryable
    assert (provider.opened, provider.closed) == (2, 2)


async def test_requests_are_kept_as_they_were() -> None:
    """What the runtime appends later does not appear in an earlier request."""
    growing: list[Message] = [UserMessage("one")]
    provider = ScriptedProvider([say("a")])

    await collect(provider, ChatRequest("scripted", SystemPrompt(), growing))
    growing.append(UserMessage("two"))

    assert [(UserMessage("one"),)] == [seen.messages for seen in provider.requests]


async def test_a_cancel_closes_the_stream(autojump_clock: object) -> None:
    """A stream that is cancelled while silent counts as closed."""
    provider = ScriptedProvider([[TextDelta("a"), 100.0, Done()]])

    with trio.move_on_after(1) as scope:
        await collect(provider, request())

    assert scope.cancelled_caught
    assert (provider.opened, provider.closed) == (1, 1)


async def test_the_strict_one_refuses_a_call_without_result() -> None:
    """A request with an unanswered call is refused, noted, and uses up no round."""
    provider = StrictProvider([say("a")])

    with pytest.raises(UnsendableRequest):
        await collect(provider, request(UserMessage("hello"), call("add"), UserMessage("and?")))

    assert len(provider.violations) == 1
    assert provider.rounds_left == 1


async def test_the_strict_one_plays_a_sound_request() -> None:
    """A request in which every call has its result is answered."""
    provider = StrictProvider([say("a")])
    asked = request(UserMessage("hello"), call("add", id="c1"), ToolResult("c1", "3", ToolOutcome.OK))

    assert [TextDelta("a"), Done()] == await collect(provider, asked)
    assert provider.violations == []

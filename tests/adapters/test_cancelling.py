"""Streams that nobody listens to any more, of all three APIs: left at once, closed, and gone from the pool."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from youyou.messages.chat import TextDelta

from .dialects import Dialect, Say


def opening(dialect: Dialect, *pieces: str) -> bytes:
    """An answer that has begun."""
    return "".join(dialect.parts(Say(*pieces))).encode()


def pool_of(provider: Any) -> list[Any]:
    """The connections of the provider's HTTP client that are not ready for another request."""
    connections = provider._endpoint.holder.get()._client._transport._pool.connections
    return [connection for connection in connections if not connection.is_idle()]


async def hang_up_in_mid_stream(server: Any, provider: Any, dialect: Dialect, request: Any) -> float:
    """Cancel once a first piece came and the server is silent; how long leaving took."""
    server.say(opening(dialect, "a"), "stall")
    stalls, hung_up = server.stalled, server.hung_up
    heard = trio.Event()

    async def listen() -> None:
        async with provider.chat(request) as stream:
            async for _ in stream:
                heard.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await server.until(lambda: server.stalled > stalls)
        await heard.wait()
        start = trio.current_time()
        nursery.cancel_scope.cancel(reason="enough")
    elapsed = trio.current_time() - start
    with trio.fail_after(1):
        await server.until(lambda: server.hung_up > hung_up)
    return elapsed


async def test_cancel_in_mid_stream(server: Any, provider: Any, dialect: Dialect, ask: Any) -> None:
    """A cancelled stream is left within 50 ms, the server sees the close, and no connection stays in the pool."""
    assert await hang_up_in_mid_stream(server, provider, dialect, ask()) < 0.05
    assert pool_of(provider) == []


@pytest.mark.long
async def test_cancel_in_mid_stream_a_hundred_times(server: Any, provider: Any, dialect: Dialect, ask: Any) -> None:
    """A hundred cancelled streams in a row: each left within 50 ms, each close seen, nothing left in the pool."""
    slowest = max([await hang_up_in_mid_stream(server, provider, dialect, ask()) for _ in range(100)])

    assert slowest < 0.05
    assert pool_of(provider) == []


@pytest.mark.parametrize("pieces", [(), ("stall",)])
async def test_leaving_early_closes_the_connection(
    server: Any, provider: Any, dialect: Dialect, ask: Any, pieces: Any
) -> None:
    """A reader that breaks off, with more already there or not, leaves no connection and no generator behind."""
    server.say(opening(dialect, "a", "b", "c"), *pieces)

    async with provider.chat(ask()) as stream:
        async for event in stream:
            assert event == TextDelta("a")
            break

    assert pool_of(provider) == []


async def test_a_reader_cancelled_between_two_events(server: Any, provider: Any, dialect: Dialect, ask: Any) -> None:
    """A cancel that strikes while the reader is busy with an event closes the stream just as well."""
    server.say(opening(dialect, "a", "b"), "stall")

    with trio.CancelScope() as scope:
        async with provider.chat(ask()) as stream:
            async for _ in stream:
                scope.cancel(reason="enough")
                await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    await server.until(lambda: server.hung_up == 1)
    assert pool_of(provider) == []


async def test_the_readers_own_error_comes_through_a_cancel(
    server: Any, provider: Any, dialect: Dialect, ask: Any
) -> None:
    """An exception of the reader is not replaced by `Cancelled` while the stream closes in a cancelled scope."""
    server.say(opening(dialect, "a"), "stall")

    with pytest.raises(ZeroDivisionError), trio.CancelScope() as scope:
        async with provider.chat(ask()) as stream:
            await anext(stream)
            scope.cancel(reason="enough")
            raise ZeroDivisionError


@pytest.mark.parametrize("status", [200, 400])
async def test_cancel_before_the_answer_is_there(
    server: Any, provider: Any, dialect: Dialect, ask: Any, status: int
) -> None:
    """A cancel while the server still thinks, or while its refusal is arriving, leaves no connection either."""
    server.say("stall", status=status)

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream_all, provider, ask())
            await server.until(lambda: server.stalled == 1)
            scope.cancel(reason="enough")

    await server.until(lambda: server.hung_up == 1)
    assert pool_of(provider) == []


async def stream_all(provider: Any, request: Any) -> None:
    async with provider.chat(request) as stream:
        async for _ in stream:
            pass

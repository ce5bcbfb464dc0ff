"""trio-websocket under the kit: an echo server and its client over a pair of memory streams.

pip install . trio-websocket
python benchmarks/others/websocket_echo.py
"""

from __future__ import annotations

import trio
import trio.testing
from trio_websocket import ConnectionClosed, wrap_client_stream, wrap_server_stream
from youyou.testing import Simulation, explore, sweep


async def serve(stream: trio.abc.Stream, sim: Simulation) -> None:
    """Accept, and send every message back until the client closes; close the stream however it ends."""
    with sim.scope("server"):
        async with stream, trio.open_nursery() as nursery:
            request = await wrap_server_stream(nursery, stream)
            async with await request.accept() as connection:
                try:
                    while True:
                        await connection.send_message(await connection.get_message())
                except ConnectionClosed:
                    sim.note("server: the client has gone")


async def echo(sim: Simulation) -> None:
    """Two messages there and back, then a close handshake."""
    sim.shutdown_within(5)
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, theirs, sim)
        try:
            async with trio.open_nursery() as inner, await wrap_client_stream(inner, ours, "server", "/") as client:
                for word in ("tea", "milk"):
                    await client.send_message(word)
                    assert word == await client.get_message()
        except* ConnectionClosed:
            sim.note("client: the server has gone")


async def ping_twice(sim: Simulation) -> None:
    """A ping is given up, and the next one uses the same payload."""
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, theirs, sim)
        async with trio.open_nursery() as inner, await wrap_client_stream(inner, ours, "server", "/") as connection:
            with sim.scope("ping"):
                await connection.ping(b"tick")
            await connection.ping(b"tick")


def main() -> None:
    """Print what is found."""
    print(sweep(echo), end="\n\n")
    print(sweep(echo, cancel="ctrl-c"), end="\n\n")
    print(explore(echo, schedules=200), end="\n\n")
    print(sweep(echo, cancel="server"), end="\n\n")
    print(sweep(ping_twice, cancel="ping"))


if __name__ == "__main__":
    main()

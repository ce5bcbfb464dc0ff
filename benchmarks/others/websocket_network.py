"""trio-websocket in a simulated network: its own client and server over TCP, no test double of either.

pip install . trio-websocket
python benchmarks/others/websocket_network.py
"""

from __future__ import annotations

import trio
from trio_websocket import ConnectionClosed, WebSocketRequest, open_websocket_url, serve_websocket
from youyou.testing import Simulation, explore, sweep


async def handler(request: WebSocketRequest) -> None:
    """Send every message back in capitals."""
    connection = await request.accept()
    try:
        while True:
            await connection.send_message((await connection.get_message()).upper())
    except ConnectionClosed:
        pass


async def one_message(sim: Simulation) -> None:
    """A message there and back; afterwards no socket is open."""
    net = sim.network()
    async with trio.open_nursery() as nursery:
        with net.on("server"):
            await nursery.start(serve_websocket, handler, "0.0.0.0", 80, None)
        with sim.scope("client"):
            async with open_websocket_url("ws://server/") as connection:
                await connection.send_message("hello")
                assert await connection.get_message() == "HELLO"
        nursery.cancel_scope.cancel()
    assert net.sockets == [], "a socket was left open"


if __name__ == "__main__":
    print(explore(one_message, schedules=100))
    print(sweep(one_message, cancel="client"))

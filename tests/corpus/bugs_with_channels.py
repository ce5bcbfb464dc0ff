"""What gets lost between tasks: replies, buffers, ends, wake-ups."""

from __future__ import annotations

from contextlib import suppress

import trio
from planted import by_exploring, by_sweep, mended, planted
from youyou.testing import Simulation

Request = tuple[int, trio.MemorySendChannel[int]]
GONE = (trio.WouldBlock, trio.EndOfChannel)


async def ask(requests: trio.MemorySendChannel[Request], number: int) -> None:
    """One question; an answer, or the news that none will come."""
    reply, answer = trio.open_memory_channel[int](1)
    with requests, suppress(trio.BrokenResourceError, trio.EndOfChannel):
        await requests.send((number, reply))
        await answer.receive()


@planted(by_sweep(cancel="server"), "deadlock", "yy1-a2.server", at="async for number, reply in receive:")
async def reply_lost(sim: Simulation) -> None:
    """The server ends with a question in its hand or in its queue, and whoever asked waits forever."""
    send, receive = trio.open_memory_channel[Request](5)

    async def server() -> None:
        with sim.scope("server"), receive:
            async for number, reply in receive:
                await trio.sleep(1)
                reply.send_nowait(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        nursery.start_soon(ask, send.clone(), 1)
        nursery.start_soon(ask, send, 2)


@mended(reply_lost)
async def reply_closed(sim: Simulation) -> None:
    """Close the reply of the question at work, and then of all that are still queued."""
    send, receive = trio.open_memory_channel[Request](5)

    async def server() -> None:
        with sim.scope("server"), receive:
            try:
                async for number, reply in receive:
                    with reply:
                        await trio.sleep(1)
                        reply.send_nowait(number)
            finally:
                with suppress(*GONE):
                    while True:
                        receive.receive_nowait()[1].close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(server)
        nursery.start_soon(ask, send.clone(), 1)
        nursery.start_soon(ask, send, 2)


async def deliver(send: trio.MemorySendChannel[int], sent: list[int]) -> None:
    """Send three numbers and note those that were accepted."""
    with send, suppress(trio.BrokenResourceError):
        for number in (1, 2, 3):
            await send.send(number)
            sent.append(number)


@planted(by_sweep(cancel="consumer"), "at_end", "yy1-a2.consumer", at="async for number in receive:")
async def buffer_dropped(sim: Simulation) -> None:
    """What is buffered when the last receiver closes is gone, and the sender thinks that it was delivered."""
    send, receive = trio.open_memory_channel[int](5)
    sent: list[int] = []
    handled: list[int] = []
    sim.at_end(lambda: sent == handled, "what was accepted is handled")

    async def consumer() -> None:
        with sim.scope("consumer"), receive:
            async for number in receive:
                handled.append(number)
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(consumer)
        nursery.start_soon(deliver, send, sent)


@mended(buffer_dropped)
async def buffer_drained(sim: Simulation) -> None:
    """Take out what is left before closing."""
    send, receive = trio.open_memory_channel[int](5)
    sent: list[int] = []
    handled: list[int] = []
    sim.at_end(lambda: sent == handled, "what was accepted is handled")

    async def consumer() -> None:
        with sim.scope("consumer"), receive:
            try:
                async for number in receive:
                    handled.append(number)
                    await trio.sleep(1)
            finally:
                with suppress(*GONE):
                    while True:
                        handled.append(receive.receive_nowait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(consumer)
        nursery.start_soon(deliver, send, sent)


@planted(by_sweep(cancel="consumer"), "at_end", "yy1-a3.consumer", at="await trio.sleep(1)")
async def item_lost_in_hand(sim: Simulation) -> None:
    """An item was taken and not yet noted when the cancel came."""
    send, receive = trio.open_memory_channel[int](0)
    sent: list[int] = []
    known: list[int] = []
    sim.at_end(lambda: sent == known, "what was taken is known")

    async def consumer() -> None:
        with sim.scope("consumer"), receive:
            async for number in receive:
                await trio.sleep(1)
                known.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(consumer)
        nursery.start_soon(deliver, send, sent)


@mended(item_lost_in_hand)
async def item_noted_when_taken(sim: Simulation) -> None:
    """Note it before the first await."""
    send, receive = trio.open_memory_channel[int](0)
    sent: list[int] = []
    known: list[int] = []
    sim.at_end(lambda: sent == known, "what was taken is known")

    async def consumer() -> None:
        with sim.scope("consumer"), receive:
            async for number in receive:
                known.append(number)
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(consumer)
        nursery.start_soon(deliver, send, sent)


@planted(by_sweep(cancel="worker"), "deadlock", "yy1-a2.worker", at="await trio.sleep(1)")
async def clone_left_open(sim: Simulation) -> None:
    """A cancelled worker does not close its end, and the receiver waits for what nobody will send."""
    send, receive = trio.open_memory_channel[int](0)

    async def worker() -> None:
        with sim.scope("worker"):
            await trio.sleep(1)
            await send.send(1)
            send.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker)
        async for number in receive:
            sim.note(f"{number} received")


@mended(clone_left_open)
async def clone_closed(sim: Simulation) -> None:
    """Hold the end in a ``with`` block."""
    send, receive = trio.open_memory_channel[int](0)

    async def worker() -> None:
        with sim.scope("worker"), send:
            await trio.sleep(1)
            await send.send(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker)
        async for number in receive:
            sim.note(f"{number} received")


class Screen:
    """Shows events, in its own time."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def show(self, event: str) -> None:
        """A checkpoint."""
        await trio.lowlevel.checkpoint()
        self.shown.append(event)


@planted(by_sweep(cancel=None, faults=("slow",)), "at_end", "yy1-f1.slow", at="await port.show(event)")
async def end_not_announced(sim: Simulation) -> None:
    """Events that do not fit into a slow observer's buffer are dropped, the last one as well."""
    screen = Screen()
    port = sim.port("screen", screen)
    send, receive = trio.open_memory_channel[str](1)
    sim.at_end(lambda: screen.shown[-1:] == ["end"], "the end is shown")

    async def observer() -> None:
        async for event in receive:
            await port.show(event)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(observer)
        with send:
            for event in ("begin", "middle", "end"):
                await trio.sleep(1)
                with suppress(trio.WouldBlock):
                    send.send_nowait(event)


@mended(end_not_announced)
async def end_waits_for_room(sim: Simulation) -> None:
    """Drop what may be dropped, and wait with the end."""
    screen = Screen()
    port = sim.port("screen", screen)
    send, receive = trio.open_memory_channel[str](1)
    sim.at_end(lambda: screen.shown[-1:] == ["end"], "the end is shown")

    async def observer() -> None:
        async for event in receive:
            await port.show(event)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(observer)
        with send:
            for event in ("begin", "middle"):
                await trio.sleep(1)
                with suppress(trio.WouldBlock):
                    send.send_nowait(event)
            await send.send("end")


@planted(by_exploring(schedules=60), "deadlock", "yy1-d1.1")
async def wake_up_missed(sim: Simulation) -> None:
    """Between looking at the shelf and waiting for the bell, the bell rings and is replaced."""
    shelf: list[int] = []
    bell = [trio.Event()]

    async def taker() -> None:
        while not shelf:
            await trio.lowlevel.checkpoint()
            await bell[0].wait()

    async def giver() -> None:
        await trio.lowlevel.checkpoint()
        shelf.append(1)
        bell[0].set()
        bell[0] = trio.Event()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(taker)
        nursery.start_soon(giver)


@mended(wake_up_missed)
async def bell_taken_before_looking(sim: Simulation) -> None:
    """Take the bell first, then look, then wait for that bell."""
    shelf: list[int] = []
    bell = [trio.Event()]

    async def taker() -> None:
        ringing = bell[0]
        while not shelf:
            await trio.lowlevel.checkpoint()
            await ringing.wait()
            ringing = bell[0]

    async def giver() -> None:
        await trio.lowlevel.checkpoint()
        shelf.append(1)
        bell[0].set()
        bell[0] = trio.Event()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(taker)
        nursery.start_soon(giver)

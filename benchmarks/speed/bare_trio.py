"""Floors: a turn written by hand on Trio, without a promise. The reader gets each event through a channel, or pulls it.

Nothing is checked, numbered, stored or cleaned: a list of dicts is the history. With ``capacity`` None the turn is an
async generator that the reader pulls, so that there is no second task.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio
import trio.testing

from .loops import Trio
from .plan import DELTA_WAIT, MODEL_WAIT, WORD, answer

ids = itertools.count()
Event = dict[str, Any]


async def noop(x: int) -> str:
    """Does nothing."""
    return "ok"


class Session:
    """A list of messages and a model."""

    def __init__(self, mode: str, capacity: int | None) -> None:
        self.mode, self.capacity = mode, capacity
        self.history: list[Event] = []
        self.closed_at: float | None = None
        self.scope = trio.CancelScope()

    async def chat(self) -> AsyncIterator[Event]:
        """The model."""
        kind, count = answer(self.mode, self.history[-1]["role"] == "tool")
        if self.mode == "many":
            await trio.sleep(MODEL_WAIT)
        if kind == "calls":
            for number in range(count):
                yield {"call": f"c{next(ids)}", "arguments": f'{{"x": {number}}}'}
        elif kind == "text":
            for _ in range(count):
                yield {"text": WORD}
        else:
            try:
                while True:
                    await trio.sleep(DELTA_WAIT)
                    yield {"text": WORD}
            finally:
                self.closed_at = time.perf_counter()

    async def answer(self, tell: Callable[[Event], Awaitable[None]]) -> list[Event]:
        """One answer, told piece by piece; its calls."""
        said: list[str] = []
        calls: list[Event] = []
        try:
            async for event in self.chat():
                if "text" in event:
                    said.append(event["text"])
                else:
                    calls.append(event)
                await tell(event)
        finally:
            self.history.append({"role": "assistant", "content": "".join(said), "calls": calls})
        return calls

    async def use(self, calls: list[Event], tell: Callable[[Event], Awaitable[None]]) -> None:
        """All calls at once."""
        results: dict[str, str] = {}

        async def one(call: Event) -> None:
            results[call["call"]] = await noop(**json.loads(call["arguments"]))
            await tell({"result": call["call"]})

        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(one, call)
        self.history += [{"role": "tool", "id": call["call"], "content": results[call["call"]]} for call in calls]

    async def rounds(self, text: str, tell: Callable[[Event], Awaitable[None]]) -> None:
        """Until the model calls nothing more."""
        self.history.append({"role": "user", "content": text})
        while calls := await self.answer(tell):
            await self.use(calls, tell)

    async def pulled(self, text: str) -> AsyncIterator[Event]:
        """The same as a generator: results are told when all are there."""
        self.history.append({"role": "user", "content": text})
        while True:
            said: list[str] = []
            calls: list[Event] = []
            async for event in self.chat():
                if "text" in event:
                    said.append(event["text"])
                else:
                    calls.append(event)
                yield event
            self.history.append({"role": "assistant", "content": "".join(said), "calls": calls})
            if not calls:
                return
            told: list[Event] = []

            async def tell(event: Event, told: list[Event] = told) -> None:
                told.append(event)

            await self.use(calls, tell)
            for event in told:
                yield event

    async def turn(self, text: str) -> tuple[int, int]:
        """One turn, read to its end."""
        if self.capacity is None:
            return await counted(self.pulled(text))
        events, receive = trio.open_memory_channel[Event](self.capacity)

        async def work() -> None:
            async with events:
                await self.rounds(text, events.send)

        async with trio.open_nursery() as nursery:
            self.scope = nursery.cancel_scope
            nursery.start_soon(work)
            async with receive:
                return await counted(receive)
        return 0, 0  # cancelled

    def cancel(self) -> None:
        """The scope round both tasks."""
        self.scope.cancel()


async def counted(events: AsyncIterator[Event]) -> tuple[int, int]:
    """The deltas and results among them."""
    deltas = results = 0
    async for event in events:
        if "text" in event:
            deltas += 1
        elif "result" in event:
            results += 1
    return deltas, results


class Bare:
    """A program for the driver."""

    LOOP = Trio()
    PACKAGES = ("trio",)

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity

    def session(self, mode: str, keep: bool) -> AbstractAsyncContextManager[Any]:
        """History grows where it is kept."""

        @asynccontextmanager
        async def opened() -> AsyncIterator[Any]:
            kept = Session(mode, self.capacity)
            yield kept if keep else Fresh(mode, self.capacity)

        return opened()


class Fresh:
    """A new list of messages for each turn."""

    def __init__(self, mode: str, capacity: int | None) -> None:
        self.mode, self.capacity = mode, capacity

    async def turn(self, text: str) -> tuple[int, int]:
        """One turn."""
        return await Session(self.mode, self.capacity).turn(text)


async def idle(agents: int) -> float:
    """KiB for five parked tasks with a channel each: the least that an agent of five actors is."""
    from .driver import memory

    ready, stop = trio.Event(), trio.Event()
    parked = 0

    async def actor(receive: trio.MemoryReceiveChannel[None]) -> None:
        async for _ in receive:
            pass

    async def agent() -> None:
        nonlocal parked
        channels = [trio.open_memory_channel[None](math.inf) for _ in range(5)]
        async with trio.open_nursery() as nursery:
            for _, receive in channels:
                nursery.start_soon(actor, receive)
            parked += 1
            if parked == agents:
                ready.set()
            await stop.wait()
            nursery.cancel_scope.cancel()

    before = memory("VmRSS")
    async with trio.open_nursery() as nursery:
        for _ in range(agents):
            nursery.start_soon(agent)
        await ready.wait()
        await trio.testing.wait_all_tasks_blocked()
        grown = (memory("VmRSS") - before) / agents
        stop.set()
    return grown

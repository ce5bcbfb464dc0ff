"""LIMIT: the least that a program on Trio costs which promises what youyou promises of a delta and of a call.

One task for the turn, one for the recorder, one that reads. Delivery is bounded; every event has a number and a time;
text is kept in the step in which it is said; calls are noted before they start; a tool has a task and a time-out; each
call has one result; the terminal event comes last. No hooks, no schemas, no cleaning of arguments, no tokens, no forced
shutdown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import attrs
import trio

from .loops import Trio
from .plan import WORD, answer

PACKAGES = ("trio", "attrs")
LOOP = Trio()
BUFFER = 64


@attrs.frozen
class TextDelta:
    """A piece of text."""

    text: str


@attrs.frozen
class ToolCall:
    """A call."""

    call_id: str
    tool_name: str
    arguments: dict[str, int]


@attrs.frozen
class Done:
    """The end of an answer."""


@attrs.frozen
class Event:
    """An envelope."""

    session_id: str
    turn_id: str
    timestamp: datetime
    sequence: int
    payload: object


@attrs.frozen
class Started:
    """A tool begins."""

    call_id: str


@attrs.frozen
class Finished:
    """A tool has ended."""

    call_id: str
    output: str


@attrs.frozen
class Ended:
    """The terminal event."""

    text: str


async def noop(x: int) -> str:
    """Does nothing."""
    return "ok"


class Session:
    """The turn, the recorder and the reader of one session."""

    def __init__(self, mode: str, turns: trio.Nursery) -> None:
        self.mode, self.turns = mode, turns
        self.sequence = self.saved = 0
        self.history: list[tuple[Any, ...]] = []
        self.log: list[tuple[Any, ...]] = []
        self.wanted, self.acks = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()
        self.events: deque[Event] = deque()
        self.news, self.space = trio.lowlevel.ParkingLot(), trio.lowlevel.ParkingLot()

    async def recorder(self) -> None:
        """Acknowledges what is logged."""
        while True:
            while self.saved == len(self.log):
                await self.wanted.park()
            self.saved = len(self.log)
            self.acks.unpark_all()

    async def flush(self) -> None:
        """Wait for the acknowledgement."""
        if self.saved < len(self.log):
            if self.wanted:
                self.wanted.unpark()
            while self.saved < len(self.log):
                await self.acks.park()

    async def chat(self) -> AsyncIterator[TextDelta | ToolCall | Done]:
        """The model."""
        kind, count = answer(self.mode, self.history[-1][0] == "result")
        for number in range(count):
            yield TextDelta(WORD) if kind == "text" else ToolCall(f"c{number}", "noop", {"x": number})
        yield Done()

    def say(self, payload: object) -> None:
        """Number, date and queue an event."""
        self.sequence += 1
        self.events.append(Event("s", "t", datetime.now(UTC), self.sequence, payload))
        if self.news:
            self.news.unpark()

    async def room(self) -> None:
        """Wait until the reader has taken something."""
        await trio.lowlevel.checkpoint()
        while len(self.events) >= BUFFER:
            await self.space.park()

    async def stream(self) -> tuple[str, list[ToolCall]]:
        """One answer; what was said of it is kept, however it ends."""
        pieces: list[str] = []
        calls: list[ToolCall] = []
        try:
            with trio.CancelScope():
                async for event in self.chat():
                    if type(event) is TextDelta and type(event.text) is str and event.text.isascii():
                        if len(self.events) >= BUFFER:
                            await self.room()
                        pieces.append(event.text)
                        self.say(event)
                    elif type(event) is ToolCall:
                        calls.append(event)
        finally:
            kept = [("assistant", "".join(pieces))] if pieces else []
            self.history += kept + [("call", call) for call in calls]
            self.log += kept + [("call", call) for call in calls]
        return "".join(pieces), calls

    async def use(self, call: ToolCall, results: dict[str, str]) -> None:
        """One call."""
        with trio.CancelScope(deadline=trio.current_time() + 120):
            try:
                output = await noop(**call.arguments)
            except Exception as error:
                output = str(error)
            results[call.call_id] = output
            self.log.append(("result", call.call_id, output))
            self.say(Finished(call.call_id, output))

    async def work(self, text: str) -> None:
        """The turn's task."""
        said = ""
        try:
            self.history.append(("user", text))
            self.log.append(("user", text))
            while True:
                await self.flush()
                said, calls = await self.stream()
                if not calls:
                    break
                self.log += [("started", call.call_id) for call in calls]
                await self.flush()
                results: dict[str, str] = {}
                async with trio.open_nursery() as nursery:
                    for call in calls:
                        self.say(Started(call.call_id))
                        nursery.start_soon(self.use, call, results)
                await self.flush()
                self.history += [("result", call.call_id, results[call.call_id]) for call in calls]
            self.log.append(("ended",))
            await self.flush()
        finally:
            self.say(Ended(said))

    def __aiter__(self) -> Session:
        self.over = False
        return self

    async def __anext__(self) -> Event:
        if self.over:
            raise StopAsyncIteration
        while not self.events:
            await trio.lowlevel.checkpoint()
            if not self.events:
                await self.news.park()
        event = self.events.popleft()
        if self.space:
            self.space.unpark()
        self.over = type(event.payload) is Ended
        return event

    async def turn(self, text: str) -> tuple[int, int]:
        """One turn, read to its end, of a session that forgets the one before."""
        self.history.clear()
        self.log.clear()
        self.saved = deltas = results = 0
        self.turns.start_soon(self.work, text)
        async for event in self:
            if type(event.payload) is TextDelta:
                deltas += 1
            elif type(event.payload) is Finished:
                results += 1
        return deltas, results


def session(mode: str, keep: bool) -> AbstractAsyncContextManager[Session]:
    """For the driver."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Session]:
        async with trio.open_nursery() as nursery:
            kept = Session(mode, nursery)
            nursery.start_soon(kept.recorder)
            yield kept
            nursery.cancel_scope.cancel()

    return opened()

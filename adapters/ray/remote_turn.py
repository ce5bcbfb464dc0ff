"""The handle of a turn that runs in another process (semantics 17)."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Any, final

import trio

from ...core.inputs import check_grace
from ...core.stopping import FINAL_STATUSES
from ...messages.content import Content, UserInput
from ...messages.errors import AgentError, HostLost
from ...messages.events import AgentEvent, TurnResult, TurnStatus
from .calls import WAIT_SECONDS, Host, call, wait_for

_LEAVE_SECONDS = 5.0
"""For how long a block that is left by a cancellation waits for the host."""


@final
class RemoteTurn:
    """A turn on a host of a `Cluster`. It has the methods of a `RunningTurn`, all of them asynchronous.

    Synopsis::

        turn = await session.send_message("Weather in Oslo?")
        async for event in turn:            # every event, the terminal one last
            ...
        await turn.cancel(grace=2)

    Cancellation: each method is a checkpoint. If `cancel` or `steer` raises `trio.Cancelled`, it may have happened.
    Reading that was cancelled loses nothing. ``async with turn:`` cancels the turn when left early.

    Raises:
        HostLost: from any method, the host is gone or does not answer; ``error.after`` is the last event that was
            read. Reading raises it once, and ends then. Resume the session: nothing is run twice.
        SessionClosed: the host no longer keeps this turn.
    """

    def __init__(self, host: Host, session_id: str, turn_id: str, after: int, patience: float) -> None:
        self._host = host
        self._session_id = session_id
        self._turn_id = turn_id
        self._after = after
        self._patience = patience
        self._events: deque[AgentEvent] = deque()
        self._over = False

    @property
    def turn_id(self) -> str:
        """Unique among all turns."""
        return self._turn_id

    @property
    def after(self) -> int:
        """The number of the last event that was read: with it, `RemoteSession.turn` goes on where this one is."""
        return self._after

    def __aiter__(self) -> RemoteTurn:
        return self

    async def __anext__(self) -> AgentEvent:
        if self._events:
            await trio.lowlevel.checkpoint_if_cancelled()
        while not self._events:
            if self._over:
                # Everything was read: the host may let go of it.
                await trio.lowlevel.checkpoint()
                raise StopAsyncIteration
            # The same question again loses nothing and repeats nothing, since the number says what was read.
            try:
                events, self._over = await self._call("events", self._after, WAIT_SECONDS, more=WAIT_SECONDS)
            except HostLost:
                self._over = True
                raise
            self._events.extend(events)
        event = self._events.popleft()
        self._after = event.sequence
        if self._over and not self._events:
            # Nobody waits for the answer: it tells the host that it need keep nothing.
            self._host.actor.call.remote("events", self._turn_id, self._after, 0.0)
        return event  # noqa: ASYNC910  no switch of tasks for what was read already

    async def _call(self, method: str, *args: object, more: float = 0.0) -> Any:
        bound = self._patience + more
        return await call(self._host, self._session_id, method, self._turn_id, *args, after=self._after, seconds=bound)

    async def _wait(self, method: str, *args: object) -> Any:
        all_args = (self._turn_id, *args)
        return await wait_for(
            self._host, self._session_id, method, *all_args, after=self._after, patience=self._patience
        )

    async def cancel(self, *, grace: float | None = None) -> bool:
        """Stop the turn, as `RunningTurn.cancel` does.

        Returns:
            Whether the outcome is *cancelled*. False: it was decided before.
        """
        return bool(await self._call("cancel", check_grace(grace)))

    async def steer(self, input: UserInput | Content) -> bool:
        """Put a message into the running turn, as `RunningTurn.steer` does."""
        return bool(await self._call("steer", input))

    async def detach(self) -> None:
        """Stop reading: the turn runs on, its events are not kept."""
        await self._call("detach")

    async def status(self) -> TurnStatus:
        """Where the turn stands."""
        status: TurnStatus = await self._call("status")
        return status

    async def wait_status(self, *wanted: TurnStatus) -> TurnStatus:
        """Wait until the turn has one of these statuses, or is over, as `RunningTurn.wait_status` does."""
        status: TurnStatus = await self._wait("wait_status", wanted)
        return status

    async def result(self) -> TurnResult:
        """Wait for the end of the turn. A failed or cancelled turn raises nothing."""
        result: TurnResult = await self._wait("result")
        return result

    async def __aenter__(self) -> RemoteTurn:
        return self  # noqa: ASYNC910  no checkpoint: cancelled here, the turn that was just started would run on

    async def __aexit__(  # noqa: ASYNC910  where nothing runs any more
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._over and not self._events:
            return  # noqa: ASYNC910  nothing runs any more
        try:
            await self.cancel()  # noqa: ASYNC102  a cancellation is meant to come out of it
            await self.wait_status(*FINAL_STATUSES)  # noqa: ASYNC102  as above
        except trio.Cancelled:
            with trio.move_on_after(_LEAVE_SECONDS, shield=True):  # noqa: ASYNC912  both are calls
                try:
                    await self.cancel(grace=0)
                    await self.wait_status(*FINAL_STATUSES)
                except AgentError:
                    pass  # The host is gone, and the turn with it: the cancellation counts.
            raise
        except AgentError:
            if exc is None:
                raise

    def __repr__(self) -> str:
        return f"<RemoteTurn {self._turn_id[:8]} on {self._host.name}>"

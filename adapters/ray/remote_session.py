"""The handle of a session that lives in another process (semantics 17)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from types import TracebackType
from typing import Any, final

import trio

from ...core.inputs import check_grace
from ...messages.chat import TokenUsage
from ...messages.content import Content, UserInput
from ...messages.history import Message
from .calls import Host, answer_of, call, wait_for
from .remote_turn import RemoteTurn


@final
class RemoteSession:
    """A session on a host of a `Cluster`. It has the methods of a `Session`, all of them asynchronous.

    Synopsis::

        session = await cluster.resume_session(session_id)
        turn = await session.send_message("hello")

    The handle keeps nothing open: the host closes a session that nobody uses and resumes it with the next call. Leaving
    ``async with session:`` closes it at once.

    Cancellation: each method is a checkpoint. A `send_message` out of which `trio.Cancelled` comes leaves no turn
    running: one that was accepted already is cancelled with no grace.

    Raises:
        HostLost: from any method, the host is gone or does not answer. Open the session again.
        SessionTaken: from any method, it was taken over by another host: open it again.
        AgentError: what the methods of a `Session` raise.
    """

    def __init__(self, host: Host, session_id: str, namespace: str | None, patience: float) -> None:
        self._host = host
        self._id = session_id
        self._namespace = namespace
        self._patience = patience

    @property
    def id(self) -> str:
        """The session's id, under which it is stored."""
        return self._id

    @property
    def host(self) -> str:
        """The name of the host that had it when it was opened."""
        return self._host.name

    async def _call(self, method: str, *args: object) -> Any:
        return await call(self._host, self._id, method, self._id, *args, seconds=self._patience)

    async def _wait(self, method: str, *args: object) -> Any:
        return await wait_for(self._host, self._id, method, self._id, *args, patience=self._patience)

    async def send_message(
        self, input: UserInput | Content, *, queue: bool = False, grace: float | None = None
    ) -> RemoteTurn:
        """Start a turn with this message, as `Session.send_message` does."""
        return await self._start("send", self._namespace, input, queue, check_grace(grace))

    async def continue_pipeline(self) -> RemoteTurn:
        """Go on with an interrupted pipeline, as `Session.continue_pipeline` does."""
        return await self._start("continue_pipeline", self._namespace)

    async def _start(self, method: str, *args: object) -> RemoteTurn:
        await trio.lowlevel.checkpoint_if_cancelled()
        request = secrets.token_hex(8)
        ref = self._host.actor.call.remote(method, self._id, request, *args)
        try:
            turn_id = await answer_of(ref, self._host, self._id, seconds=self._patience)
        except trio.Cancelled:
            # Nobody waits for it: calls of one driver arrive in their order, and a host that is gone runs nothing.
            self._host.actor.call.remote("take_back", request)
            raise
        return self.turn(turn_id)

    def turn(self, turn_id: str, *, after: int = 0) -> RemoteTurn:
        """A turn of this session by its id, read from the event after that number on. Sync; asks nobody.

        Synopsis::

            turn = session.turn(turn_id, after=last_event_id)       # a browser that connects again
        """
        return RemoteTurn(self._host, self._id, turn_id, after, self._patience)

    async def history(self) -> Sequence[Message]:
        """What was said so far."""
        history: Sequence[Message] = await self._call("history", self._namespace)
        return history

    async def usage(self) -> TokenUsage:
        """Tokens of all turns that have ended."""
        usage: TokenUsage = await self._call("usage", self._namespace)
        return usage

    async def set_title(self, title: str) -> None:
        """Name the session, in its storage too."""
        await self._call("set_title", self._namespace, title)

    async def wait_idle(self) -> None:
        """Wait until no turn runs or is queued."""
        await self._wait("wait_idle", self._namespace)

    async def close(self, *, grace: float | None = None) -> None:
        """End the session on its host, as `Session.close` does, and wait for it. Idempotent."""
        await self._wait("close", check_grace(grace))

    async def __aenter__(self) -> RemoteSession:
        return self  # noqa: ASYNC910  nothing to wait for

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if trio.current_effective_deadline() == -math.inf:
            # Nothing of it keeps anything here: the host stops its turn and closes it, whether or not we wait.
            self._host.actor.call.remote("close", self._id, 0.0)
            return  # noqa: ASYNC910  the cancellation that is under way must not be replaced
        await self.close()  # noqa: ASYNC102  waits only where nothing is cancelled

    def __repr__(self) -> str:
        return f"<RemoteSession {self._id[:8]} on {self._host.name}>"

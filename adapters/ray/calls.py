"""Calls from Trio into a host of a cluster: what they raise, and how a host that is gone is told (semantics 17).

load = await call(host, session_id, "load", seconds=5)
result = await wait_for(host, session_id, "result", turn_id, patience=15)
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import trio

from ...messages.errors import HostLost
from .engine import require_ray, result_of
from .host_process import Answer

WAIT_SECONDS = 5.0
"""For how long a host holds a question before it says that there is nothing yet."""


@attrs.define(eq=False)
class Host:
    """A host process, as a driver sees it."""

    name: str
    actor: Any
    """The handle of the Ray actor."""
    node: str = ""
    """The node of Ray that it was meant for."""
    lost: bool = False
    """Whether it is gone, or did not answer: no session is opened there."""
    dead: bool = False
    """Whether Ray knows that its process has ended."""


async def answer_of(ref: Any, host: Host, session_id: str, after: int = 0, seconds: float = math.inf) -> Any:
    """Wait for what a host answers to a call that was made.

    Cancellation: a checkpoint. If it raises `trio.Cancelled`, the host was asked to cancel the call.

    Args:
        ref: what ``host.actor.call.remote(...)`` gave.
        host: which was called.
        session_id: for the error.
        after: the last event that was read, for the error.
        seconds: for how long it may take.

    Raises:
        HostLost: the host is gone, or did not answer in time. The call may have been carried out.
        AgentError: what the host raised.
    """
    errors = require_ray().exceptions
    answer: Answer | None = None
    try:
        with trio.move_on_after(seconds):
            answer = await result_of(ref)
        said = f"did not answer for {seconds:g} s"
    except errors.RayActorError as error:
        # A host on a node that died is "unavailable" first, and "died" only later: both are of this class.
        said = f"is gone ({type(error).__name__})"
        host.dead = isinstance(error, errors.ActorDiedError)
    if answer is None:
        host.lost = True
        raise HostLost(
            f"host {host.name!r} {said}; open session {session_id!r} again: what was acknowledged is stored, and "
            "calls that had started without a result are unknown",
            session_id=session_id,
            after=after,
        )
    if answer.error is not None:
        raise answer.error
    return answer.value  # noqa: ASYNC910  waiting for it was one


async def call(host: Host, session_id: str, method: str, *args: object, after: int = 0, seconds: float) -> Any:
    """Call a method of the host that answers at once. As `answer_of`."""
    return await answer_of(host.actor.call.remote(method, *args), host, session_id, after, seconds)


async def wait_for(host: Host, session_id: str, method: str, *args: object, after: int = 0, patience: float) -> Any:
    """Call a method that waits for something, again and again: a host that is frozen is noticed. As `answer_of`."""
    while True:
        ref = host.actor.wait.remote(WAIT_SECONDS, method, *args)
        answer = await answer_of(ref, host, session_id, after, WAIT_SECONDS + patience)
        if answer is not None:
            (value,) = answer
            return value

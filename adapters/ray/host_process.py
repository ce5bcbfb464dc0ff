"""A process of the cluster: one Trio run with a `SessionHost`, called through one method of a Ray actor.

    actor = ray.remote(HostProcess).options(name=name, ...).remote(name, make_builder, storage, limits)
    answer = await result_of(actor.call.remote("send", session_id, request, namespace, "hello", False, None))

Each call names its session: the host resumes one that it does not have open, and closes one that is idle. So no handle
in another process keeps anything alive, and none dangles.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import attrs
import trio

from ...actors.handles.running_turn import RunningTurn
from ...actors.handles.session_handle import Session
from ...builder import AgentBuilder, HasProvider
from ...core.config import AgentConfig, SessionConfig
from ...core.ports.protocols import ModelInfo, SessionStorage
from ...hosting import HostStatistics, SessionHost
from ...messages.chat import ChatEvent, Done, TextDelta, TokenUsage
from ...messages.content import Content, UserInput
from ...messages.errors import AgentClosed, AgentError, RequestCancelled, SessionClosed
from ...messages.events import AgentEvent, TurnResult, TurnStatus
from ...messages.history import Message
from .engine import require_ray
from .trio_thread import TrioThread
from .turn_events import TurnEvents

MakeBuilder = Callable[[], AgentBuilder[HasProvider]]
_LOOK_SECONDS = 1.0
"""Between two looks for turns whose events nobody needs any more."""


def address_of(name: str) -> str:
    """What a host puts into its claims: ``SessionTaken.address`` says where a session is."""
    return f"ray:{name}"


@attrs.frozen
class HostLimits:
    """What a cluster tells each of its hosts."""

    max_open: int
    idle_ms: float
    keep_ms: float


@attrs.frozen
class Answer:
    """What a call came to. An error of ours travels as a value: Ray would wrap a raised one."""

    value: Any = None
    error: AgentError | None = None


class _Host:
    """The part that runs on Trio."""

    def __init__(
        self, name: str, make_builder: MakeBuilder, storage: SessionStorage | None, limits: HostLimits
    ) -> None:
        self._name, self._make_builder, self._storage, self._limits = name, make_builder, storage, limits
        self._turns: dict[str, TurnEvents] = {}
        self._drained = trio.Event()
        self._requests: dict[str, trio.CancelScope] = {}
        self._started: dict[str, str] = {}
        self._taken_back: deque[str] = deque(maxlen=64)

    def _builder(self) -> AgentBuilder[HasProvider]:
        builder = self._make_builder()
        if self._storage is not None and isinstance(builder, AgentBuilder):
            builder = builder.register_session_storage(self._storage)
        if isinstance(builder, AgentBuilder):
            registrations = builder._registrations
            registrations.config = attrs.evolve(registrations.config, address=address_of(self._name))
        return builder

    async def main(self, task_status: trio.TaskStatus[None]) -> None:
        """Until it is drained."""
        limits = self._limits
        async with (
            SessionHost(self._builder, max_open=limits.max_open, idle_ms=limits.idle_ms) as self._host,
            trio.open_nursery() as self._readers,
        ):
            self._readers.start_soon(self._forget_old_turns)
            await _load_everything()
            task_status.started()
            await self._drained.wait()
            self._readers.cancel_scope.cancel("the host is drained")

    async def _forget_old_turns(self) -> None:
        while True:
            await trio.sleep(_LOOK_SECONDS)
            for turn_id in [turn_id for turn_id, kept in self._turns.items() if kept.forgotten]:
                del self._turns[turn_id]
            for request in [request for request, turn_id in self._started.items() if turn_id not in self._turns]:
                del self._started[request]

    def _turn(self, turn_id: str) -> TurnEvents:
        try:
            return self._turns[turn_id]
        except KeyError:
            raise SessionClosed(
                f"turn {turn_id!r} is not on this host (any more); resume the session and read its history"
            ) from None

    async def _begin(
        self, request: str, session_id: str, namespace: str | None, start: Callable[[Session], Awaitable[RunningTurn]]
    ) -> str:
        """Start a turn for a request that may be taken back: Ray's own cancel is silent where it comes too late."""
        with trio.CancelScope() as self._requests[request]:
            try:
                if request in self._taken_back:
                    self._requests[request].cancel("it was taken back before it began")
                async with self._host.open(session_id, memory_namespace=namespace) as session:
                    turn = await start(session)
                    kept = self._turns[turn.turn_id] = TurnEvents(turn, self._limits.keep_ms / 1000)
                    self._started[request] = turn.turn_id
                    self._readers.start_soon(kept.read)
                    if trio.current_effective_deadline() == -math.inf:
                        # Taken back while the answer was on its way here: no checkpoint is left that would tell.
                        turn.cancel(grace=0)
                    return turn.turn_id
            finally:
                del self._requests[request]
        raise RequestCancelled("the request was taken back")

    async def take_back(self, request: str) -> None:
        """The task that sent the request was cancelled: nobody has its turn."""
        if request in self._requests:
            self._requests[request].cancel("the sender was cancelled")
        elif (kept := self._turns.get(self._started.get(request, ""))) is not None:
            kept.turn.cancel(grace=0)
        else:
            # Trio begins the tasks of two calls that arrive together in any order.
            self._taken_back.append(request)

    async def open(
        self, session_id: str | None, namespace: str | None, config: SessionConfig | None, steal: bool
    ) -> str:
        async with self._host.open(session_id, memory_namespace=namespace, config=config, steal=steal) as session:
            return session.id

    async def send(
        self,
        session_id: str,
        request: str,
        namespace: str | None,
        content: UserInput | Content,
        queue: bool,
        grace: float | None,
    ) -> str:
        def start(session: Session) -> Awaitable[RunningTurn]:
            return session.send_message(content, queue=queue, grace=grace)

        return await self._begin(request, session_id, namespace, start)

    async def continue_pipeline(self, session_id: str, request: str, namespace: str | None) -> str:
        return await self._begin(request, session_id, namespace, Session.continue_pipeline)

    async def history(self, session_id: str, namespace: str | None) -> Sequence[Message]:
        async with self._host.open(session_id, memory_namespace=namespace) as session:
            return tuple(session.history)

    async def usage(self, session_id: str, namespace: str | None) -> TokenUsage:
        async with self._host.open(session_id, memory_namespace=namespace) as session:
            return session.usage

    async def set_title(self, session_id: str, namespace: str | None, title: str) -> None:
        async with self._host.open(session_id, memory_namespace=namespace) as session:
            await session.set_title(title)

    async def wait_idle(self, session_id: str, namespace: str | None) -> None:
        async with self._host.open(session_id, memory_namespace=namespace) as session:
            await session.wait_idle()

    async def close(self, session_id: str, grace: float | None) -> bool:
        return await self._host.close(session_id, grace=grace)

    async def events(self, turn_id: str, after: int, wait: float) -> tuple[list[AgentEvent], bool]:
        return await self._turn(turn_id).after(after, wait)

    async def cancel(self, turn_id: str, grace: float | None) -> bool:
        return self._turn(turn_id).turn.cancel(grace=grace)

    async def steer(self, turn_id: str, content: UserInput | Content) -> bool:
        return self._turn(turn_id).turn.steer(content)

    async def detach(self, turn_id: str) -> None:
        self._turn(turn_id).turn.detach()

    async def status(self, turn_id: str) -> TurnStatus:
        return self._turn(turn_id).turn.status

    async def wait_status(self, turn_id: str, wanted: tuple[TurnStatus, ...]) -> TurnStatus:
        return await self._turn(turn_id).turn.wait_status(*wanted)

    async def result(self, turn_id: str) -> TurnResult:
        return await self._turn(turn_id).turn.result()

    async def within(self, seconds: float, method: str, *args: object) -> tuple[Any] | None:
        function: Callable[..., Awaitable[Any]] = getattr(self, method)
        with trio.move_on_after(seconds):
            return (await function(*args),)
        return None

    async def load(self) -> int:
        return self._host.statistics().open

    async def statistics(self) -> HostStatistics:
        return self._host.statistics()

    async def ended(self) -> None:
        await self._drained.wait()

    async def drain(self, grace: float | None) -> None:
        await self._host.drain(grace=grace)
        self._drained.set()


class _Nothing:
    """A model for a turn that nobody sees."""

    id = "nothing"

    def models(self) -> list[ModelInfo]:
        return [ModelInfo("nothing", "Nothing", 1_000_000)]

    async def chat(self, request: object) -> AsyncIterator[ChatEvent]:
        await trio.lowlevel.checkpoint()
        yield TextDelta("nothing")
        yield Done()


async def _load_everything() -> None:
    """Have one turn: what is imported at its first use is there when a session must be taken over."""
    builder = AgentBuilder(AgentConfig("nothing")).register_model_provider(_Nothing())
    async with builder.build() as agent, await agent.new_session() as session:
        await (await session.send_message("nothing")).result()


class HostProcess:
    """The actor. It is made by `Cluster`, with ``max_restarts=0``: a restarted one would be empty, and hide it."""

    def __init__(
        self, name: str, make_builder: MakeBuilder, storage: SessionStorage | None, limits: HostLimits
    ) -> None:
        self._host: _Host | None = None

        async def main(task_status: trio.TaskStatus[None]) -> None:
            self._host = _Host(name, make_builder, storage, limits)
            await self._host.main(task_status)

        self._loop = TrioThread(main)

    async def call(self, method: str, *args: object) -> Answer:
        """Call a method of the host. An `AgentError` is the answer's; anything else is Ray's to carry."""
        if self._loop.ended.is_set() or self._host is None:
            return Answer(error=AgentClosed("this host has ended: open the session on another one"))
        function: Callable[..., Awaitable[Any]] = getattr(self._host, method)
        try:
            return Answer(await self._loop.run(function, *args))
        except AgentError as error:
            return Answer(error=error)

    async def wait(self, seconds: float, method: str, *args: object) -> Answer:
        """Call a method that may be given up and called again: the value is a tuple of one, or None after so long."""
        return await self.call("within", seconds, method, *args)

    async def node(self) -> str:
        """The id of the node of Ray that it is on."""
        return str(require_ray().get_runtime_context().get_node_id())

    async def pid(self) -> int:
        """The id of the process. The answer shows that the host could be made."""
        return os.getpid()

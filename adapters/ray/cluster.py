"""Host processes that Ray places, and the sessions on them (semantics 17).

async with Cluster(make_builder, storage=PostgresSessionStorage(DSN), hosts=4) as cluster:
    session = await cluster.resume_session(session_id)      # where it lives, or opened on a host
"""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self, final

import trio

from ...core.config import SessionConfig
from ...core.inputs import check_grace
from ...core.ports.protocols import SessionStorage
from ...hosting import HostStatistics
from ...messages.errors import AgentClosed, AgentError, HostLost, InvalidConfig, InvalidInput, SessionTaken
from .calls import Host, call
from .engine import NAMESPACE, require_ray, result_of, start, stop
from .host_process import HostLimits, HostProcess, MakeBuilder, address_of
from .remote_session import RemoteSession

_START_SECONDS = 120.0
"""For how long a host process may take to start: imports, on a machine that is busy."""
_TRIES = 3
"""How often a process is started anew where Ray could not: its node has died, and Ray did not know yet."""
_LOAD_SECONDS = 1.0
"""For how long a host may take to say how many sessions it has; then it is given no new one this time."""
_LOOK_AGAIN = 0.5
_ASK_AGAIN = 0.05
_START_LATER = 1.0
_CALLS = 10_000
"""Calls that a host takes at once: each reader of a turn waits in one."""


@final
class Cluster:
    """Keeps host processes, finds the one that has a session, and opens sessions on the one that has the fewest.

    Synopsis::

        async with Cluster(make_builder, storage=PostgresSessionStorage(dsn), hosts=4) as cluster:
            session = await cluster.new_session()
            async for event in await session.send_message("hello"): ...

    Which host has a session stands in the storage alone, as its claim: any number of clusters and processes may share
    it. A host that dies is replaced; its sessions are opened elsewhere when they are asked for.

    Cancellation: entering and leaving are checkpoints. Left normally, by an exception or by a cancellation, the hosts
    are ended; `drain` first if turns shall end.

    Args:
        make_builder: called in each host process, as `SessionHost` does: a function of a module that can be imported
            there, or one that pickles.
        storage: where sessions live, with claims; it is pickled before it is entered. None: the builder registers one.
        hosts: how many processes have sessions.
        spares: how many more are kept started, so that a death costs no start: imports take seconds.
        max_open: for each host, as for `SessionHost`.
        idle_ms: as for `SessionHost`.
        keep_ms: for how long a host keeps events that nobody asks for; then the turn is detached.
        patience_ms: for how long a host may not answer before it is taken for lost. Its sessions can be opened
            elsewhere once its claims have run out (``AgentConfig.claim_ttl_ms``).
        address: ``"local"`` starts Ray on this machine; ``"host:port"`` or ``"auto"`` joins a cluster. Nothing is
            started or joined where the process is part of one already.

    Raises:
        InvalidConfig: a number is out of range, Ray is not installed, or did not start.
        AgentError: on entering, what a host raised when it was started.
    """

    def __init__(
        self,
        make_builder: MakeBuilder,
        *,
        storage: SessionStorage | None = None,
        hosts: int = 2,
        spares: int = 1,
        max_open: int = 2_000,
        idle_ms: float = 300_000,
        keep_ms: float = 300_000,
        patience_ms: float = 10_000,
        address: str = "local",
    ) -> None:
        for name, number, least in (("hosts", hosts, 1), ("spares", spares, 0), ("max_open", max_open, 1)):
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise InvalidConfig(f"{name} is {number!r}; pass a whole number from {least} on")
        for name, span in (("idle_ms", idle_ms), ("keep_ms", keep_ms), ("patience_ms", patience_ms)):
            if isinstance(span, bool) or not isinstance(span, int | float) or not span >= 0:
                raise InvalidConfig(f"{name} is {span!r}; pass milliseconds from 0 on")
        if not callable(make_builder):
            raise InvalidConfig("make_builder is not callable; pass a function that returns an AgentBuilder")
        require_ray()
        self._make_builder, self._storage, self._address = make_builder, storage, address
        self._count, self._spares = hosts, spares
        self._limits = HostLimits(max_open, idle_ms, keep_ms)
        self._patience = patience_ms / 1000
        self._hosts: list[Host] = []
        self._on_node: Counter[str] = Counter()
        self._draining = False
        self._running: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> Self:
        if self._running is not None:
            raise InvalidConfig("a cluster is entered once; make another Cluster")
        self._running = self._run()
        await self._running.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._running is not None
        return await self._running.__aexit__(kind, exc, traceback)  # noqa: ASYNC102  bounded: processes are killed

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[None]:
        started = await start(self._address)
        try:
            async with trio.open_nursery() as self._background:
                async with trio.open_nursery() as starting:
                    for _ in range(self._count + self._spares):
                        starting.start_soon(self._add_host)
                yield
                self._draining = True
                self._background.cancel_scope.cancel("the cluster is left")
        except BaseExceptionGroup as group:
            failure: BaseException | None = _bare(group)
        else:
            failure = None
        finally:
            self._draining = True
            for host in self._hosts:
                require_ray().kill(host.actor)
            if started:
                with trio.CancelScope(shield=True):
                    await stop()
        if failure is not None:
            raise failure

    async def _add_host(self) -> None:
        """Start a process, and have it watched. Where a node dies under it, another one is tried."""
        failure: Exception | None = None
        for _ in range(_TRIES):
            host = await self._place()
            started = False
            try:
                with trio.move_on_after(_START_SECONDS):
                    await result_of(host.actor.pid.remote())
                    started = True
            except require_ray().exceptions.RayActorError as error:
                failure = error
            finally:
                if not started:
                    self._on_node[host.node] -= 1
                    require_ray().kill(host.actor)
            if started:
                self._hosts.append(host)
                self._background.start_soon(self._watch, host)
                return
            if failure is None:
                raise InvalidConfig(f"a host process did not start within {_START_SECONDS:g} s")
            if (own := _own_error(failure)) is not None:
                raise own from failure
        said = " ".join(str(failure).split())[-1_000:]
        raise InvalidConfig(f"a host process could not be started: {said}") from failure

    async def _place(self) -> Host:
        """Have Ray begin a process on the node that has the fewest of ours."""
        ray = require_ray()
        name = f"host-{secrets.token_hex(6)}"
        node = await self._emptiest_node()
        kind: Any = ray.remote(HostProcess)
        options = {
            "name": name,
            "namespace": NAMESPACE,
            "num_cpus": 0,
            "max_restarts": 0,
            "max_concurrency": _CALLS,
            # Soft: an actor that must be on a node that has just died would wait without end. Ray's own "SPREAD" does
            # not spread actors that ask for no processor.
            "scheduling_strategy": ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True),
        }
        return Host(name, kind.options(**options).remote(name, self._make_builder, self._storage, self._limits), node)

    async def _emptiest_node(self) -> str:
        """The node of Ray that has the fewest of our hosts, those that are being started among them."""
        ray = require_ray()
        nodes = await trio.to_thread.run_sync(ray.nodes)
        alive = [node["NodeID"] for node in nodes if node["Alive"]]
        node: str = min(alive, key=lambda node: self._on_node[node])
        self._on_node[node] += 1
        return node

    async def _watch(self, host: Host) -> None:
        """Notice that a host is gone, and start another: a call that is answered when the host ends."""
        errors = require_ray().exceptions
        while True:
            try:
                await result_of(host.actor.call.remote("ended"))
                break
            except errors.ActorUnavailableError:
                # The way to it is cut, or its node has died and Ray does not know yet.
                host.lost = True
                await trio.sleep(_LOOK_AGAIN)
            except errors.RayActorError:
                host.dead = True
                break
        host.lost = True
        self._hosts.remove(host)
        self._on_node[host.node] -= 1
        # Sessions that are taken over now go first: starting a process takes all that a small machine has.
        await trio.sleep(_START_LATER)
        while not self._draining:
            try:
                await self._add_host()
                return
            except AgentError:
                # No node has room for it, or its start failed: sessions go to the hosts that are left.
                await trio.sleep(_START_SECONDS / 10)

    async def new_session(
        self, config: SessionConfig | None = None, *, memory_namespace: str | None = None
    ) -> RemoteSession:
        """Open a new session on the host that has the fewest.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, a session without messages may be left.

        Raises:
            AgentClosed: the cluster drains, or is not entered.
            HostLost: the host was lost meanwhile, or there is none. Try again.
            AgentError: what `SessionHost.open` raises.
        """
        host = await self._least_loaded()
        return await self._open(host, None, memory_namespace, config, False)

    async def resume_session(
        self, session_id: str, *, memory_namespace: str | None = None, steal: bool = False
    ) -> RemoteSession:
        """The session where it is open, or opened on the host that has the fewest.

        Where its host is gone, it is taken over: the log keeps a host that was only cut off from writing. Where its
        host does not answer, this waits until its claim has run out.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the session may have been resumed.

        Args:
            session_id: the id of a stored session.
            memory_namespace: as for `SessionHost.open`.
            steal: take it over from a process that is not a host of a cluster, and lives.

        Raises:
            SessionTaken: a process that is not a host of a cluster has it: see its ``address``.
            SessionNotFound: there is no such session.
            AgentClosed, HostLost, AgentError: as for `new_session`.
        """
        if not isinstance(session_id, str):
            raise InvalidInput(
                f"the session's id is a {type(session_id).__name__}; pass the string that session.id gave"
            )
        while True:
            host = await self._least_loaded()
            try:
                return await self._open(host, session_id, memory_namespace, None, steal)
            except SessionTaken as error:
                if not error.address.startswith(address_of("")):
                    raise
                taken = error
            owner = await self._find(taken.address)
            if owner is None:
                # Its process is gone: no claim need run out.
                return await self._open(host, session_id, memory_namespace, None, True)
            pause = min((taken.retry_after_ms or 0) / 1000 + 0.1, self._patience)
            with contextlib.suppress(HostLost, SessionTaken):
                with trio.move_on_after(pause):
                    return await self._open(owner, session_id, memory_namespace, None, False)
            if owner.dead:
                # Ray still had a handle of it.
                return await self._open(host, session_id, memory_namespace, None, True)
            # It does not answer, or is closing the session: its claim is asked for again.
            await trio.sleep(_ASK_AGAIN)

    async def _open(
        self, host: Host, session_id: str | None, namespace: str | None, config: SessionConfig | None, steal: bool
    ) -> RemoteSession:
        arguments = (session_id, namespace, config, steal)
        found: str = await call(host, session_id or "", "open", *arguments, seconds=self._patience)
        return RemoteSession(host, found, namespace, self._patience)

    async def _find(self, address: str) -> Host | None:
        """The host at an address; None: it is gone, or this is not the address of one."""
        prefix = address_of("")
        if not address.startswith(prefix):
            await trio.lowlevel.checkpoint()
            return None
        name = address.removeprefix(prefix)
        for host in self._hosts:
            if host.name == name:
                await trio.lowlevel.checkpoint()
                return None if host.dead else host
        ray = require_ray()

        def look() -> Any:
            try:
                return ray.get_actor(name, namespace=NAMESPACE)
            except ValueError:
                return None

        actor = await trio.to_thread.run_sync(look)
        return None if actor is None else Host(name, actor)

    async def _least_loaded(self) -> Host:
        if self._running is None:
            raise AgentClosed("the cluster is not entered: use 'async with Cluster(...) as cluster'")
        if self._draining:
            raise AgentClosed("the cluster is draining: open the session on another one")
        await trio.lowlevel.checkpoint()
        loads: list[tuple[int, int, Host]] = []

        async def ask(number: int, host: Host) -> None:  # noqa: ASYNC910  a call is one
            with contextlib.suppress(AgentError), trio.move_on_after(_LOAD_SECONDS):
                loads.append((await call(host, "", "load", seconds=self._patience), number, host))

        usable = [host for host in self._hosts if not host.lost][: self._count]
        if len(usable) == 1:
            return usable[0]
        async with trio.open_nursery() as asking:
            for number, host in enumerate(usable):
                asking.start_soon(ask, number, host)
        if not loads:
            raise HostLost("no host answers; they are being replaced: try again", retryable=True, retry_after_ms=1_000)
        return min(loads)[2]

    async def statistics(self) -> dict[str, HostStatistics]:
        """The numbers of each host that answers, by its name."""
        await trio.lowlevel.checkpoint()
        found: dict[str, HostStatistics] = {}
        for host in tuple(self._hosts):
            with contextlib.suppress(AgentError):
                found[host.name] = await call(host, "", "statistics", seconds=self._patience)
        return found

    async def drain(self, *, grace: float | None = None) -> None:
        """Admit no more sessions, let turns end, close all sessions, and wait for it, as `SessionHost.drain` does.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the draining goes on.
        """
        grace = check_grace(grace)
        self._draining = True

        async def end(host: Host) -> None:  # noqa: ASYNC910  a call is one
            with contextlib.suppress(AgentError):
                await call(host, "", "drain", grace, seconds=float("inf"))

        async with trio.open_nursery() as draining:
            for host in tuple(self._hosts):
                draining.start_soon(end, host)
        await trio.lowlevel.checkpoint()


def _own_error(error: BaseException) -> AgentError | None:
    """What a host of ours raised when it was made; None: Ray could not make it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AgentError):
            return cause
        cause = cause.__cause__
    return None


def _bare(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group

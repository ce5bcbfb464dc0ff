"""Many sessions in one process: an agent for each, opened when needed, closed when not (semantics 16)."""

from __future__ import annotations

import copy
import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Self, final

import trio
from trio.lowlevel import enable_ki_protection

from ..actors.guard.statistics import AgentStatistics, TaskNode, tree
from ..actors.handles.session_handle import Session
from ..actors.open_agent import open_agent
from ..actors.shared.deadlock import check_run
from ..actors.shared.user_code import split_cancelled
from ..core.config import SessionConfig
from ..core.host_exceptions import INTERRUPTS, find_exception
from ..core.inputs import check_grace
from ..core.ports.commands import CloseHosted, HostCommand
from ..messages.errors import AgentClosed, AgentError, InvalidConfig, InvalidInput, SessionTaken
from .host_statistics import HostStatistics
from .hosted_session import HostedSession
from .remote_commands import carry_out, commands_of, obey
from .shared_parts import MakeBuilder, SharedParts

_ASK_AGAIN = 1.0
"""Seconds between two tries to open a session that another process has: its claim may be released early."""


@final
class SessionHost:
    """Keeps an agent for each open session, for a service that has many (semantics 16).

    Synopsis::

        async with SessionHost(make_builder, max_open=2_000) as host:
            async with host.open(session_id, memory_namespace=user) as session:     # None: a new session
                turn = await session.send_message("hello")
                async for event in turn: ...

    Cancellation: entering and leaving are checkpoints. Left normally or by an exception, it closes every session
    gracefully; left by a cancellation, all sessions stop at once, within the bound of one agent (semantics 6.2).

    Args:
        make_builder: called once on entering and once for each session. Providers and storages of the first builder
            are entered once and serve every session; tools, plugins, skills and profiles come from each builder anew.
        max_open: how many sessions have an agent at the same time. When it is reached, the session that has been idle
            longest is closed; if none is idle, `open` waits.
        idle_ms: after how many milliseconds without use a session is closed. It is resumed at the next `open`.

    Raises:
        InvalidConfig: a number is out of range, or ``make_builder`` gives something else than a builder.
        AgentError: on entering, whatever ``build()`` and entering an agent raise.
    """

    def __init__(self, make_builder: MakeBuilder, *, max_open: int = 1_000, idle_ms: float = 300_000) -> None:
        if not isinstance(max_open, int) or isinstance(max_open, bool) or max_open < 1:
            raise InvalidConfig(f"max_open is {max_open!r}; pass a whole number of sessions from 1 on")
        if isinstance(idle_ms, bool) or not isinstance(idle_ms, int | float) or not idle_ms >= 0:
            raise InvalidConfig(f"idle_ms is {idle_ms!r}; pass milliseconds from 0 on")
        if not callable(make_builder):
            raise InvalidConfig("make_builder is not callable; pass a function that returns an AgentBuilder")
        self._make_builder = make_builder
        self._idle = idle_ms / 1000
        self._room = trio.CapacityLimiter(max_open)
        self._all: dict[HostedSession, None] = {}
        self._by_id: dict[str, HostedSession] = {}
        self._waiting: set[trio.CancelScope] = set()
        self._draining = False
        self._drain_deadline = math.inf
        self._graces: set[trio.CancelScope] = set()
        self._opened = self._closed = 0
        self._leaving = trio.Event()
        self._sessions_ended = trio.Event()
        self._running: AbstractAsyncContextManager[None] | None = None

    async def __aenter__(self) -> Self:
        if self._running is not None:
            raise InvalidConfig("a host is entered once; make another SessionHost")
        self._token = trio.lowlevel.current_trio_token()
        self._running = self._run()
        await self._running.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._running is not None
        return await self._running.__aexit__(kind, exc, traceback)  # noqa: ASYNC102  the agents bound it themselves

    @asynccontextmanager
    @enable_ki_protection
    async def _run(self) -> AsyncIterator[None]:
        self._parts = SharedParts.of(self._make_builder)
        body: BaseException | None = None
        try:
            async with trio.open_nursery() as top:
                # The sessions first: their end lets go of the parts, also where entering these is cut.
                self._tasks, self._home = await top.start(self._hold_sessions, name="session host")
                await top.start(self._hold_parts, name="shared parts")
                try:
                    yield
                except BaseException as exc:  # noqa: ASYNC103  what holds no cancellation is raised below
                    if split_cancelled(exc)[0] is not None or not isinstance(exc, Exception):
                        raise
                    # Kept out of the nursery, which would make a graceful shutdown a forced one.
                    body = exc
                self._refuse_more()
                for hosted in tuple(self._all):
                    hosted.leave()
                self._leaving.set()
        except BaseExceptionGroup as group:
            failure: BaseException | None = find_exception(group, INTERRUPTS) or _bare(group)
        else:
            failure = body
        if failure is not None:
            # Outside `except`: no foreign context is put on the host's own exception.
            raise failure

    async def _hold_parts(self, task_status: trio.TaskStatus[None]) -> None:
        """Providers and storages: entered before the first session opens, left after the last one has ended."""
        with trio.CancelScope() as scope:
            async with open_agent(self._parts.holder()):
                # From here on a cancellation waits for the sessions, which are bounded and store what they have.
                scope.shield = True
                task_status.started()
                await self._sessions_ended.wait()

    async def _hold_sessions(self, task_status: trio.TaskStatus[tuple[trio.Nursery, trio.lowlevel.Task]]) -> None:
        try:
            async with trio.open_nursery() as sessions:
                storage = commands_of(self._parts.session_storage)
                task_status.started((sessions, trio.lowlevel.current_task()))
                try:
                    async with trio.open_nursery() as listening:
                        if storage is not None:
                            listening.start_soon(obey, storage, lambda: self._by_id, name="commands")
                        await self._leaving.wait()
                        listening.cancel_scope.cancel("the host is left")
                finally:
                    # Before the nursery can close: nothing is started in it any more.
                    self._refuse_more()
        finally:
            self._sessions_ended.set()

    @asynccontextmanager
    async def open(
        self,
        session_id: str | None = None,
        *,
        memory_namespace: str | None = None,
        config: SessionConfig | None = None,
        steal: bool = False,
        wait: bool = False,
    ) -> AsyncIterator[Session]:
        """A session for the length of a block: the open one, or a stored one resumed, or (with None) a new one.

        Several tasks may have one session open at the same time. It is not closed while a block is open or a turn
        runs, except by `drain` and by leaving the host. Use the session inside the block only.

        Cancellation: entering is a checkpoint, and waits while as many sessions as the host takes are in use. If it
        raises `trio.Cancelled`, no session is open for it, unless others use it. Leaving is not a checkpoint; a turn
        that was not left by its own block goes on.

        Args:
            session_id: the id of a stored session. None: a new one, whose id is ``session.id``.
            memory_namespace: where this session's memories are kept and searched: pass the user's id, so that users
                do not share memories. None: as the builder says.
            config: for a new session, as for `Agent.new_session`.
            steal: take the session over from another process that lives, as for `Agent.resume_session`.
            wait: where the session is open in another process, wait until it is free, or its owner's claim has run out.

        Raises:
            SessionTaken: it is open in another process: forward the request to its ``address``, or try again after
                ``retry_after_ms``.
            InvalidInput: the session is open with another memory namespace, or ``config`` came with an id.
            AgentClosed: the host drains, or has been left.
            AgentError: whatever `Agent.new_session` and `Agent.resume_session` raise.
        """
        _check(session_id, memory_namespace, config)
        while True:
            try:
                hosted = await self._acquire(session_id, memory_namespace, config, steal)
                break
            except SessionTaken as taken:
                if not wait or taken.retry_after_ms is None:
                    raise
                pause = min(taken.retry_after_ms / 1000, _ASK_AGAIN)
            await trio.sleep(pause)
        try:
            assert hosted.session is not None
            yield hosted.session
        finally:
            hosted.release()

    @enable_ki_protection
    async def _acquire(
        self, session_id: str | None, memory_namespace: str | None, config: SessionConfig | None, steal: bool
    ) -> HostedSession:
        try:
            hosted = await self._find_or_begin(session_id, memory_namespace, config, steal)
        except AgentClosed:
            # Anyone who is cancelled together with the host gets the cancellation, not what follows from it.
            await trio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC120  that is meant
            raise
        hosted.acquire()
        try:
            await hosted.ready.wait()
            if hosted.error is not None:
                await trio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            hosted.release()
            if hosted.users == 0:
                hosted.leave()
            raise
        if hosted.error is not None:
            hosted.release()
            raise _own_copy(hosted.error)
        return hosted

    async def _find_or_begin(
        self, session_id: str | None, memory_namespace: str | None, config: SessionConfig | None, steal: bool
    ) -> HostedSession:
        while True:
            await trio.lowlevel.checkpoint()
            # From here to the start of the session, or to the next round, nothing else runs but where we wait.
            self._check_open()
            known = self._by_id.get(session_id) if session_id is not None else None
            if known is None:
                hosted = self._make(session_id, memory_namespace, config, steal)
                await self._wait_for_room(hosted)
                if session_id not in self._by_id or session_id is None:
                    return self._start(hosted)
                # Somebody else was faster while we waited.
                self._room.release_on_behalf_of(hosted)
            elif not known.usable:
                known.refuse_waiting("host.open()")
                known.leave()
                await known.gone.wait()
            elif known.memory_namespace != memory_namespace:
                raise InvalidInput(
                    f"session {session_id!r} is open with another memory namespace; pass the one it was opened with"
                )
            else:
                return known

    def _make(
        self, session_id: str | None, memory_namespace: str | None, config: SessionConfig | None, steal: bool
    ) -> HostedSession:
        return HostedSession(
            session_id,
            config,
            memory_namespace,
            steal,
            lambda: self._parts.registry(memory_namespace),
            self._idle,
            self._on_opened,
            self._make_room,
            self._on_gone,
        )

    async def _wait_for_room(self, hosted: HostedSession) -> None:
        with trio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                self._make_room(coming=1)
                await self._room.acquire_on_behalf_of(hosted)
            finally:
                self._waiting.discard(scope)
        if self._draining and not scope.cancelled_caught:
            self._room.release_on_behalf_of(hosted)
        self._check_open()

    def _start(self, hosted: HostedSession) -> HostedSession:
        self._all[hosted] = None
        if hosted.session_id is not None:
            self._by_id[hosted.session_id] = hosted
        name = f"session {(hosted.session_id or 'new')[:8]}"
        # Here, without a checkpoint since there was room: the context of the task that opens it goes along.
        self._tasks.start_soon(hosted.run, name=name)
        return hosted

    def _on_opened(self, hosted: HostedSession) -> None:
        assert hosted.session is not None
        self._opened += 1
        hosted.session_id = hosted.session.id
        self._by_id[hosted.session.id] = hosted

    def _make_room(self, coming: int = 0) -> None:
        """Have idle sessions leave, the longest idle first, for those who wait. Sync."""
        # Not those in `_waiting`: one that has just been given a place stands there until it runs.
        waiting = coming + self._room.statistics().tasks_waiting
        wanted = waiting - self._room.available_tokens - sum(hosted.leaving for hosted in self._all)
        if wanted > 0:
            idle = [hosted for hosted in self._all if hosted.idle_since is not None and not hosted.leaving]
            for hosted in sorted(idle, key=lambda hosted: hosted.idle_since or 0)[: int(wanted)]:
                hosted.leave()

    def _on_gone(self, hosted: HostedSession) -> None:
        self._closed += hosted.session is not None
        del self._all[hosted]
        if hosted.session_id is not None and self._by_id.get(hosted.session_id) is hosted:
            del self._by_id[hosted.session_id]
        self._room.release_on_behalf_of(hosted)

    def _check_open(self) -> None:
        if self._running is None:
            raise AgentClosed("the host is not entered: use 'async with SessionHost(...) as host'")
        check_run(self._token, "a session host")
        if self._draining:
            raise AgentClosed("the host is draining: open the session on another one")

    def _refuse_more(self) -> None:
        self._draining = True
        for scope in tuple(self._waiting):
            scope.cancel("the host drains")

    @enable_ki_protection
    async def drain(self, *, grace: float | None = None) -> None:
        """Admit no more sessions, let turns end, close all sessions, and wait for it. Idempotent.

        Synopsis, for SIGTERM::

            await host.drain(grace=25)

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the draining goes on.

        Args:
            grace: seconds that turns which run or are queued have; then they are cut. None: as long as they take.
                Called again, it only ever tightens.

        Raises:
            InvalidInput: ``grace`` is not a number of seconds.
            WouldDeadlock: called from a hook, tool or port of one of the sessions.
        """
        check_run(self._token, "a session host")
        grace = check_grace(grace)
        for hosted in self._all:
            hosted.refuse_waiting("host.drain()")
        first = not self._draining
        self._refuse_more()
        if grace is not None:
            self._drain_deadline = min(self._drain_deadline, trio.current_time() + grace)
        for scope in self._graces:
            scope.deadline = self._drain_deadline
        leaving = tuple(self._all)
        if first:
            for hosted in leaving:
                self._tasks.start_soon(self._end, hosted, name="draining")
        await trio.lowlevel.checkpoint()
        for hosted in leaving:
            await hosted.gone.wait()

    async def _end(self, hosted: HostedSession) -> None:
        with trio.CancelScope(deadline=self._drain_deadline) as scope:
            self._graces.add(scope)
            await hosted.ready.wait()
            if hosted.session is not None:
                await hosted.session.wait_idle()
        self._graces.discard(scope)
        if scope.cancelled_caught and hosted.agent is not None:
            await hosted.agent.shutdown(grace=0)
        hosted.leave()

    async def tell(self, session_id: str, command: HostCommand) -> bool:
        """Cancel or steer a session's turn, or close the session, wherever it is open.

        Synopsis::

            await host.tell(session_id, CancelTurn(grace=2))

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the command may have been sent.

        Returns:
            Whether it was carried out here, or else left in the storage for the process that has the session. False:
            there was nothing to do it to, and nowhere to send it.

        Raises:
            InvalidInput, ContentNotSupported: the message to steer in cannot be sent.
            StorageError: the storage failed.
        """
        self._check_open()
        await trio.lowlevel.checkpoint()
        hosted = self._by_id.get(session_id)
        if hosted is not None and hosted.session is not None and hosted.session.is_open:
            return carry_out(hosted, command)
        storage = commands_of(self._parts.session_storage)
        if storage is None:
            return False
        await storage.send_command(session_id, command)
        return True

    async def close(self, session_id: str, *, grace: float | None = None) -> bool:
        """Close a session that is open here, even while it is used, and wait until its agent is left.

        Synopsis::

            await host.close(session_id, grace=2)

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the closing goes on.

        Args:
            session_id: which.
            grace: seconds for a turn that runs; None: it is cancelled, and its tools finish within their own time-outs.

        Returns:
            Whether it was open here.

        Raises:
            InvalidInput: ``grace`` is not a number of seconds.
            WouldDeadlock: called from a hook, tool or port of that session.
        """
        self._check_open()
        command = CloseHosted(check_grace(grace))
        hosted = self._by_id.get(session_id)
        if hosted is None:
            await trio.lowlevel.checkpoint()
            return False
        hosted.refuse_waiting("host.close()")
        carry_out(hosted, command)
        hosted.leave()
        await trio.lowlevel.checkpoint()
        await hosted.gone.wait()
        return True

    def statistics(self) -> HostStatistics:
        """Numbers about all sessions. Sync; costs time proportional to the number of open sessions."""
        check_run(self._token, "a session host")
        sessions: dict[str, AgentStatistics] = {
            hosted.session.id: hosted.agent.statistics()
            for hosted in self._all
            if hosted.session is not None and hosted.agent is not None
        }
        return HostStatistics(
            open=len(self._all),
            in_use=sum(hosted.users > 0 for hosted in self._all),
            idle=sum(hosted.idle_since is not None for hosted in self._all),
            waiting=len(self._waiting),
            opened=self._opened,
            closed=self._closed,
            draining=self._draining,
            running_turns=sum(numbers.turn_running for numbers in sessions.values()),
            running_tools=sum(len(numbers.running) for numbers in sessions.values()),
            stuck_tools=sum(len(numbers.stuck) for numbers in sessions.values()),
            unsaved_events=sum(numbers.unsaved_events for numbers in sessions.values()),
            storage_failures=sum(numbers.storage_failures for numbers in sessions.values()),
            sessions=sessions,
        )

    def tree(self) -> TaskNode:
        """The tasks of all sessions and where each waits; ``print(host.tree())`` draws it. Sync."""
        check_run(self._token, "a session host")
        return tree(self._home)


def _check(session_id: str | None, memory_namespace: str | None, config: SessionConfig | None) -> None:
    if session_id is not None and not isinstance(session_id, str):
        kind = type(session_id).__name__
        raise InvalidInput(f"the session's id is a {kind}; pass the string that session.id gave, or None")
    if memory_namespace is not None and not isinstance(memory_namespace, str):
        kind = type(memory_namespace).__name__
        raise InvalidInput(f"memory_namespace is a {kind}; pass a text, such as the user's id")
    if session_id is not None and config is not None:
        raise InvalidInput("config is for new sessions; a stored session goes on with its own: leave one of them out")


def _own_copy(error: Exception) -> Exception:
    """Each of several tasks that wait for one opening has a traceback of its own."""
    if not isinstance(error, AgentError):
        return error
    failure = copy.copy(error)
    failure.__cause__ = error.__cause__
    return failure


def _bare(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group

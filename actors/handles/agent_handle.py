"""What a host holds of an agent (semantics 1.1, 6.3). It asks actors; they never hold it."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, final, overload

import trio
from trio.lowlevel import enable_ki_protection

from ...core.config import SessionConfig
from ...core.inputs import check_grace
from ...core.profiles.discovery import ProfileInfo, discovery
from ...core.registry.config_rules import checked_session
from ...core.session_setup import with_output
from ...core.structured_output import OutputFormat
from ...messages.errors import AgentError, InvalidInput
from ...messages.misuse import misused
from ..guard.statistics import AgentStatistics, TaskNode, tree
from ..session.requests import GaveUp, GuardCommand, OpenedSession, OpenSession
from ..session.runtime import Runtime
from ..shared.deadlock import check_run, refuse_waiting
from ..shared.mailbox import Reply, ask, post
from .being_opened import SessionOpening
from .session_handle import Session

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("youyou")


@final
@misused(
    made_by=(
        lambda first: isinstance(first, Runtime),
        "an agent is not made by calling Agent; write 'async with AgentBuilder(AgentConfig(default_model=...))"
        ".register_model_provider(...).build() as agent:'",
    ),
    async_with="this agent is entered already: 'async with builder.build() as agent:' does that",
    attributes={
        "send_message": "messages go to a session; write 'async with await agent.new_session() as session:' first",
        "close": "write 'await agent.shutdown()', or leave its 'async with' block",
    },
)
class Agent:
    """A running agent: what ``async with builder.build() as agent`` gives.

    Synopsis::

        async with agent.new_session() as session: ...
        async with agent.resume_session(session_id) as session: ...

    One session at a time. Semantics 6.3.
    """

    def __init__(
        self,
        runtime: Runtime,
        guard: trio.MemorySendChannel[GuardCommand],
        numbers: Callable[[], AgentStatistics],
        served: trio.Event,
        home: trio.lowlevel.Task,
    ) -> None:
        self._runtime = runtime
        self._guard = guard
        self._numbers = numbers
        self._served = served
        self._home = home
        self._token = trio.lowlevel.current_trio_token()

    @overload
    def new_session(
        self, config: SessionConfig | None = None, *, output: Mapping[str, Any] | None = None
    ) -> SessionOpening[Any]: ...

    @overload
    def new_session(self, config: SessionConfig | None = None, *, output: type[T]) -> SessionOpening[T]: ...

    def new_session(self, config: SessionConfig | None = None, *, output: Any = None) -> SessionOpening[Any]:
        """Open a session: await it, or enter it as it is.

        Synopsis::

            async with agent.new_session() as session: ...
            async with agent.new_session(output=Person) as session: ...     # each answer becomes a Person

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, no session is open: what was begun of it is
        undone, and its claim released.

        Args:
            config: what this session does differently.
            output: what the answer of each turn must be (semantics 13): an attrs class, a dataclass, a TypedDict, or a
                JSON Schema. The schema is stored with the session.

        Raises:
            SessionBusy: another session is open.
            HookAborted, PluginError: a SessionStart hook refused it, or raised.
            InvalidConfig: a value of the configuration is out of range, or no JSON.
            InvalidInput: ``output`` is none of these.
            ModelNotSupported, ProfileNotFound: the configuration names what is not registered.
            StorageError: the storage says who may open a session, and failed.
            AgentClosed: the agent is closing.
        """
        return SessionOpening(self._open(SessionConfig() if config is None else config, output))

    @overload
    def resume_session(
        self,
        session_id: str,
        *,
        steal: bool = False,
        model_id: str | None = None,
        output: Mapping[str, Any] | None = None,
    ) -> SessionOpening[Any]: ...

    @overload
    def resume_session(
        self, session_id: str, *, steal: bool = False, model_id: str | None = None, output: type[T]
    ) -> SessionOpening[T]: ...

    def resume_session(
        self, session_id: str, *, steal: bool = False, model_id: str | None = None, output: Any = None
    ) -> SessionOpening[Any]:
        """Open a stored session again: await it, or enter it (semantics 7, "Resume"). No SessionStart hook runs.

        Cancellation: as for `new_session`; a ``session_opened`` record and results of open calls may be stored.

        Args:
            session_id: what `Session.id` gave.
            model_id: go on with this model; None: with the one that the session had.
            output: as for `new_session`, and not stored. None: the schema that is stored with the session, if there is
                one; answers are JSON data then.
            steal: take the session over from an owner that lives: its turn fails, its next write is refused.

        Raises:
            InvalidInput: the id is not a string, or ``output`` is none of what it may be.
            SessionNotFound: no such session, or no storage.
            SessionTaken: it is open elsewhere, or another opened it at the same moment.
            StorageError: the storage failed.
            SessionBusy, ModelNotSupported, ProfileNotFound, AgentClosed: as for `new_session`.
        """
        return SessionOpening(self._resume(session_id, bool(steal), model_id, output))

    async def _resume(self, session_id: str, steal: bool, model_id: str | None, output: Any) -> Session[Any]:
        if not isinstance(session_id, str):
            kind = type(session_id).__name__
            raise InvalidInput(f"the session's id is a {kind}; pass the string that session.id gave")
        if not isinstance(model_id, str | None):
            raise InvalidInput(f"model_id is a {type(model_id).__name__}; pass the id of a model, or None")
        return await self._open(SessionConfig(), output, session_id, steal, model_id)

    @enable_ki_protection
    async def _open(
        self,
        config: SessionConfig,
        output: Any,
        session_id: str | None = None,
        steal: bool = False,
        model_id: str | None = None,
    ) -> Session[Any]:
        check_run(self._token, "an agent")
        wanted = None if output is None else OutputFormat.of(output)
        config = checked_session(config if wanted is None else with_output(config, wanted))
        asked: list[OpenSession] = []

        def question(reply: Reply[OpenedSession | AgentError]) -> OpenSession:
            asked.append(OpenSession(config, session_id, steal, model_id, wanted, contextvars.copy_context(), reply))
            return asked[0]

        try:
            answer = await ask(self._guard, question)
        except trio.Cancelled:
            # The question may be in the mailbox or already being worked on: only the guard knows which, and undoes it.
            for opening in asked:
                post(self._guard, GaveUp(opening))
            raise
        if isinstance(answer, AgentError):
            raise answer
        return Session(answer, self._runtime, self._token)

    @enable_ki_protection
    async def shutdown(self, *, grace: float | None = None) -> None:
        """Close the session, then the plugins (semantics 6.3). Idempotent; several tasks may call it.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the shutdown goes on.

        Args:
            grace: seconds until running tools and hooks are cut; None: they finish within their own time-outs.

        Raises:
            InvalidInput: ``grace`` is not a number.
            WouldDeadlock: called from a hook, tool or port of this agent.
        """
        check_run(self._token, "an agent")
        grace = check_grace(grace)
        if not self._served.is_set():
            refuse_waiting(self._runtime.lifetime, "agent.shutdown()")
        self._runtime.lifetime.shut_down(grace)
        await self._served.wait()

    async def flush(self) -> None:
        """Try now to store every event that the storage has not acknowledged (semantics 7).

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the writes go on.

        Raises:
            StorageError: some could not be stored; they stay, in order, and are tried again.
            WouldDeadlock: called from a hook, tool or port of this agent.
        """
        check_run(self._token, "an agent")
        refuse_waiting(self._runtime.lifetime, "agent.flush()")
        await trio.lowlevel.checkpoint()
        await self._runtime.recorder.flush_all()

    async def closed(self) -> None:
        """Wait until the agent is closed by `shutdown` or a crash. A checkpoint; closes nothing itself."""
        check_run(self._token, "an agent")
        await self._served.wait()

    def profiles(self, resolved: bool = False) -> tuple[ProfileInfo, ...]:
        """Everything a front end needs to show what this agent can be (semantics 13, L3). Sync."""
        registry = self._runtime.registry
        return discovery(registry.config, registry.tools, registry.profiles, resolved=resolved)

    def statistics(self) -> AgentStatistics:
        """Numbers about what goes on inside. Sync."""
        check_run(self._token, "an agent")
        return self._numbers()

    def tree(self) -> TaskNode:
        """The agent's tasks and where each waits; ``print(agent.tree())`` draws it. Sync."""
        check_run(self._token, "an agent")
        return tree(self._home)

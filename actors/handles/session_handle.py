"""What a host holds of a session (semantics 1.1, 6.3). It asks the session's actor, which never holds it."""

from __future__ import annotations

import contextvars
import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar, final, overload

import trio
from trio.lowlevel import enable_ki_protection

from ...core.host_exceptions import INTERRUPTS, find_exception
from ...core.inputs import check_grace, check_input
from ...core.structured_output import OutputFormat
from ...messages.chat import Usage
from ...messages.content import Content, UserInput
from ...messages.errors import AgentClosed, AgentError, InvalidInput, SessionClosed
from ...messages.events import OutputT
from ...messages.history import Message
from ...messages.misuse import misused
from ...messages.plain import plain_text
from ...messages.text import safe_repr
from ..session.requests import CloseSession, OpenedSession, SetTitle, StartTurn
from ..session.runtime import Runtime
from ..shared.deadlock import check_run, refuse_waiting
from ..shared.mailbox import Reply, ask, post, post_and_wait
from ..turn.accepted_turn import AcceptedTurn
from .running_turn import RunningTurn

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("youyou")


@final
@misused(
    made_by=(
        lambda first: isinstance(first, OpenedSession),
        "a session is not made by calling Session; write 'async with await agent.new_session() as session:'",
    ),
    with_="a session is entered with 'async with': write 'async with await agent.new_session() as session:'",
    attributes={"messages": "write session.history", "send": "write 'await session.send_message(...)'"},
)
class Session(Generic[OutputT]):
    """An open conversation.

    Synopsis::

        async with agent.new_session() as session:
            turn = await session.send_message("hello")

    Leave its ``async with`` block, or call `close`. A handle that is dropped without either warns (ResourceWarning) and
    its session ends without SessionEnd hook and memory extraction. Semantics 6.3.
    """

    def __init__(self, opened: OpenedSession, runtime: Runtime, token: trio.lowlevel.TrioToken) -> None:
        self._opened = opened
        self._runtime = runtime
        self._token = token
        self._closed = False

    @property
    def id(self) -> str:
        """The session's id, under which it is stored."""
        return self._opened.state.session_id

    @property
    def history(self) -> Sequence[Message]:
        """What was said so far, as it is now: a read-only view that does not grow."""
        return self._opened.state.journal.transcript.history

    @property
    def usage(self) -> Usage:
        """Tokens, requests, calls and retries of all turns that have ended, those before a resume included."""
        return self._opened.state.usage

    @property
    def is_open(self) -> bool:
        """Whether messages can still be sent: False once the session has ended, in whatever way (semantics 6.3)."""
        return not self._closed and not self._opened.ended.is_set()

    async def wait_idle(self) -> None:
        """Wait until no turn runs or is queued, or the session has ended. A checkpoint; changes nothing.

        Raises:
            WouldDeadlock: called from a hook, tool or port of this agent while a turn runs.
        """
        check_run(self._token, "a session")
        if not self._opened.idle().is_set():
            refuse_waiting(self._runtime.lifetime, "session.wait_idle()")
        await trio.lowlevel.checkpoint()
        while not (idle := self._opened.idle()).is_set():
            await idle.wait()

    @overload
    async def send_message(
        self, input: UserInput | Content, *, output: None = None, queue: bool = False, grace: float | None = None
    ) -> RunningTurn[OutputT]: ...

    @overload
    async def send_message(
        self, input: UserInput | Content, *, output: type[T], queue: bool = False, grace: float | None = None
    ) -> RunningTurn[T]: ...

    @overload
    async def send_message(
        self,
        input: UserInput | Content,
        *,
        output: Mapping[str, Any],
        queue: bool = False,
        grace: float | None = None,
    ) -> RunningTurn[Any]: ...

    async def send_message(
        self, input: UserInput | Content, *, output: Any = None, queue: bool = False, grace: float | None = None
    ) -> RunningTurn[Any]:
        """Start a turn with this message.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, it did not happen: no turn runs, and the message is
        neither in history nor stored.

        Args:
            input: a `UserInput`, or what its ``content`` may be.
            output: what the answer must be (semantics 13): an attrs class, a dataclass, a TypedDict, or a JSON Schema.
                It is in ``TurnResult.output`` then. None: what the session was opened with.
            queue: while another turn runs, wait in line for it instead of being refused.
            grace: seconds that running tools and hooks have when the turn's ``async with`` block is left by a
                cancellation; None: ``shutdown_grace_ms``.

        Raises:
            InvalidInput, ContentNotSupported, SkillNotFound: the input cannot be sent; nothing was stored.
            TurnBusy: another turn is running, and ``queue`` is False.
            SessionClosed, AgentClosed: it is too late.
            SessionTaken, SessionNotFound: another owner has the session, or it was deleted (semantics 7).
        """
        setup = self._opened.state.setup
        checked = check_input(input, setup.model, setup.registry.skills)
        return await self._start(checked, output, queue, check_grace(grace))

    @overload
    async def continue_pipeline(self, *, output: None = None) -> RunningTurn[OutputT]: ...

    @overload
    async def continue_pipeline(self, *, output: type[T]) -> RunningTurn[T]: ...

    @overload
    async def continue_pipeline(self, *, output: Mapping[str, Any]) -> RunningTurn[Any]: ...

    async def continue_pipeline(self, *, output: Any = None) -> RunningTurn[Any]:
        """Go on with the pipeline that was interrupted, at its first step without an outcome (semantics 13).

        Cancellation: as for `send_message`.

        Args:
            output: as for `send_message`. What the interrupted turn was sent with is not remembered.

        Raises:
            InvalidInput: no pipeline of this session is unfinished.
            TurnBusy, SessionClosed, AgentClosed: as for `send_message`.
        """
        return await self._start(None, output, False, None)

    @enable_ki_protection
    async def _start(
        self, user_input: UserInput | None, output: Any, queue: bool, grace: float | None
    ) -> RunningTurn[Any]:
        wanted = None if output is None else OutputFormat.of(output)
        self._check_open()
        context = contextvars.copy_context()
        answer = await self._ask_turn(lambda reply: StartTurn(user_input, queue, wanted, context, reply))
        if isinstance(answer, AgentError):
            raise answer
        return RunningTurn(answer, self, self._token, grace)

    async def _ask_turn(
        self, question: Callable[[Reply[AcceptedTurn | AgentError]], StartTurn]
    ) -> AcceptedTurn | AgentError:
        try:
            return await ask(self._opened.mailbox, question)
        except AgentClosed:
            raise self._too_late() from None

    @enable_ki_protection
    async def set_title(self, title: str) -> None:
        """Name the session, in its storage too. A checkpoint; if it raises `trio.Cancelled`, it may have happened.

        A write that fails is tried again with the next one: the next turn, or `close`, tells of it.

        Raises:
            InvalidInput: the title is not text, or blank.
        """
        if not isinstance(title, str) or not title.strip():
            raise InvalidInput(f"a title must be a non-blank text, got {safe_repr(title)}")
        self._check_open()
        try:
            mark: int = await ask(self._opened.mailbox, lambda reply: SetTitle(plain_text(title), reply))
        except AgentClosed:
            raise self._too_late() from None
        await self._opened.state.journal.attempt(mark)

    def _check_open(self) -> None:
        check_run(self._token, "a session")
        if self._closed or self._opened.state.journal.lost is not None:
            raise self._too_late()

    def _too_late(self) -> AgentError:
        if (lost := self._opened.state.journal.lost) is not None:
            return lost
        if not self._closed and self._runtime.lifetime.shutting_down.is_set():
            return AgentClosed("the agent is closing: build and enter a new one")
        return SessionClosed("the session is closed: open a new one with agent.new_session()")

    @enable_ki_protection
    async def close(self, *, grace: float | None = None) -> None:
        """End the session gracefully and wait until its slot is free (semantics 6.3). Idempotent.

        Cancellation: a checkpoint. If it raises `trio.Cancelled`, the closing goes on.

        Args:
            grace: seconds until running tools and hooks are cut; None: they finish within their own time-outs.

        Raises:
            StorageError: the last events could not be stored. The slot is free all the same.
            SessionTaken, SessionNotFound: another owner has the session, or it was deleted.
            InvalidInput: ``grace`` is not a number.
            WouldDeadlock: called from a hook, tool or port of this agent.
        """
        check_run(self._token, "a session")
        grace = check_grace(grace)
        refuse_waiting(self._runtime.lifetime, "session.close()")
        self._closed = True
        error: AgentError | None = await post_and_wait(
            self._opened.mailbox, lambda reply: CloseSession(True, "session_closed", grace, reply)
        )
        error = error or self._opened.state.journal.lost
        if error is not None:
            raise error

    async def aclose(self) -> None:
        """The same as ``close()``."""
        await self.close()

    def _drop(self, grace: float | None = None) -> None:
        self._closed = True
        post(self._opened.mailbox, CloseSession(False, "dropped", grace, None))

    async def _drop_and_wait(self) -> None:
        """End what runs, without a word to anybody, and wait for it within the time that leaving the agent has.

        Counted from now, as the agent counts when the host was cancelled: the two never add up.
        """
        config = self._opened.state.setup.config
        self._drop(config.shutdown_grace_ms / 1000)
        bound = (config.shutdown_grace_ms + config.tool_patience_ms + config.closing_ms) / 1000
        with trio.CancelScope(deadline=trio.current_time() + bound, shield=True):
            await self._opened.ended.wait()

    async def __aenter__(self) -> Session[OutputT]:
        # No checkpoint: cancelled here, the session that was just opened would never be closed.
        return self  # noqa: ASYNC910  see above

    @enable_ki_protection
    async def __aexit__(  # noqa: ASYNC910  see below
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc is not None and find_exception(exc, INTERRUPTS) is not None:
            # Ctrl-C stops the whole agent within a bound of its own.
            self._drop()
            return  # noqa: ASYNC910  the exception that is under way must not be replaced
        if trio.current_effective_deadline() == -math.inf:
            await self._drop_and_wait()  # noqa: ASYNC102  shielded, with a deadline
            return  # the cancellation that is under way must not be replaced
        try:
            await self.close()  # noqa: ASYNC102  waits only where nothing is cancelled
        except AgentError as error:
            if exc is None:
                raise
            logger.warning("while a session was closed after %r: %s", exc, error)
        except trio.Cancelled:
            await self._drop_and_wait()  # noqa: ASYNC102  shielded, with a deadline
            raise
        except BaseException:
            self._drop()
            raise

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._opened.ended.is_set():
            return
        try:
            # Never `send_nowait` here: `__del__` runs in any thread, and a channel that is touched from another one
            # hangs its receiver. Before the warning, which may be an error and end this method.
            self._token.run_sync_soon(post, self._opened.mailbox, CloseSession(False, "dropped", None, None))
        except trio.RunFinishedError:
            return
        warnings.warn(
            "a session was never closed: leave its 'async with' block or await session.close()",
            ResourceWarning,
            source=self,
            stacklevel=2,
        )

    def __repr__(self) -> str:
        return f"<Session {self.id[:8]}{' closed' if self._closed else ''}>"

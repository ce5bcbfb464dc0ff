"""A session that is being opened: to be awaited, or entered as it is (semantics 1)."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, final

from trio.lowlevel import enable_ki_protection

from ...messages.events import OutputT
from .session_handle import Session


# A coroutine, not only an awaitable: `trio.from_thread.run(agent.new_session)` and start_soon() want one.
@final
class SessionOpening(Coroutine[Any, Any, Session[OutputT]]):
    """What `Agent.new_session` and `Agent.resume_session` give.

    Synopsis::

        async with agent.new_session() as session: ...
        async with await agent.new_session() as session: ...       # the same
        session = await agent.new_session()                         # closed by session.close()

    Nothing happens before it is awaited or entered, and it can be so once.
    """

    def __init__(self, opening: Coroutine[Any, Any, Session[OutputT]]) -> None:
        self._opening = opening
        self._session: Session[OutputT] | None = None

    def __await__(self) -> Generator[Any, Any, Session[OutputT]]:
        return self._opening.__await__()

    def send(self, value: Any) -> Any:
        """As of any coroutine."""
        return self._opening.send(value)

    def throw(self, *error: Any) -> Any:
        """As of any coroutine."""
        return self._opening.throw(*error)

    def close(self) -> None:
        """As of any coroutine."""
        self._opening.close()

    @enable_ki_protection
    async def __aenter__(self) -> Session[OutputT]:
        self._session = await self._opening
        # No checkpoint: cancelled here, the session that was just opened would never be closed.
        return await self._session.__aenter__()

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.__aexit__(kind, exc, traceback)  # noqa: ASYNC102  it shields what it must

"""The actor that holds the claims of one agent (semantics 7, "Claims").

Claims a session before it is opened, renews at a third of the time, and gives up what was lost or could not be renewed
in time: an owner that is cut off must not go on talking. Without a storage that has claims it does nothing.

    epoch = await claims.claim(session_id, steal=False)
    claims.watch(session_id, on_lost)
    await claims.release()
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.ports.protocols import SessionClaims, SessionStorage
from ...messages.errors import AgentError, SessionTaken, StorageError
from ..shared.lifetime import Lifetime
from ..shared.user_code import UserCodeError, call_user
from .recorder import storage_error

logger: logging.Logger = logging.getLogger("youyou.storage")


@attrs.define(eq=False)
class _Held:
    """A claim. ``until``: when it runs out, by Trio's clock. ``epoch`` is None while it is not known to be ours."""

    epoch: int | None = None
    until: float = math.inf
    renew_at: float = math.inf
    on_lost: Callable[[AgentError], None] = lambda _: None


@attrs.define(eq=False)
class Claims:
    """What one agent has claimed. ``owner`` names the agent, ``address`` where it is. Times are seconds."""

    lifetime: Lifetime
    storage: SessionClaims | None
    owner: str
    address: str
    ttl: float
    timeout: float
    _held: dict[str, _Held] = attrs.Factory(dict)
    _changed: trio.Event = attrs.Factory(trio.Event)
    _running: trio.CancelScope = attrs.Factory(trio.CancelScope)

    async def claim(self, session_id: str, *, steal: bool) -> int:
        """Become the owner of a session. Its epoch; 0 where the storage knows no claims.

        Cancellation: a checkpoint where there are claims. It may have happened: `release` undoes it.

        Raises:
            SessionTaken: another owner has it.
            AgentError: the storage failed.
        """
        if self.storage is None:
            return 0
        self._held[session_id] = _Held()
        asked = trio.current_time()
        with trio.move_on_after(self.timeout):
            try:
                claim = await call_user(self.lifetime, self._ask, session_id, steal)
            except UserCodeError as error:
                del self._held[session_id]
                raise storage_error("claiming", error) from error.cause
            # From when it was asked for: the answer may have taken its time.
            self._held[session_id] = _Held(claim, asked + self.ttl, asked + self.ttl / 3)
            self._wake()
            return claim
        raise StorageError(f"claiming took longer than {self.timeout:g} s")

    async def _ask(self, session_id: str, steal: bool) -> int:
        assert self.storage is not None
        ttl_ms = round(self.ttl * 1000)
        claim = await self.storage.claim(session_id, owner=self.owner, address=self.address, ttl_ms=ttl_ms, steal=steal)
        return int(claim.epoch)

    def watch(self, session_id: str, on_lost: Callable[[AgentError], None]) -> None:
        """Whom to tell, once, when the claim is lost. Sync."""
        if session_id in self._held:
            self._held[session_id].on_lost = on_lost

    async def release(self) -> None:
        """Give back everything that was claimed, or may have been. What fails is logged: it runs out by itself."""
        while self._held and self.storage is not None:
            session_id, held = self._held.popitem()
            with trio.move_on_after(self.timeout) as scope:
                try:
                    await call_user(self.lifetime, self._give_back, session_id, held.epoch)
                except UserCodeError as error:
                    logger.warning("releasing session %s failed: %s", session_id, error)
            if scope.cancelled_caught:
                logger.warning("releasing session %s took longer than %g s", session_id, self.timeout)

    async def _give_back(self, session_id: str, epoch: int | None) -> None:
        assert self.storage is not None
        await self.storage.release(session_id, owner=self.owner, epoch=epoch)

    def close(self) -> None:
        """Nothing will be claimed any more. Sync."""
        self._running.cancel("the agent is left")

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    @enable_ki_protection
    async def run(self) -> None:
        """Run the actor until it is closed."""
        with self._running:
            while True:
                changed = self._changed
                with trio.move_on_at(min((held.renew_at for held in self._held.values()), default=math.inf)):
                    await changed.wait()
                if self._due():
                    await self._renew()

    def _due(self) -> bool:
        now = trio.current_time()
        return any(held.renew_at <= now for held in self._held.values())

    async def _renew(self) -> None:
        """One statement for all that is held; what is lost, or over, is given up."""
        asked = trio.current_time()
        epochs = {session_id: held.epoch for session_id, held in self._held.items() if held.epoch is not None}
        gone = await self._prolong(epochs)
        for session_id, epoch in epochs.items():
            held = self._held.get(session_id)
            if held is None or held.epoch != epoch:
                continue  # released, or claimed anew, meanwhile
            if gone is None:
                # Soon again, while there is time.
                held.renew_at = min(held.until, trio.current_time() + self.ttl / 10)
            elif session_id not in gone:
                held.until, held.renew_at = asked + self.ttl, asked + self.ttl / 3
            if gone is not None and session_id in gone:
                self._lose(session_id, "another owner has taken it over")
            elif held.until <= trio.current_time():
                self._lose(session_id, "its claim could not be renewed in time")

    async def _prolong(self, epochs: dict[str, int]) -> frozenset[str] | None:
        """The ids of what was lost. None: it could not be found out."""
        assert self.storage is not None
        until = min(self._held[session_id].until for session_id in epochs)
        with trio.move_on_at(min(until, trio.current_time() + self.timeout)):
            try:
                ttl_ms = round(self.ttl * 1000)
                return frozenset(await call_user(self.lifetime, self.storage.renew, self.owner, epochs, ttl_ms))
            except UserCodeError as error:
                logger.warning("renewing the claims of sessions failed: %s", error)
        return None

    def _lose(self, session_id: str, why: str) -> None:
        held = self._held.pop(session_id)
        held.on_lost(SessionTaken(f"session {session_id!r} is no longer this agent's: {why}; resume it to go on"))


def claims_of(storage: SessionStorage | None) -> SessionClaims | None:
    """The storage as one that says who may open a session, if it is one."""
    has_all = all(callable(getattr(storage, name, None)) for name in ("claim", "renew", "release"))
    return storage if has_all else None  # type: ignore[return-value]  # it has the three methods

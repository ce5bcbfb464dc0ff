"""Conformance of session claims: what semantics 7 promises of who may open, as one coroutine to call from a test.

    async def test_my_claims(tmp_path):
        numbers = itertools.count()
        await check_session_claims(lambda: MyStorage(tmp_path / str(next(numbers))))

Uses nothing but the port. Each check gets a storage of its own. Waits for claims to run out by Trio's clock or by the
machine's, a fraction of a second each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import trio

from ...core.ports.protocols import SessionClaims
from ...messages.errors import ErrorCode, SessionTaken
from ...messages.history import UserMessage
from ...messages.records import SessionEvent
from .conformance_support import expect, fresh, moment

SessionClaimsFactory: TypeAlias = Callable[[], SessionClaims | AbstractAsyncContextManager[SessionClaims]]
_Check: TypeAlias = Callable[[Any], Awaitable[None]]

_LONG = 60_000
_SHORT = 60


async def check_session_claims(factory: SessionClaimsFactory) -> None:
    """Check that a storage's claims keep the contract.

    Args:
        factory: gives a new, empty storage at each call, or an async context manager of one.

    Raises:
        AssertionError: one sentence on the first promise that is not kept.
    """
    await trio.lowlevel.checkpoint()
    for check in _CHECKS:
        async with fresh(factory) as storage:
            await check(storage)


async def _claim(claims: SessionClaims, owner: str, ttl_ms: int = _LONG, steal: bool = False, id: str = "s") -> int:
    claim = await claims.claim(id, owner=owner, address=f"home of {owner}", ttl_ms=ttl_ms, steal=steal)
    return claim.epoch


async def _refused(claims: SessionClaims, owner: str, id: str = "s") -> SessionTaken | None:
    try:
        await _claim(claims, owner, id=id)
    except SessionTaken as error:
        return error
    return None


async def _one_owner(claims: SessionClaims) -> None:
    await _claim(claims, "a")
    error = await _refused(claims, "b")
    if error is None:
        raise AssertionError("A session that an owner has is refused to another one")
    told = (error.code, error.retryable, error.owner, error.address)
    expect((ErrorCode.SESSION_TAKEN, True, "a", "home of a"), told, "The refusal tells who has it and where")
    if error.retry_after_ms is None or not 0 < error.retry_after_ms <= _LONG:
        raise AssertionError(f"The refusal tells how long the claim lasts at most - it said {error.retry_after_ms}")
    expect(None, await _refused(claims, "b", "other"), "Another session is not concerned")


async def _epochs_grow(claims: SessionClaims) -> None:
    first = await _claim(claims, "a")
    again = await _claim(claims, "a")
    stolen = await _claim(claims, "b", steal=True)
    await claims.release("s", owner="b", epoch=stolen)
    after = await _claim(claims, "c")
    epochs = [first, again, stolen, after]
    expect(sorted(set(epochs)), epochs, "Each claim of a session has a greater epoch than all before it")


async def _release(claims: SessionClaims) -> None:
    epoch = await _claim(claims, "a")
    await claims.release("s", owner="a", epoch=epoch)
    expect(None, await _refused(claims, "b"), "A released session is free at once")
    await claims.release("s", owner="a", epoch=epoch)
    if await _refused(claims, "c") is None:
        raise AssertionError("A release of an older claim leaves the newer one alone")
    await claims.release("never claimed", owner="a", epoch=1)
    await claims.release("s", owner="a")
    if await _refused(claims, "c") is None:
        raise AssertionError("A release without an epoch leaves the claims of others alone")
    await claims.release("s", owner="b")
    expect(None, await _refused(claims, "c"), "A release without an epoch ends whatever claim the owner has")


async def _renewing(claims: SessionClaims) -> None:
    kept, lost = await _claim(claims, "a"), await _claim(claims, "a", id="lost")
    await _claim(claims, "b", steal=True, id="lost")
    epochs = {"s": kept, "lost": lost, "unknown": 1}
    answer = await claims.renew("a", epochs, _LONG)
    expect({"lost", "unknown"}, set(answer), "Renewing tells the claims that the owner no longer has")
    expect((), tuple(await claims.renew("a", {}, _LONG)), "Renewing nothing loses nothing")
    if await _refused(claims, "b") is None:
        raise AssertionError("A renewed claim counts")


async def _running_out(claims: SessionClaims) -> None:
    await _claim(claims, "a", _SHORT)
    for _ in range(200):
        if await _refused(claims, "b") is None:
            return
        await trio.sleep(_SHORT / 1000)
    raise AssertionError("A claim that nobody renews runs out")


async def _renewed_in_time(claims: SessionClaims) -> None:
    epoch = await _claim(claims, "a", _SHORT)
    await claims.renew("a", {"s": epoch}, _LONG)
    await trio.sleep(2 * _SHORT / 1000)
    if await _refused(claims, "b") is None:
        raise AssertionError("A claim that was renewed lasts for the new time")


async def _races(claims: SessionClaims) -> None:
    won: list[str] = []

    async def race(owner: str) -> None:
        if await _refused(claims, owner) is None:
            won.append(owner)

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(race, f"racer {number}")
    expect(1, len(won), "Of several that claim one session at once exactly one gets it")


async def _beside_the_log(claims: Any) -> None:
    epoch = await _claim(claims, "a")
    if not hasattr(claims, "save_events"):
        return
    expect(None, await claims.load_session("s"), "A claim alone is not a session")
    await claims.save_events("s", [SessionEvent(1, moment(1), UserMessage("hi"))])
    await claims.release("s", owner="a", epoch=epoch)
    expect(1, len(await claims.load_session("s") or ()), "A release leaves the log alone")
    await claims.delete_session("s")
    expect(None, await _refused(claims, "b"), "A session that was deleted can be claimed")


_CHECKS: Sequence[_Check] = (
    _one_owner,
    _epochs_grow,
    _release,
    _renewing,
    _running_out,
    _renewed_in_time,
    _races,
    _beside_the_log,
)

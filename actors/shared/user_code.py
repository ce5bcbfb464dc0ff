"""The boundary through which all code of the host is called (semantics 3, 6.2).

Actors are protected from Ctrl-C; what they call of others is not. A cancellation that the runtime waits for passes
untouched; Ctrl-C and `SystemExit` start a forced shutdown; anything else becomes a `UserCodeError` that the caller
turns into its documented outcome. Nothing of the host's is ever lost without a word.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from ...core.host_exceptions import INTERRUPTS, find_exception, split_exception
from ...messages.text import safe_str
from .lifetime import Lifetime

T = TypeVar("T")
logger: logging.Logger = logging.getLogger("youyou")


class UserCodeError(Exception):
    """Code of the host raised ``cause``; the text is safe to show."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(safe_str(cause))
        self.cause = cause


def split_cancelled(exc: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """The part of ``exc`` that is `trio.Cancelled`, and the rest."""
    return split_exception(exc, trio.Cancelled)


# Asking for the deadline is the only public way to tell: a `Cancelled` carries no scope, and one that a tool kept from
# earlier would otherwise cancel the turn for nobody.
def own_cancellation(exc: BaseException) -> bool:
    """Whether a scope around us waits for this cancellation. (User code may re-raise an old one that it kept.)"""
    return split_cancelled(exc)[0] is not None and trio.current_effective_deadline() == -math.inf


@disable_ki_protection
async def call_unprotected(function: Callable[..., Awaitable[T]], *args: object) -> T:
    """Await ``function(*args)`` where Ctrl-C may strike. The caller deals with whatever comes out."""
    return await function(*args)


def to_user_code_error(lifetime: Lifetime, exc: BaseException) -> BaseException:
    """What to raise instead of ``exc``, which came out of user code."""
    cancelled, rest = split_cancelled(exc)
    # Ctrl-C may be one of several in a group, since it strikes wherever a child task runs.
    if rest is not None and (interrupt := find_exception(rest, INTERRUPTS)) is not None:
        lifetime.interrupted(interrupt)
    if cancelled is not None and own_cancellation(exc):
        if rest is not None:
            logger.warning("an error while being cancelled: %s", safe_str(rest))
        # The cancellation alone goes on: Trio routes it to its scope, and a group with an error in it would escape that
        # scope.
        return cancelled
    return UserCodeError(exc)


@disable_ki_protection
def _call_unprotected_sync(function: Callable[..., T], args: tuple[object, ...]) -> T:
    return function(*args)


@enable_ki_protection
def call_sync(lifetime: Lifetime, function: Callable[..., T], *args: object) -> T:
    """Call ``function(*args)``, which is the host's and sync.

    Raises:
        UserCodeError: it raised.
    """
    try:
        return _call_unprotected_sync(function, args)
    except BaseException as exc:
        raise to_user_code_error(lifetime, exc) from exc  # noqa: ASYNC104  our own cancellation is passed on by to_user_code_error


@enable_ki_protection
async def call_user(lifetime: Lifetime, function: Callable[..., Awaitable[T]], *args: object) -> T:
    """Await ``function(*args)``, which is the host's.

    Cancellation: a checkpoint if the function is one; what it raises when cancelled by the runtime is passed on.

    Raises:
        UserCodeError: it raised anything else.
    """
    try:
        return await call_unprotected(function, *args)
    except BaseException as exc:
        error = to_user_code_error(lifetime, exc)
        if error is exc:
            raise
        raise error from exc  # noqa: ASYNC104  not a cancellation of ours

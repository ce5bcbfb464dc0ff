"""What the host gets to see when several things went wrong at once (semantics 3). Pure: knows no Trio."""

from __future__ import annotations

from collections.abc import Iterator

from ..messages.errors import AgentClosed, AgentCrashed

INTERRUPTS = (KeyboardInterrupt, SystemExit)


def find_exception(
    exc: BaseException, kind: type[BaseException] | tuple[type[BaseException], ...]
) -> BaseException | None:
    """The first exception of this kind in ``exc``, which may be a group."""
    return next((member for member in _members(exc) if isinstance(member, kind)), None)


def _members(exc: BaseException) -> Iterator[BaseException]:
    """``exc`` and all that is in it, in order."""
    # A stack of our own: a group may be nested deeper than Python's.
    waiting = [exc]
    while waiting:
        yield (member := waiting.pop())
        if isinstance(member, BaseExceptionGroup):
            # Not ``member.exceptions``: a subclass may say there what it likes.
            waiting.extend(reversed(BaseExceptionGroup.exceptions.__get__(member)))


def split_exception(exc: BaseException, kind: type[BaseException]) -> tuple[BaseException | None, BaseException | None]:
    """The part of ``exc`` that is of this kind, and the rest."""
    leaves = [member for member in _members(exc) if not isinstance(member, BaseExceptionGroup)]
    found = [leaf for leaf in leaves if isinstance(leaf, kind)]
    if not found:
        return None, exc
    if len(found) == len(leaves):
        return exc, None
    assert isinstance(exc, BaseExceptionGroup)
    try:
        return BaseExceptionGroup.split(exc, kind)
    except Exception:  # nested deeper than Python's stack, or of a subclass that derives no groups
        rest = [leaf for leaf in leaves if not isinstance(leaf, kind)]
        return BaseExceptionGroup(kind.__name__, found), BaseExceptionGroup(f"beside {kind.__name__}", rest)


def host_exception(
    *,
    interrupt: BaseException | None,
    crash: BaseException | None,
    body: BaseException | None,
    group: BaseException | None,
    entry_error: BaseException | None,
    cancellation: type[BaseException],
) -> BaseException | None:
    """Ctrl-C first, then a crash, then the body's own exception, then cancellation (semantics 3).

    Args:
        interrupt: Ctrl-C or `SystemExit` that came out of code that the runtime called.
        crash: a bug of ours that ended an actor.
        body: what left the host's block.
        group: what left the nursery around it.
        entry_error: why the agent could not be entered.
        cancellation: the class of what is raised in a cancelled scope.
    """
    # Ctrl-C outranks everything: Trio delivers it once, and a program that swallows it cannot be stopped by its user.
    for place in (interrupt, body, group):
        if place is not None and (found := find_exception(place, INTERRUPTS)) is not None:
            return found
    cancelled, own = split_exception(body, cancellation) if body is not None else (None, None)
    if body is not None and not isinstance(body, Exception) and cancelled is None:
        return body
    # Before the body's own error: a bug in the runtime may have caused it, and must not hide behind it. The body's
    # error is then in the cause.
    if crash is not None:
        return _crashed(crash, body if own is not None else None)
    if own is not None:
        return body
    return _bare(group) if group is not None else entry_error


def _crashed(crash: BaseException, body: BaseException | None) -> AgentCrashed:
    crashed = AgentCrashed("an actor crashed: this is a bug in youyou, please report it with the traceback below")
    # `AgentClosed` in the body is what the crash itself looks like from there.
    own = body is not None and not isinstance(body, AgentClosed)
    crashed.__cause__ = BaseExceptionGroup("the body and an actor failed", [body, crash]) if own and body else crash
    return crashed


def _bare(group: BaseException) -> BaseException:
    """The nursery wraps what it passes on; a single cancellation is passed on as it is."""
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group

"""What the host gets to see when several things went wrong at once (semantics 3)."""

from __future__ import annotations

from ...messages.errors import AgentClosed, AgentCrashed
from ..shared.user_code import INTERRUPTS, find_exception, only_cancelled, split_cancelled
from .supervisor import Supervisor


def host_exception(
    supervisor: Supervisor, group: BaseException | None, body: BaseException | None
) -> BaseException | None:
    """Ctrl-C first, then a crash, then the body's own exception, then cancellation (semantics 3)."""
    # Ctrl-C outranks everything: Trio delivers it once, and a program that swallows it cannot be stopped by its user.
    for place in (supervisor.lifetime.interrupt, body, group):
        if place is not None and (interrupt := find_exception(place, INTERRUPTS)) is not None:
            return interrupt
    if body is not None and not isinstance(body, Exception) and split_cancelled(body)[0] is None:
        return body
    # Before the body's own error: a bug in the runtime may have caused it, and must not hide behind it. The body's
    # error is then in the cause.
    if supervisor.crash is not None:
        return _crashed(supervisor.crash, body)
    if body is not None and not only_cancelled(body):
        return body
    if group is not None:
        return _bare(group)
    return supervisor.entry_error


def _crashed(crash: BaseException, body: BaseException | None) -> AgentCrashed:
    crashed = AgentCrashed("an actor crashed: this is a bug in youyou, please report it with the traceback below")
    # A cancellation, or "the agent is closed", is a consequence of the crash and would only hide it.
    own = body is not None and not only_cancelled(body) and not isinstance(body, AgentClosed)
    crashed.__cause__ = BaseExceptionGroup("the body and an actor failed", [body, crash]) if own and body else crash
    return crashed


def _bare(group: BaseException) -> BaseException:
    """The nursery wraps what it passes on; a single cancellation is passed on as it is."""
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group

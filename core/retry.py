"""What to do after a request has failed, and how long to wait before it is tried again (semantics 4, "Retry")."""

from __future__ import annotations

import re
from enum import Enum, auto

from ..messages.errors import AgentError, ErrorCode
from .config import RetryPolicy


class AfterFailure(Enum):
    """What to do after a request has failed."""

    RETRY = auto()
    COMPACT = auto()
    """Make history smaller, then ask again. This is not a try: the request itself was wrong."""
    GIVE_UP = auto()


def after_failure(
    error: AgentError, policy: RetryPolicy, *, attempt: int, visible: bool, compacted: bool
) -> AfterFailure:
    """What to do after the ``attempt``-th try (from 1) has failed with ``error``.

    Args:
        visible: the host has seen some of the answer; a second one would contradict it.
        compacted: history was made smaller for this request already.
    """
    if visible:
        return AfterFailure.GIVE_UP
    if error.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED and not compacted:
        return AfterFailure.COMPACT
    again = error.retryable and attempt < policy.attempts and not waits_too_long(error, policy)
    return AfterFailure.RETRY if again else AfterFailure.GIVE_UP


def waits_too_long(error: AgentError, policy: RetryPolicy) -> bool:
    """Whether the server asks for a longer wait than the policy allows."""
    return error.retry_after_ms is not None and error.retry_after_ms > policy.longest_wait_ms


def given_up(error: AgentError, policy: RetryPolicy) -> AgentError:
    """What the turn fails with: ``error``, or the same with the figure that was too much."""
    if not (error.retryable and waits_too_long(error, policy)):
        return error
    failed = AgentError.of(
        error.code,
        f"{error.message} (the server asks for a wait of {error.retry_after_ms} ms, longer than "
        f"RetryPolicy.longest_wait_ms={policy.longest_wait_ms}; send the message again later)",
        retryable=error.retryable,
        source=error.source,
        retry_after_ms=error.retry_after_ms,
    )
    failed.__cause__ = error
    return failed


# What says that the request's content is not to blame: the key, the account, a limit, the server itself.
_SOMETHING_ELSE = re.compile(
    r"\b(401|402|403|404|407|408|409|429|5\d\d)\b|\b(api.?key|unauthori[sz]ed|authenticat\w+|permission|forbidden|quota"
    r"|billing|credit|rate.?limit\w*|too many requests|overloaded|not found)\b",
    re.IGNORECASE,
)


def may_be_about_content(error: AgentError) -> bool:
    """Whether the request's images or files may be what a provider refused: an error without a clear cause.

    One try without them then decides (semantics 6).
    """
    unclear = error.code is ErrorCode.PROVIDER_ERROR and not error.retryable
    return unclear and _SOMETHING_ELSE.search(error.message[:2_000]) is None


def retry_delay_ms(policy: RetryPolicy, attempt: int, retry_after_ms: int | None, random: float) -> int:
    """Milliseconds to wait after the ``attempt``-th try (from 1) has failed.

    Doubles from ``base_ms`` and is spread by ``jitter``, but never exceeds ``max_ms``; what the server asked for wins.

    Args:
        random: a random number from 0 to 1.
    """
    if retry_after_ms is not None:
        return max(0, retry_after_ms)
    # Bounded before and after: clients that all wait for the longest time are spread downwards, not beyond it.
    delay: int = min(policy.max_ms, policy.base_ms * 2 ** (attempt - 1))
    return min(policy.max_ms, round(delay * (1 + policy.jitter * (2 * random - 1))))
